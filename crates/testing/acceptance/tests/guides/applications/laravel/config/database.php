<?php

/** The database of the application. */

declare(strict_types=1);

return ['default' => 'sqlite', 'connections' => ['sqlite' => ['driver' => 'sqlite', 'database' => dirname(__DIR__) . '/data/db.sqlite']]];
