<?php

/**
 * Reads the tags that the library has put onto a response: for the tests of an application.
 *
 *     ResponseTags::of($response->headers->all('Cache-Groups'))                  what the page depends on
 *     ResponseTags::of($response->headers->all('Cache-Group-Invalidation'))      what the write has changed
 *
 * A List of Strings (RFC 9651 section 3.1). Everything, the token `*`, is returned as Changes::tags()
 * cannot: as `*`.
 */

declare(strict_types=1);

namespace Pagewell\Testing;

use Pagewell\Core\Changes;
use Pagewell\Core\Declaration;

/** Reads fields of responses. */
final class ResponseTags
{
    private function __construct()
    {
    }

    /**
     * @param list<string|null> $values of the field, one for each line
     *
     * @return list<string> the tags
     */
    public static function of(array $values): array
    {
        $text = implode(', ', array_filter($values, is_string(...)));
        preg_match_all('/"((?:[^"\\\\]|\\\\.)*)"|(?<=^|[ ,])\*(?=$|[ ,])/', $text, $found, PREG_SET_ORDER);
        return array_map(static fn (array $item): string => isset($item[1]) ? (string) preg_replace('/\\\\(.)/', '$1', $item[1]) : '*', $found);
    }

    /**
     * Whether a page with these tags depends on these rows, or on the kind as a whole.
     *
     * @param list<string> $tags of the page
     */
    public static function dependOn(array $tags, string $kind, int|string ...$ids): bool
    {
        return array_diff((new Declaration())->uses($kind, ...$ids)->tags(), $tags) === [];
    }

    /**
     * Whether a write with these tags has changed this.
     *
     * @param list<string> $tags of the write
     */
    public static function contain(array $tags, string $kind, int|string|null $id = null): bool
    {
        return in_array('*', $tags, true) || array_diff(Changes::byControl()->changed($kind, $id)->tags(), $tags) === [];
    }
}
