<?php

declare(strict_types=1);

/**
 * The posts whose rows, terms or meta this process has written: found in its statements.
 *
 * A shop writes a stock by a statement of its own, and then removes the product from the caches
 * (clean_post_cache). If no statement has written the row of the post, it is where it was, and only its
 * meta has changed (DirectPostWrites).
 *
 *     UPDATE wp_posts SET … WHERE ID = 4       post 4, also IN (4, 5); as it was before, if WordPress has loaded it
 *     … wp_term_relationships … object_id = 4  post 4, in any way
 *     INSERT INTO wp_posts … of one row        the new post
 *     … wp_postmeta … post_id = 4 AND meta_key = '_stock'   this meta of post 4, until a hook explains it
 *     DELETE … WHERE meta_id IN( 7,8 )         meta that WordPress deletes, likewise
 *     any other statement with these tables    may be any post, or any meta
 */

namespace Pagewell\WordPress\Write;

/**
 * Reads statements that are about to run.
 *
 * @internal
 */
final class WrittenPosts
{
    private const READS = '/^\s*(SELECT|SHOW|DESC|DESCRIBE|EXPLAIN|SET|START|BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|USE)\b/i';

    /** The only form whose posts are known: the condition ends the statement, so that no text can look like it. */
    private const BY_ID = '/\sWHERE\s+`?(?:ID|object_id)`?\s*(?:=\s*(\d+|\'\d+\')|IN\s*\(\s*([\d\s,]+)\))(?:\s+AND\s+`?term_taxonomy_id`?\s*(?:=\s*(?:\d+|\'\d+\')|IN\s*\([\d\s,\']+\)))?\s*;?\s*$/i';

    /** How WordPress and WooCommerce write meta of one post. The values come first, or in the middle: the ends are fixed. */
    private const META = [
        '/^\s*UPDATE\s.*\sWHERE\s+`?post_id`?\s*=\s*(?<post>\d+)\s+AND\s+`?meta_key`?\s*=\s*\'(?<key>[\w-]+)\'(?:\s+AND\s+`?meta_value`?\s*=\s*\'[^\'\\\\]*\')?\s*;?\s*$/is',
        '/^\s*INSERT\s+INTO\s+\S+\s*\(\s*`?post_id`?\s*,\s*`?meta_key`?\s*,\s*`?meta_value`?\s*\)\s*VALUES\s*\(\s*\'?(?<post>\d+)\'?\s*,\s*\'(?<key>[\w-]+)\'\s*,\s*(?:NULL|\d+|\'(?:[^\'\\\\]++|\\\\.)*+\')\s*\)\s*;?\s*$/is',
    ];

    /** How WordPress deletes meta (delete_metadata); the hook that follows names the post. */
    private const META_DELETED = '/^\s*DELETE\s+FROM\s+\S+\s+WHERE\s+meta_id\s+IN\s*\([\d\s,]+\)\s*$/i';

    /** Maximum number of posts that are remembered individually. */
    private const IDS_MAX = 10_000;

    /** @var array<int, \WP_Post|false>|null by id, as they were before; false: in any way; null: any post may be written */
    private static ?array $ids = null;

    /** @var array<int, array<string, true>>|null keys of meta by post that no hook has explained yet; null: any meta may be written */
    private static ?array $meta = [];

    /** Whether WordPress has just deleted meta, and no hook has named the post. */
    private static bool $isMetaDeleted = false;

    /** Whether the statement before inserted a post. */
    private static bool $isInserted = false;

    /** Begins to read statements. */
    public static function begin(): void
    {
        self::$ids ??= [];
    }

    /** A statement is about to run. */
    public static function see(string $query): void
    {
        try {
            self::read($query);
        } catch (\Throwable) {
            self::$ids = self::$meta = null;
        }
    }

    private static function read(string $query): void
    {
        self::settle();
        $wpdb = $GLOBALS['wpdb'];
        if (stripos($query, (string) $wpdb->postmeta) !== false && preg_match(self::READS, $query) !== 1) {
            self::readMeta($query);
        }
        $isOfPosts = stripos($query, (string) $wpdb->posts) !== false || stripos($query, (string) $wpdb->term_relationships) !== false;
        if (self::$ids === null || !$isOfPosts || preg_match(self::READS, $query) === 1) {
            return;
        }
        if (preg_match(self::BY_ID, $query, $found) === 1) {
            $isUpdate = preg_match('/^\s*UPDATE\s/i', $query) === 1 && stripos($query, (string) $wpdb->term_relationships) === false;
            foreach (preg_split('/\D+/', $found[1] . ($found[2] ?? ''), -1, PREG_SPLIT_NO_EMPTY) as $id) {
                self::add((int) $id, $isUpdate ? wp_cache_get((int) $id, 'posts') : null);
            }
        } elseif (preg_match('/^\s*INSERT\s+INTO\s+`?' . preg_quote((string) $wpdb->posts, '/') . '`?\s*\(/i', $query) === 1) {
            self::$isInserted = true;
        } elseif (preg_match('/^\s*INSERT\s+INTO\s+`?' . preg_quote((string) $wpdb->term_relationships, '/') . '`?\s*\(`?object_id`?\s*,\s*`?term_taxonomy_id`?(?:\s*,\s*`?term_order`?)?\)\s*VALUES\s*\(\s*(\d+|\'\d+\')\s*,[^()]*\)\s*$/i', $query, $found) === 1) {
            self::add((int) trim($found[1], "'"));
        } else {
            self::$ids = null;
        }
    }

    private static function readMeta(string $query): void
    {
        foreach (self::$meta === null || self::$isMetaDeleted ? [] : self::META as $form) {
            if (preg_match($form, $query, $found) === 1) {
                self::$meta[(int) $found['post']][$found['key']] = true;
                self::$meta = count(self::$meta) > self::IDS_MAX ? null : self::$meta;
                return;
            }
        }
        if (self::$isMetaDeleted || preg_match(self::META_DELETED, $query) !== 1) {
            self::$meta = null;
        }
        self::$isMetaDeleted = true;
    }

    /** A hook reports this meta of a post. */
    public static function explained(int $id, string $key): void
    {
        unset(self::$meta[$id][$key]);
    }

    /** A hook names the post of the meta that WordPress has just deleted. */
    public static function deletionExplained(): void
    {
        self::$isMetaDeleted = false;
    }

    /**
     * Whether no meta of a post was written, except with these keys, that no hook has explained.
     *
     * @param \Closure(string): bool $isExcepted
     */
    public static function hasNoMetaBut(int $id, \Closure $isExcepted): bool
    {
        return self::$meta !== null && !self::$isMetaDeleted && array_filter(array_keys(self::$meta[$id] ?? []), static fn (int|string $key): bool => !$isExcepted((string) $key)) === [];
    }

    /** Returns a post as it was before it was written; null: no statement has written it; false: in any way. */
    public static function before(int $id): \WP_Post|false|null
    {
        self::settle();
        return self::$ids === null ? false : self::$ids[$id] ?? null;
    }

    /** The statement before has run: which post it has inserted. */
    private static function settle(): void
    {
        if (self::$isInserted) {
            self::$isInserted = false;
            $wpdb = $GLOBALS['wpdb'];
            (int) $wpdb->rows_affected === 1 && (int) $wpdb->insert_id > 0 ? self::add((int) $wpdb->insert_id) : self::$ids = null;
        }
    }

    /** @param mixed $before the post in the object cache, if it is there */
    private static function add(int $id, mixed $before = null): void
    {
        if (self::$ids !== null) {
            $isKnown = is_object($before) && (self::$ids[$id] ?? null) !== false;
            self::$ids[$id] = $isKnown ? self::$ids[$id] ?? new \WP_Post(clone $before) : false;
            self::$ids = count(self::$ids) > self::IDS_MAX ? null : self::$ids;
        }
    }
}
