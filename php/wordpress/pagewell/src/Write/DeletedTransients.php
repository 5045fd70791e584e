<?php

declare(strict_types=1);

/**
 * Results that a plugin has kept in the database for a time and deletes: they are outdated, and so are the pages that
 * were made with them. Plugins delete them with each write, to be sure, and build them again when they are read next. If
 * that happens in the same request with an equal value, nothing has changed.
 *
 * In a long-running process this is decided while it runs, like the changes of posts (DirectPostWrites).
 */

namespace Pagewell\WordPress\Write;

use Pagewell\WordPress\Read\Transients;
use Pagewell\WordPress\Purge\Changes;

/**
 * Compares deleted transients with those that follow.
 *
 * @internal
 */
final class DeletedTransients
{
    private const OPTION = '_transient_';

    /** Maximum number that are remembered. More count as changed at once. */
    private const MAX = 200;

    /** @var array<string, string> the hash of the first deleted value, by transient */
    private static array $values = [];

    /** @var array<string, true> those of $values that existed at the last turn */
    private static array $old = [];

    /** Before an option is deleted. */
    public static function begins(string $option): void
    {
        $transient = str_starts_with($option, self::OPTION) ? substr($option, strlen(self::OPTION)) : '';
        if ($transient !== '' && Transients::name($transient) !== null && count(self::$values) < self::MAX && ($value = get_option($option, null)) !== null) {
            self::$values[$transient] ??= self::hash($value);
        }
    }

    /** After a transient was deleted. */
    public static function deleted(string $transient): void
    {
        $name = Transients::name($transient);
        if ($name !== null && isset(self::$values[$transient])) {
            Changes::comes();
        } elseif ($name !== null) {
            Changes::add($name);
        }
    }

    /** In a long-running process: decides on those without a decision since the last turn. */
    public static function turn(): void
    {
        [$left, self::$values] = [array_diff_key(self::$values, self::$old), array_intersect_key(self::$values, self::$old)];
        self::end();
        [self::$values, self::$old] = [$left + self::$values, array_fill_keys(array_keys($left), true)];
    }

    /** Handles the end of the request. */
    public static function end(): void
    {
        [$values, self::$values] = [self::$values, []];
        foreach ($values as $transient => $before) {
            $now = get_option(self::OPTION . $transient, null);
            if ($now === null || self::hash($now) !== $before) {
                Changes::add((string) Transients::name((string) $transient));
            }
        }
    }

    private static function hash(mixed $value): string
    {
        return md5((string) maybe_serialize($value));
    }
}
