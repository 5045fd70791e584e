<?php

/**
 * Collects the SQL statements and the option names of one WordPress request, and sends them to a Unix socket.
 *
 * PHP runs this file before the application, by `prepend.php`. The web server names the socket in the
 * FastCGI parameter PAGEWELL_CAPTURE, and the request in PAGEWELL_CAPTURE_TOKEN. Without both parameters the
 * file collects nothing. WordPress itself is not changed: it takes over filters that exist before it starts.
 * If a file or the socket is missing, the page is made without a report.
 *
 * `report.php` in the same directory has the format.
 *
 * A statement counts as sent after the output if the script has ended and no output buffer is open. After
 * fastcgi_finish_request() the script still runs, so that statements count as the page's: too many, never
 * too few.
 *
 * `statement-count.php` in the same directory proves that the list has all statements of the connection.
 *
 * Two callbacks run while the page is made: one for each statement, one for each load of all options. The names of
 * options come from the counters that WordPress keeps of its filters. So the collection costs little.
 *
 * The file cannot see:
 *   - reads of code that calls mysqli itself, if they come before the first statement of $wpdb, or use another
 *     connection;
 *   - what a filter on "query" does that was added later with the same priority, PHP_INT_MAX;
 *   - other processes that the page depends on;
 *   - values from a cache that outlives the request (APCu, files), but for that of object-cache.php;
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

    // The directory disappears when Pagewell stops, perhaps between two of these lines.
    $report = @include __DIR__ . '/report.php';
    $rules = @include __DIR__ . '/session-rules.php';
    $count = @include __DIR__ . '/statement-count.php';
    if (!is_object($report) || !is_object($rules) || !is_object($count)) {
        return;
    }
    $count->rules = $rules;
    $capture = (object) ['hasEnded' => false];
    // How often get_option() had been called at the last load of all options, and how many loads were its own.
    $capture->asked = $capture->loads = 0;
    $capture->usesAllOptions = false;

    $onQuery = static function ($query) use ($capture, $report, $count) {
        if (is_string($query) && $query !== '' && $report->reason === '') {
            $reason = $count->add();
            if ($reason === '') {
                $report->addTransaction($count->committed($query));
                $report->addStatement($query, $capture->hasEnded && ob_get_level() === 0);
            } else {
                $report->giveUp($reason);
            }
        }
        return $query;
    };

    // Code that loads all options uses others than get_option() is asked for. get_option() itself loads them after
    // its filter `pre_option`, which WordPress has then counted.
    $onAllOptions = static function ($options) use ($capture) {
        $asked = $GLOBALS['wp_filters']['pre_option'] ?? 0;
        if ($capture->asked !== $asked) {
            $capture->asked = $asked;
            $capture->loads++;
        } elseif (!$capture->usesAllOptions) {
            $callers = array_column(debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS, 8), 'function');
            $at = array_search('wp_load_alloptions', $callers, true);
            // Each of them uses one option, the last two blog_charset and siteurl. wp_prime_option_caches() only looks
            // for the names that are not there, and get_option() is asked for them afterwards.
            $own = [
                'add_option', 'update_option', 'delete_option', 'get_transient', 'wp_prime_option_caches',
                '_wp_specialchars', 'is_blog_installed',
            ];
            $capture->usesAllOptions = $at === false || !in_array($callers[$at + 1] ?? '', $own, true);
        }
        return $options;
    };

    // The names that get_option() was asked for: it applies a filter with the name of each option, and WordPress
    // counts the filters that are applied. null if other options may have been used.
    $optionNames = static function () use ($capture): ?array {
        $filters = $GLOBALS['wp_filters'] ?? null;
        if ($capture->usesAllOptions || !isset($filters['pagewell_capture'], $filters['pre_option'])) {
            return null;
        }
        // From 6.4 on, get_option() loads all options also for one that is known to be absent.
        $loadsForAbsent = version_compare((string) ($GLOBALS['wp_version'] ?? ''), '6.4', '>=') ? PHP_INT_MAX : 1;
        [$names, $loads] = [['blog_charset', 'siteurl'], 0];
        foreach ($filters as $filter => $times) {
            $name = strncmp((string) $filter, 'pre_option_', 11) === 0 ? substr($filter, 11) : '';
            if ($name !== '') {
                $names[] = $name;
                $found = min($times, $filters["option_$name"] ?? 0);
                $absent = min($times - $found, $filters["default_option_$name"] ?? 0);
                $loads += $found + min($absent, $loadsForAbsent);
            }
        }
        // With more loads than that, somebody else loaded all options right after a get_option().
        return $capture->loads > $loads ? null : array_unique($names);
    };

    // The form that WP_Hook::build_preinitialized_hooks() reads: [filter][priority][id].
    $GLOBALS['wp_filter']['alloptions'][PHP_INT_MAX]['pagewell'] = ['function' => $onAllOptions, 'accepted_args' => 1];
    $GLOBALS['wp_filter']['query'][PHP_INT_MAX]['pagewell'] = ['function' => $onQuery, 'accepted_args' => 1];
    // If this is gone at the end, somebody has reset the counters.
    $GLOBALS['wp_filters'] = ['pagewell_capture' => 1];

    $finish = static function () use ($report, $count, $onQuery): string {
        $hook = $GLOBALS['wp_filter']['query'] ?? null;
        $last = $hook instanceof WP_Hook ? ($hook->callbacks[PHP_INT_MAX] ?? []) : [];
        if (!in_array($onQuery, array_column($last, 'function'), true)) {
            return 'WordPress did not start, or it removed the filter';
        }
        if (function_exists('wp_using_ext_object_cache') && wp_using_ext_object_cache()) {
            $report->hide('object-cache.php');
        }
        if ($count->rules->hasFatalError()) {
            return 'a fatal error ended the script';
        }
        // An exception whose handler is silent, or an exit: the hook is then still running.
        [$done, $running] = [$GLOBALS['wp_actions'] ?? [], $GLOBALS['wp_current_filter'] ?? []];
        if (isset($done['wp_head']) && (!isset($done['wp_footer']) || in_array('wp_footer', $running, true))) {
            return 'the page ends before the footer of the theme';
        }
        return $report->reason !== '' ? $report->reason : $count->finish();
    };

    $send = static function () use ($report, $count, $finish, $optionNames, $socket, $token): void {
        $reason = $finish();
        if ($reason !== '') {
            $report->giveUp($reason);
        }
        $names = $reason === '' ? $optionNames() : null;
        $report->addServer($count->server());
        $report->addOptions($names ?? []);
        // Without a version, the option names are not complete.
        $report->send($socket, $token, $names === null ? '' : (string) $GLOBALS['wp_version']);
    };

    // This shutdown function is the first. The one that it registers is the last: WordPress registers its own
    // before.
    register_shutdown_function(static function () use ($capture, $send): void {
        $capture->hasEnded = true;
        register_shutdown_function($send);
    });
})();
