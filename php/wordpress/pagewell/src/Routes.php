<?php

/**
 * Rewrite rules: which URL leads to which query.
 *
 * A page depends on the beginning of its path (`route:har` for /harbour/). A rule that comes or goes
 * affects only paths that it matches, so all of them begin with the literal text at its beginning. If
 * that text is short, or other rules change as well, every page may be affected (`site`).
 *
 * A page that looks up other URLs of the site (url_to_postid) depends on all rules: `routes`.
 */

declare(strict_types=1);

namespace Pagewell\WordPress;

/**
 * Names pages by their path, and finds those that a change of the rules may affect.
 *
 * @internal
 */
final class Routes
{
    public const ALL = 'routes';

    /** How much of the path is in the name, in bytes. */
    private const LENGTH = 3;

    /** Maximum number of rules that are looked at individually. */
    private const RULES_MAX = 50;

    /** Returns the name for a path as WordPress matches it, without a slash at its ends. */
    public static function of(string $path): string
    {
        return 'route:' . substr(trim(rawurldecode($path), '/'), 0, self::LENGTH);
    }

    /** @return list<string> the names that change with the rules */
    public static function changed(mixed $before, mixed $after): array
    {
        if (!is_array($before) || !is_array($after) || $before === []) {
            return [Tags::SITE];
        }
        $others = array_keys(array_diff_key($before, $after) + array_diff_key($after, $before));
        // The other rules, in the same order and with the same queries.
        $isRest = array_intersect_key($before, $after) === array_intersect_key($after, $before);
        $starts = array_map(self::start(...), array_map(strval(...), $others));
        if (!$isRest || count($others) > self::RULES_MAX || in_array(null, $starts, true)) {
            return [Tags::SITE];
        }
        return array_values(array_unique([self::ALL, ...array_map(self::of(...), array_filter($starts, is_string(...)))]));
    }

    /** The literal text with which every path begins that this rule matches; null if it is too short. */
    private static function start(string $rule): ?string
    {
        preg_match('~^\^?([A-Za-z0-9_/-]*)([?*{]?)~', $rule, $found);
        // The last character before such a sign may be missing.
        $start = ltrim($found[2] === '' ? $found[1] : substr($found[1], 0, -1), '/');
        return str_contains($rule, '|') || strlen($start) < self::LENGTH ? null : $start;
    }
}
