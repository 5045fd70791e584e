<?php

/**
 * The dependencies of the page being rendered, and its maximum lifetime.
 *
 * Collects only. More than IDS_MAX ids of a kind are replaced by the kind as a whole, and so are the
 * largest kinds while all names do not fit. So no dependency is lost, and the page may be purged
 * more often than needed.
 */

declare(strict_types=1);

namespace Pagewell\MediaWiki;

use Pagewell\MediaWiki\Core\Tag;

/** Collects the dependencies of the running request. Other extensions may call uses() and freshFor(); the rest is internal. */
final class Page
{
    /** Maximum number of ids of one kind. */
    public const IDS_MAX = 400;

    /** Maximum number of names of a page; Pagewell accepts 1,000. */
    public const TAGS_MAX = 900;

    /** Maximum size of all names in a header section, in bytes. */
    public const BYTES_MAX = 48 * 1024;

    /** The same where another web server passes the response on, which accepts less: nginx 4 KB of header section. */
    public const BYTES_BEHIND_SERVER = 2000;

    /** @var array<string, array<string, true>> ids by kind; an empty list means any */
    private static array $ids = [];

    private static ?int $lifetimeSeconds = null;

    private static ?Refusal $refusal = null;

    /** Adds a dependency on a kind as a whole (no ids), or on these of it. */
    public static function uses(string $kind, int|string ...$ids): void
    {
        if ($ids === [] || count(self::$ids[$kind] ?? ['' => true]) === 0) {
            self::$ids[$kind] = [];
            return;
        }
        foreach ($ids as $id) {
            self::$ids[$kind][(string) $id] = true;
        }
        if (count(self::$ids[$kind]) > self::IDS_MAX) {
            self::$ids[$kind] = [];
        }
    }

    /** Limits the TTL; the shortest of several times counts. */
    public static function freshFor(int $seconds): void
    {
        self::$lifetimeSeconds = max(0, min($seconds, self::$lifetimeSeconds ?? $seconds));
    }

    /** Forbids storing the page. The first reason counts. */
    public static function refuse(Refusal $refusal): void
    {
        self::$refusal ??= $refusal;
    }

    /** Returns the reason against storing, if there is one. */
    public static function refusal(): ?Refusal
    {
        return self::$refusal ?? (self::$lifetimeSeconds === 0 ? Refusal::ZeroLifetime : null);
    }

    /** Returns the TTL: the shortest so far, or this one. */
    public static function lifetimeSeconds(int $default): int
    {
        return min($default, self::$lifetimeSeconds ?? $default);
    }

    /**
     * @return list<string> the names of the page, few enough for its header section
     */
    public static function tags(int $bytes = self::BYTES_MAX): array
    {
        $tags = array_map(self::tagsOf(...), array_keys(self::$ids), self::$ids);
        usort($tags, static fn (array $one, array $other): int => self::bytes($other) <=> self::bytes($one));
        for ($at = 0; $at < count($tags) && !self::fits($tags, $bytes); $at++) {
            // Of a kind with ids, the last name is `kind:*`.
            $tags[$at] = [explode(':', $tags[$at][0], 2)[0]];
        }
        return array_merge(...$tags);
    }

    /**
     * @param array<string, true> $ids
     *
     * @return list<string>
     */
    private static function tagsOf(string $kind, array $ids): array
    {
        if ($ids === []) {
            return [Tag::whole($kind)];
        }
        return [...array_map(static fn (string|int $id): string => Tag::one($kind, $id), array_keys($ids)), Tag::any($kind)];
    }

    /** @param list<list<string>> $tags by kind */
    private static function fits(array $tags, int $bytes): bool
    {
        return array_sum(array_map(count(...), $tags)) <= self::TAGS_MAX && array_sum(array_map(self::bytes(...), $tags)) <= $bytes;
    }

    /** @param list<string> $tags */
    private static function bytes(array $tags): int
    {
        return strlen(implode(' ', $tags)) + 1;
    }
}
