<?php

/**
 * Pagewell. Each setting but `enabled` and `models` is a variable PAGEWELL_… of the library, which has
 * precedence if the process has it. A wrong value is an error when the application boots.
 */

declare(strict_types=1);

return [
    // false: there is no Pagewell, as on a developer's machine or in CI. Changes are then forgotten.
    'enabled' => env('PAGEWELL_ENABLED', true),

    // The control interface: 127.0.0.1:8081 (the default), unix:/run/pagewell/admin.sock, or off.
    'admin' => env('PAGEWELL_ADMIN'),

    // A file with the token, if Pagewell requires one.
    'token_file' => env('PAGEWELL_TOKEN_FILE'),

    // The host of the site, if Pagewell serves several sites.
    'site' => env('PAGEWELL_SITE'),

    // `response`: the response to a write carries the change. `control`: the control interface is called.
    'changes' => env('PAGEWELL_CHANGES'),

    // Cookies that make no page personal: ['currency', 'theme_*'].
    'shared_cookies' => env('PAGEWELL_SHARED_COOKIES'),

    // TTL of pages that do not limit their own, in seconds; a day by default.
    'lifetime' => env('PAGEWELL_LIFETIME'),

    // A file for changes that could not be sent: storage_path('app/pagewell-outbox').
    'outbox' => env('PAGEWELL_OUTBOX'),

    // Models whose changes purge pages, with the kind of data: [App\Models\News::class => 'news'].
    'models' => [],
];
