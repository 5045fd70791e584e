<?php

/**
 * Collects the SQL statements and the option names of one WordPress request, and sends them to a Unix socket.
 *
 * PHP runs this file before the application (`auto_prepend_file`). The web server names the socket in the
 * FastCGI parameter PAGEWELL_CAPTURE, and the request in PAGEWELL_CAPTURE_TOKEN. Without both parameters the
 * file collects nothing. WordPress itself is not changed: it takes over filters that exist before it starts.
 * At its end the file loads the `auto_prepend_file` of php.ini, which it replaces.
 *
 * Format: the line "pagewell-capture 1", then records. A record is one letter, the length of its content as
 * four bytes (big-endian), and the content.
 *
 *     T  the token; the first record
 *     V  the version of WordPress; from 6.1 on, the option names are complete
 *     O  the name of an option that get_option() was called with
 *     S  a statement, in the order in which it was sent
 *     P  a statement that was sent after the output of the page
 *     I  the reason why the list is incomplete; then there are no O, S and P
 *     E  the end; without it the list is incomplete
 *
 * A statement counts as sent after the output if the script has ended and no output buffer is open. After
 * fastcgi_finish_request() the script still runs, so that statements count as the page's: too many, never
 * too few.
 *
 * `select-count.php` in the same directory proves that the list has all SELECTs of the connection.
 *
 * The file cannot see:
 *   - reads of code that calls mysqli itself, if they are no SELECTs (SHOW, HANDLER), come before the first
 *     statement of $wpdb, or use another connection;
 *   - what a filter on "query" does that was added later with the same priority, PHP_INT_MAX;
 *   - other processes that the page depends on;
 *   - values from a cache that outlives the request (APCu, files); object-cache.php makes the list incomplete;
 *   - statements of destructors, and of shutdown functions that are registered during the shutdown.
 *
 * PHP 7.4 to 8.4.
 */

(static function (): void {
    $socket = $_SERVER['PAGEWELL_CAPTURE'] ?? '';
    $token = $_SERVER['PAGEWELL_CAPTURE_TOKEN'] ?? '';
    unset($_SERVER['PAGEWELL_CAPTURE'], $_SERVER['PAGEWELL_CAPTURE_TOKEN']);
    if (!is_string($socket) || $socket === '' || !is_string($token) || $token === '') {
        return;
    }

    $namesMax = 10000;
    $bytesMax = 4 << 20;
    $selects = require __DIR__ . '/select-count.php';
    $capture = (object) ['records' => '', 'statements' => 0, 'options' => [], 'reason' => '', 'hasEnded' => false];
    $capture->usesAllOptions = $capture->isAsked = false;

    $giveUp = static function (string $reason) use ($capture): void {
        $capture->reason = $reason;
        $capture->records = '';
        $capture->options = [];
    };

    $add = static function (string $kind, string $content) use ($capture, $giveUp, $bytesMax): void {
        if (strlen($capture->records) + strlen($content) + 5 > $bytesMax) {
            $giveUp('more than 4 MB of statements and option names');
            return;
        }
        $capture->records .= $kind . pack('N', strlen($content)) . $content;
    };

    // The object whose query() runs the filter.
    $sender = static function (): ?object {
        foreach (debug_backtrace(DEBUG_BACKTRACE_PROVIDE_OBJECT | DEBUG_BACKTRACE_IGNORE_ARGS, 8) as $frame) {
            if ($frame['function'] === 'query' && isset($frame['object'])) {
                return $frame['object'];
            }
        }
        return null;
    };

    $onQuery = static function ($query) use ($capture, $giveUp, $add, $sender, $selects, $namesMax) {
        if (is_string($query) && $query !== '' && $capture->reason === '') {
            $capture->statements++;
            $reason = $capture->statements > $namesMax ? 'more than 10,000 statements' : $selects->add($query, $sender());
            if ($reason === '') {
                $add($capture->hasEnded && ob_get_level() === 0 ? 'P' : 'S', $query);
            } else {
                $giveUp($reason);
            }
        }
        return $query;
    };

    $onOption = static function ($value, $option = null) use ($capture, $giveUp, $add, $namesMax) {
        // get_option() takes all options next, unless another filter has answered.
        $capture->isAsked = $value === false;
        if (is_string($option) && !isset($capture->options[$option]) && $capture->reason === '') {
            $capture->options[$option] = true;
            if (count($capture->options) > $namesMax) {
                $giveUp('more than 10,000 options');
            } else {
                $add('O', $option);
            }
        }
        return $value;
    };

    // Code that takes all options at once uses more of them than get_option() is asked for.
    $onAllOptions = static function ($options) use ($capture, $onOption) {
        if ($capture->isAsked) {
            $capture->isAsked = false;
        } elseif (!$capture->usesAllOptions) {
            $callers = array_column(debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS, 8), 'function');
            $at = array_search('wp_load_alloptions', $callers, true);
            $caller = $at === false ? '' : ($callers[$at + 1] ?? '');
            // The last two use one option each, and do not ask get_option() for it. wp_prime_option_caches() only
            // looks for the names that are not there, and get_option() is asked for them afterwards.
            $own = [
                'get_option', 'add_option', 'update_option', 'delete_option', 'get_transient', 'wp_prime_option_caches',
                '_wp_specialchars', 'is_blog_installed',
            ];
            $capture->usesAllOptions = !in_array($caller, $own, true);
            $onOption(null, 'blog_charset');
            $onOption(null, 'siteurl');
        }
        return $options;
    };

    // The form that WP_Hook::build_preinitialized_hooks() reads: [filter][priority][id].
    $GLOBALS['wp_filter']['alloptions'][PHP_INT_MAX]['pagewell'] = ['function' => $onAllOptions, 'accepted_args' => 1];
    $GLOBALS['wp_filter']['query'][PHP_INT_MAX]['pagewell'] = ['function' => $onQuery, 'accepted_args' => 1];
    $GLOBALS['wp_filter']['pre_option'][PHP_INT_MAX]['pagewell'] = ['function' => $onOption, 'accepted_args' => 2];

    $finish = static function () use ($capture, $selects, $onQuery): string {
        $hook = $GLOBALS['wp_filter']['query'] ?? null;
        $last = $hook instanceof WP_Hook ? ($hook->callbacks[PHP_INT_MAX] ?? []) : [];
        if (!in_array($onQuery, array_column($last, 'function'), true)) {
            return 'WordPress did not start, or it removed the filter';
        }
        if (function_exists('wp_using_ext_object_cache') && wp_using_ext_object_cache()) {
            return 'an object cache hides reads (object-cache.php)';
        }
        $error = error_get_last();
        $fatal = E_ERROR | E_PARSE | E_CORE_ERROR | E_COMPILE_ERROR | E_USER_ERROR | E_RECOVERABLE_ERROR;
        if ($error !== null && ($error['type'] & $fatal) !== 0) {
            return 'a fatal error ended the script';
        }
        return $capture->reason !== '' ? $capture->reason : $selects->finish();
    };

    $send = static function () use ($capture, $finish, $socket, $token): void {
        $record = static function (string $kind, string $content): string {
            return $kind . pack('N', strlen($content)) . $content;
        };
        // Without a version, the option names are not complete.
        $version = $capture->usesAllOptions ? '' : ($GLOBALS['wp_version'] ?? '');
        $reason = $finish();
        // An error handler of the application must not see a failed connection.
        set_error_handler(static function (): bool {
            return true;
        });
        $stream = stream_socket_client('unix://' . $socket, $code, $message, 1.0);
        if (is_resource($stream)) {
            stream_set_timeout($stream, 1);
            $head = "pagewell-capture 1\n" . $record('T', $token) . $record('V', is_string($version) ? $version : '');
            $rest = $reason === '' ? $capture->records : $record('I', $reason);
            foreach ([$head, $rest, $record('E', '')] as $part) {
                $sent = 0;
                while ($sent < strlen($part)) {
                    $bytes = fwrite($stream, substr($part, $sent, 65536));
                    if ($bytes === false || $bytes === 0) {
                        break 2;
                    }
                    $sent += $bytes;
                }
            }
            fclose($stream);
        }
        restore_error_handler();
    };

    // This shutdown function is the first. The one that it registers is the last: WordPress registers its own
    // before.
    register_shutdown_function(static function () use ($capture, $send): void {
        $capture->hasEnded = true;
        register_shutdown_function($send);
    });
})();

// PHP would have loaded the file of php.ini if the pool had not named this one instead.
if (
    (string) get_cfg_var('auto_prepend_file') !== ''
    && stream_resolve_include_path((string) ini_get('auto_prepend_file')) === __FILE__
) {
    require_once get_cfg_var('auto_prepend_file');
}
