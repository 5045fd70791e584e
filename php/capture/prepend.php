<?php

/**
 * Runs Pagewell's capture file before the application, if Pagewell asks for it. This file is for PHP's setting
 * `auto_prepend_file`, and must stay as long as a setting names it: PHP answers no request whose file is missing.
 *
 * It does nothing for requests of other web servers, while Pagewell is stopped, and after Pagewell was removed.
 * Pagewell names its directory in the FastCGI parameter PAGEWELL_CAPTURE, and writes `capture.php` there when it
 * starts; the two have the same version. At its end the file loads the `auto_prepend_file` of php.ini, which it
 * replaces.
 *
 * PHP 7.4 to 8.4.
 */

// A program at the command line has parameters of its own there: the environment.
if (strpos(PHP_SAPI, 'fcgi') !== false && is_string($_SERVER['PAGEWELL_CAPTURE'] ?? null)) {
    try {
        // The directory may disappear at any moment. A file that is not there is a warning, which nobody needs.
        @include dirname($_SERVER['PAGEWELL_CAPTURE']) . '/capture.php';
    } catch (Throwable $ignored) {
        unset($ignored);
    }
}

// PHP would have loaded the file of php.ini if the pool had not named this one instead.
if (
    (string) get_cfg_var('auto_prepend_file') !== ''
    && stream_resolve_include_path(ini_get('auto_prepend_file') ?: '') === __FILE__
) {
    require_once get_cfg_var('auto_prepend_file');
}
