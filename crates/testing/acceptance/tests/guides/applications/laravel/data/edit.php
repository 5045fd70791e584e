<?php

/** Saves news 4, as a command does. */

declare(strict_types=1);

require 'Illuminate/autoload.php';
require __DIR__ . '/../vendor/autoload.php';

$app = require __DIR__ . '/../bootstrap/app.php';
$app->make(Illuminate\Contracts\Console\Kernel::class)->bootstrap();
$news = App\Models\News::find(4);
$news->title = 'new';
$news->save();
$app->terminate();
