<?php

/**
 * The dependencies of the page being rendered, and its maximum lifetime.
 *
 * Collects only. Ids of one type are bounded: from IDS_MAX on, `every:TYPE` (`names:`) is used
 * instead. With more names than Pagewell accepts, the page is not offered (CacheHeaders), because a
 * shortened list would miss changes.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Read;

use Pagewell\WordPress\Core\Front;
use Pagewell\WordPress\Tags;

/**
 * Collects the dependencies of the running request.
 *
 * @internal
 */
final class Page
{
    /** Maximum number of posts of one type that are named individually. */
    public const IDS_MAX = 200;

    /** Maximum number of names of a page that Pagewell accepts. */
    public const TAGS_MAX = 1000;

    /** Maximum size of the names where another web server is between Pagewell and PHP, in bytes. */
    private const BYTES_BEHIND_SERVER = 2000;

    /** Names for all of a kind, of posts with their type. Every change of one has that name, too. */
    private const WHOLE = ['text' => 'every:', 'name' => 'names:', 'post' => 'every:', 'comments' => 'comments', 'user' => 'users'];

    /**
     * Maximum TTL of a page in seconds. A nonce in a form is valid for at least 12 hours, and data
     * that no hook reports (a plugin's own query) should not remain for days.
     */
    public const LIFETIME_SECONDS_MAX = 36_000;

    /**
     * Kinds for which a database row may not identify the one concerned: `pagewell changes suggest
     * --for wordpress`.
     */
    private const ANY = '/^(every|texts|names|in|beside|below|children|stuck|terms|filled|counts|menu|comments):/';

    /** @var array<string, true> */
    private static array $tags = [];

    /** @var array<string, array<int, true>> ids by what is named and type */
    private static array $named = [];

    private static int $lifetimeSeconds = self::LIFETIME_SECONDS_MAX;

    /** Adds dependencies, and those on any of their kind: `in:7` adds `in:*`. */
    public static function uses(string ...$tags): void
    {
        foreach ($tags as $tag) {
            if (count(self::$tags) <= self::TAGS_MAX) {
                self::$tags[Tags::full($tag)] = true;
                Readers::add(Tags::full($tag));
                if (preg_match(self::ANY, $tag, $kind) === 1) {
                    self::$tags[Tags::full("$kind[1]:*")] = true;
                }
            }
        }
    }

    /** Whether the page depends on this already. */
    public static function has(string $tag): bool
    {
        return isset(self::$tags[Tags::full($tag)]);
    }

    /** Adds a dependency on a post with its custom fields. */
    public static function usesPost(int $id): void
    {
        self::usesOne($id, 'post', 'every');
    }

    /** Adds a dependency on a post without custom fields. */
    public static function usesText(int $id): void
    {
        self::usesOne($id, 'text', 'every');
    }

    /** Adds a dependency on the title and URL of a post only. */
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

    /** @return list<int> the posts that are named individually, of this blog */
    public static function posts(): array
    {
        $blog = is_multisite() ? get_current_blog_id() . '/' : '';
        $named = array_filter(self::$named, static fn (string $what): bool => str_starts_with($what, $blog), ARRAY_FILTER_USE_KEY);
        return array_keys(array_replace([], ...array_values($named)));
    }

    /** Limits the TTL; the shortest of several times counts. */
    public static function freshFor(int $seconds): void
    {
        self::$lifetimeSeconds = max(0, min($seconds, self::$lifetimeSeconds));
    }

    /**
     * @return list<string> the names of the page; more than TAGS_MAX if it has too many
     */
    public static function tags(): array
    {
        // `post` includes `text`.
        $isNeeded = static fn (string $tag): bool => !isset(self::$tags[(string) preg_replace('~^(\d+/)?text:~', '$1post:', $tag, 1, $found)]) || $found === 0;
        return array_values(array_filter(array_map('strval', array_keys(self::$tags)), $isNeeded));
    }

    /**
     * Returns the names as they are sent. Another web server between Pagewell and PHP (nginx) accepts 4 KB of header
     * section. So there a long list names all posts of a type, and the page may be purged more often than needed.
     *
     * @return list<string>
     */
    public static function sentTags(): array
    {
        $tags = array_fill_keys(self::tags(), true);
        $blog = is_multisite() ? get_current_blog_id() . '/' : '';
        if (!Front::isGivenByIt() && self::bytes($tags) > self::BYTES_BEHIND_SERVER) {
            $settings = preg_grep("~^{$blog}setting:~", array_map('strval', array_keys($tags)));
            $tags = array_diff_key($tags, array_flip((array) $settings)) + ($settings ? [Tags::full(Tags::SETTINGS) => true] : []);
        }
        foreach (self::WHOLE as $kind => $whole) {
            if (Front::isGivenByIt() || self::bytes($tags) <= self::BYTES_BEHIND_SERVER) {
                break;
            }
            foreach (array_keys($tags) as $tag) {
                if (preg_match("~^$blog$kind:(\\d+)$~D", (string) $tag, $found) === 1) {
                    $type = str_ends_with($whole, ':') ? (string) get_post_type((int) $found[1]) : '';
                    unset($tags[$tag]);
                    $tags[Tags::full($whole . $type)] = true;
                }
            }
        }
        return array_map('strval', array_keys($tags));
    }

    /** Whether Pagewell gets the SQL statements of this request (php/capture/wordpress.php). */
    public static function knowsStatements(): bool
    {
        return isset($GLOBALS['wp_filters']['pagewell_capture']);
    }

    /** @return list<string> the names that stand for statements */
    public static function tableTags(): array
    {
        return array_values(preg_grep('~^(\d+/)?table:~', self::sentTags()) ?: []);
    }

    /** Whether Pagewell, and the server before it, accept the list of names. */
    public static function hasFewTags(): bool
    {
        $tags = self::sentTags();
        return count(self::$tags) <= self::TAGS_MAX && (Front::isGivenByIt() || self::bytes(array_flip($tags)) <= self::BYTES_BEHIND_SERVER);
    }

    /** @param array<string, mixed> $tags */
    private static function bytes(array $tags): int
    {
        return strlen(implode(' ', array_keys($tags)));
    }

    /** Of posts only the URLs matter: the response is a redirect to one of a list. */
    public static function forgetTexts(): void
    {
        foreach (array_keys(self::$tags) as $tag) {
            if (preg_match('~^(\d+/)?(?:text|post):(\d+)$~', (string) $tag, $found) === 1) {
                unset(self::$tags[$tag]);
                self::$tags["$found[1]name:$found[2]"] = true;
            }
        }
    }

    /** Whether the page contains a list of posts. */
    public static function hasList(): bool
    {
        foreach (self::$tags as $tag => $_) {
            if (preg_match('~^(\d+/)?(list|texts|every|names|in|by|date|nowhere|called|guess|beside|below|children|sticky)(:|$)~', (string) $tag)) {
                return true;
            }
        }
        return false;
    }

    /** Returns the maximum TTL, in seconds. */
    public static function lifetimeSeconds(): int
    {
        return self::$lifetimeSeconds;
    }
}
