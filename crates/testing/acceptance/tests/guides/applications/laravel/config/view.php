<?php

/** The view of the application. */

declare(strict_types=1);

return ['paths' => [], 'compiled' => dirname(__DIR__) . '/storage/framework/views'];
