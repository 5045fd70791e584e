<?php

/**
 * The post whose children a query is for, by the SQL of the query.
 *
 * A query for the children of one post depends on the posts below that post, and on no others of their type. The SQL
 * decides, because plugins may change it: all conditions must be joined by AND, and one of them must name the parent.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Read;

/**
 * Reads the SQL of a query, and names the parents of posts; has no state.
 *
 * @internal
 */
final class QueryParent
{
    private function __construct()
    {
    }

    /**
     * The name for anything about the posts that have the same parent as this one; none without a parent.
     *
     * @return list<string>
     */
    public static function below(?object $post): array
    {
        return (int) ($post->post_parent ?? 0) > 0 ? ['below:' . (int) $post->post_parent] : [];
    }

    /** Returns the post whose children a query is for, perhaps with that post itself; 0 if its SQL may find others. */
    public static function of(string $sql): int
    {
        $posts = preg_quote((string) $GLOBALS['wpdb']->posts, '/');
        $parts = [];
        $flat = preg_replace_callback('/\((?:[^()]++|(?R))*+\)/', static function (array $found) use (&$parts): string {
            $parts[] = $found[0];
            return '#' . (count($parts) - 1) . '#';
        }, (string) preg_replace('/\'(?:[^\'\\\\]++|\\\\.)*+\'|"(?:[^"\\\\]++|\\\\.)*+"/s', '?', $sql));
        if (preg_match('/^\s*SELECT\s[^;]*?\sWHERE\s(.*?)(?:\s(?:GROUP BY|HAVING|ORDER BY|LIMIT)\s.*)?$/is', (string) $flat, $found) !== 1 || preg_match('/\b(UNION|OR|XOR)\b|\|\|/i', (string) $flat) === 1) {
            return 0;
        }
        foreach (preg_split('/\sAND\s/i', $found[1]) ?: [] as $condition) {
            $condition = (string) preg_replace_callback('/^#(\d+)#$/', static fn (array $part): string => $parts[(int) $part[1]], trim($condition));
            if (preg_match("/^$posts\.post_parent = (\d+)$/", $condition, $id) === 1 || preg_match("/^\($posts\.ID = (\d+) OR $posts\.post_parent = \\1\)$/", $condition, $id) === 1) {
                return (int) $id[1];
            }
        }
        return 0;
    }
}
