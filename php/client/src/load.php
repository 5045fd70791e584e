<?php

/**
 * Loads the functions once, whether Composer or autoload.php comes first: each of them would
 * otherwise declare them a second time, which is a fatal error. Then prepares the request.
 */

declare(strict_types=1);

if (!function_exists('Pagewell\\uses')) {
    require __DIR__ . '/functions/page.php';
    require __DIR__ . '/functions/change.php';

    // Before the application registers its own function, which then stays.
    Pagewell\HeaderCallback::claim();

    // A wrong value is refused here, before the application writes anything, and not by changed() after the write.
    Pagewell\Configuration::check((new Pagewell\PhpChannel())->method());
}

// Before the application connects to a database.
Pagewell\Capture\StatementCapture::begin();
