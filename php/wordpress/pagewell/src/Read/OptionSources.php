<?php

/**
 * The options (settings) that a page is made with. WordPress counts the runs of each filter from its start, and
 * get_option('tide_table') runs `pre_option_tide_table`: so they are known at the end, also those that were read
 * before this plugin was loaded.
 *
 *     get_option('tide_table')                          setting:tide_table
 *     SELECT … WHERE option_name = 'tide_table'         the same
 *     wp_load_alloptions(), other statements            settings: any of them
 *     a persistent object cache, where plugins may      settings
 *     keep what they have made of an option
 *
 * Options that have other names (Options::name) are left out.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Read;

use Pagewell\WordPress\Tags;
use Pagewell\WordPress\Write\Options;

/**
 * Collects the options of the running request.
 *
 * @internal
 */
final class OptionSources
{
    private const FILTER = 'pre_option_';

    /** The statement by which WordPress loads all options that are used often. */
    private const LOAD = '/^\s*SELECT option_name, option_value FROM \S+ WHERE autoload\b/';

    private const BY_NAME = '/\sWHERE\s+`?option_name`?\s*(?:=|IN\s*\()\s*(\'[^\'\\\\]*+\'(?:\s*,\s*\'[^\'\\\\]*+\')*+)\s*\)?(?:\s+LIMIT 1)?\s*;?\s*$/i';

    private static bool $areAll = false;

    /** Whether WordPress is about to look for one option in all of them. */
    private static bool $isAsked = false;

    /** Filter `pre_option`: before an option is looked for. */
    public static function asked(mixed $value, mixed $option): mixed
    {
        $value = Transients::read($value, $option);
        self::$isAsked = $value === false;
        return $value;
    }

    /** Filter `alloptions`: somebody gets all options. Functions of WordPress use one of them. */
    public static function loaded(mixed $options): mixed
    {
        self::$areAll = self::$areAll || !(self::$isAsked || self::isByWordPress());
        self::$isAsked = false;
        return $options;
    }

    /** A statement is about to run. */
    public static function queried(string $query): void
    {
        if (!str_contains($query, (string) $GLOBALS['wpdb']->options) || preg_match('/^\s*\(*\s*(SELECT|WITH)\b/i', $query) !== 1 || preg_match(self::LOAD, $query) === 1) {
            return;
        }
        if (preg_match(self::BY_NAME, $query, $found) === 1) {
            self::uses(...(array) preg_split('/\'\s*,\s*\'/', trim($found[1], "'")));
        } else {
            self::$areAll = true;
        }
    }

    public static function finish(): void
    {
        Transients::finish();
        $run = $GLOBALS['wp_filters'] ?? null;
        if (self::$areAll || !is_array($run) || wp_using_ext_object_cache()) {
            Page::uses(Tags::SETTINGS);
            return;
        }
        $hooks = preg_grep('/^' . self::FILTER . './', array_map('strval', array_keys($run)));
        self::uses(...array_map(static fn (string $hook): string => substr($hook, strlen(self::FILTER)), array_values((array) $hooks)));
    }

    private static function uses(string ...$options): void
    {
        Page::uses(...array_filter(array_map(Options::name(...), $options)));
    }

    /** Whether wp_load_alloptions() was called by a file beside its own, and not by its former name. */
    private static function isByWordPress(): bool
    {
        static $directory = null;
        $directory ??= dirname((string) (new \ReflectionFunction('wp_load_alloptions'))->getFileName());
        foreach (debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS, 12) as $frame) {
            if ($frame['function'] === 'wp_load_alloptions') {
                $file = (string) ($frame['file'] ?? '');
                return dirname($file) === $directory && basename($file) !== 'deprecated.php';
            }
        }
        return false;
    }
}
