<?php

/**
 * The dependencies of the page being rendered, and its maximum lifetime.
 *
 * Collects only. Ids of one type are bounded: from IDS_MAX on, `texts:TYPE` (`every:`, `names:`)
 * stands for all of them. When there are more names than Pagewell takes, the page is not offered (Offer):
 * a list that was cut would miss a change.
 */

declare(strict_types=1);

namespace Pagewell\WordPress;

/** Collects the dependencies of the running request. */
final class Page
{
    /** Maximum number of posts of one type that are named individually. */
    public const IDS_MAX = 200;

    /** Maximum number of names of a page that Pagewell accepts. */
    public const TAGS_MAX = 1000;

    /**
     * The maximum lifetime of a page in seconds. A nonce in a form is valid for at least 12 hours,
     * and data that no hook reports (a plugin's own query) should not stay for days.
     */
    public const LIFETIME_SECONDS_MAX = 36_000;

    /** Of these, a row of the database may not say which one it concerns: `pagewell changes suggest --for wordpress`. */
    private const ANY = '/^(every|texts|names|in|beside|terms|filled|menu|comments):/';

    /** @var array<string, true> */
    private static array $tags = [];

    /** @var array<string, array<int, true>> ids by what is named and type */
    private static array $named = [];

    private static int $lifetimeSeconds = self::LIFETIME_SECONDS_MAX;

    /** The page is made from these, and so from any of their kind: `in:7` brings `in:*`. */
    public static function uses(string ...$tags): void
    {
        foreach ($tags as $tag) {
            if (count(self::$tags) <= self::TAGS_MAX) {
                self::$tags[Tags::full($tag)] = true;
                if (preg_match(self::ANY, $tag, $kind) === 1) {
                    self::$tags[Tags::full("$kind[1]:*")] = true;
                }
            }
        }
    }

    /** The page is made from this post, and from custom fields of it. */
    public static function usesPost(int $id): void
    {
        self::usesOne($id, 'post', 'every');
    }

    /** The page is made from this post, as WordPress shows it by itself. */
    public static function usesText(int $id): void
    {
        self::usesOne($id, 'text', 'texts');
    }

    /** The page shows the title or the address of this post, and nothing else of it. */
    public static function usesName(int $id): void
    {
        self::usesOne($id, 'name', 'names');
    }

    private static function usesOne(int $id, string $what, string $all): void
    {
        $type = $id > 0 ? get_post($id)->post_type ?? '' : '';
        if (!Tags::isData($type)) {
            return;
        }
        $named = Tags::full("$what/$type");
        if (count(self::$named[$named] ?? []) >= self::IDS_MAX) {
            self::uses("$all:$type");
            return;
        }
        self::$named[$named][$id] = true;
        self::uses("$what:$id");
    }

    /** The page holds for so many seconds at most; the shortest of several times counts. */
    public static function freshFor(int $seconds): void
    {
        self::$lifetimeSeconds = max(0, min($seconds, self::$lifetimeSeconds));
    }

    /**
     * @return list<string> the names of the page; more than TAGS_MAX when it has too many
     */
    public static function tags(): array
    {
        // A post with its custom fields is more than the post without them.
        $isNeeded = static fn (string $tag): bool => !isset(self::$tags[(string) preg_replace('~^(\d+/)?text:~', '$1post:', $tag, 1, $found)]) || $found === 0;
        return array_values(array_filter(array_map('strval', array_keys(self::$tags)), $isNeeded));
    }

    /** Whether some list of posts is part of the page. */
    public static function hasList(): bool
    {
        foreach (self::$tags as $tag => $_) {
            if (preg_match('~^(\d+/)?(list|texts|every|names|in|by|date|nowhere|beside)(:|$)~', (string) $tag)) {
                return true;
            }
        }
        return false;
    }

    /** For how many seconds the page holds at most. */
    public static function lifetimeSeconds(): int
    {
        return self::$lifetimeSeconds;
    }
}
