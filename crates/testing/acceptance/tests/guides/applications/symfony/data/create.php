<?php

/** Makes the rows that the application shows. */

declare(strict_types=1);

$database = new PDO('sqlite:' . __DIR__ . '/db.sqlite');
$database->exec('CREATE TABLE news (id INTEGER PRIMARY KEY, title TEXT)');
$database->exec("INSERT INTO news VALUES (4, 'old'), (5, 'other')");
