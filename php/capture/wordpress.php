<?php

/**
 * Collects the SQL statements and the option names of one WordPress request, and sends them to a Unix socket.
 *
 * PHP runs this file before the application (`auto_prepend_file`). The web server names the socket in the
 * FastCGI parameter PAGEWELL_CAPTURE, and the request in PAGEWELL_CAPTURE_TOKEN. Without both parameters the
 * file does nothing. WordPress itself is not changed: it takes over filters that exist before it starts.
 *
 * Format: the line "pagewell-capture 1", then records. A record is one letter, the length of its content as
 * four bytes (big-endian), and the content.
 *
 *     T  the token
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
 * The file cannot see:
 *   - statements that do not pass through $wpdb->query(): the SET statements when a connection is opened, and
 *     code that calls mysqli or PDO itself;
 *   - what a filter on "query" does that was added later with the same priority, PHP_INT_MAX;
 *   - other processes and other connections that the page depends on;
 *   - values from an object cache that outlives the request (object-cache.php, APCu), and from files;
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

    $statementsMax = 10000;
    $bytesMax = 4 << 20;
    $capture = (object) [
        'records' => '', 'statements' => 0, 'options' => [], 'isOver' => false, 'hasEnded' => false,
    ];

    $add = static function (string $kind, string $content) use ($capture, $bytesMax): void {
        if ($capture->isOver || strlen($capture->records) + strlen($content) + 5 > $bytesMax) {
            $capture->isOver = true;
            $capture->records = '';
            $capture->options = [];
            return;
        }
        $capture->records .= $kind . pack('N', strlen($content)) . $content;
    };

    $onQuery = static function ($query) use ($capture, $add, $statementsMax) {
        if (is_string($query) && $query !== '') {
            $capture->statements++;
            $capture->isOver = $capture->isOver || $capture->statements > $statementsMax;
            $add($capture->hasEnded && ob_get_level() === 0 ? 'P' : 'S', $query);
        }
        return $query;
    };

    $onOption = static function ($value, $option = null) use ($capture, $add) {
        if (is_string($option) && !isset($capture->options[$option]) && !$capture->isOver) {
            $capture->options[$option] = true;
            $add('O', $option);
        }
        return $value;
    };

    // The form that WP_Hook::build_preinitialized_hooks() reads: [filter][priority][id].
    $GLOBALS['wp_filter']['query'][PHP_INT_MAX]['pagewell'] = ['function' => $onQuery, 'accepted_args' => 1];
    $GLOBALS['wp_filter']['pre_option'][PHP_INT_MAX]['pagewell'] = ['function' => $onOption, 'accepted_args' => 2];

    $send = static function () use ($capture, $socket, $token): void {
        $record = static function (string $kind, string $content): string {
            return $kind . pack('N', strlen($content)) . $content;
        };
        $version = $GLOBALS['wp_version'] ?? '';
        $isCaptured = ($GLOBALS['wp_filter']['query'] ?? null) instanceof WP_Hook
            && isset($GLOBALS['wp_filter']['query']->callbacks[PHP_INT_MAX]);
        $reason = '';
        if ($capture->isOver) {
            $reason = 'more than 10,000 statements or 4 MB';
        } elseif (!$isCaptured) {
            $reason = 'WordPress did not start, or it removed the filter';
        }
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
