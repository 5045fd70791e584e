<?php

/**
 * The names of data in header fields.
 *
 *     uses('news')     "news"                changed('news')     "news", "news:*"
 *     uses('news', 4)  "news:4", "news:*"    changed('news', 4)  "news", "news:4"
 *
 * A change purges a page if they share a tag. A change with an id purges the pages of that id and
 * those of the whole kind; one without an id purges every page of the kind. Names are
 * percent-encoded. So two different names never produce the same tag, and a tag is printable ASCII,
 * as a String has to be (RFC 9651 section 3.3.3). A tag has at most 1,024 bytes.
 */

declare(strict_types=1);

namespace Pagewell\Core;

use Pagewell\Core\Exception\InvalidTag;

/** Creates tags; has no state. */
final class Tag
{
    /** Maximum length of a tag in Pagewell, in bytes. */
    public const BYTES_MAX = 1024;

    /** Maximum length of an encoded kind, in bytes, so that a hashed id still fits. */
    public const KIND_BYTES_MAX = 256;

    private function __construct()
    {
    }

    /**
     * Returns the tag of a kind as a whole: `news`.
     *
     * @throws InvalidTag the name is empty or longer than KIND_BYTES_MAX
     */
    public static function whole(string $kind): string
    {
        if ($kind === '') {
            throw new InvalidTag('A kind of data needs a name; it was empty.');
        }
        $name = self::encode($kind, '%:*');
        if (strlen($name) > self::KIND_BYTES_MAX) {
            throw new InvalidTag(sprintf('The name of a kind is at most %d bytes: %s…', self::KIND_BYTES_MAX, substr($name, 0, 40)));
        }
        return $name;
    }

    /**
     * Returns a kind that a program names. A colon in it is a tag by mistake: `news:4`.
     *
     * @param string $function for the message
     *
     * @throws InvalidTag it has a colon
     */
    public static function kind(string $function, string $kind): string
    {
        if (str_contains($kind, ':')) {
            [$name, $id] = explode(':', $kind, 2);
            $tags = str_starts_with($function, 'uses') ? 'usesTags' : 'changedTags';
            throw new InvalidTag("$function('$kind'): a kind has no colon. Write $function('$name', '$id'), or $tags('$kind') for a tag as it stands.");
        }
        return $kind;
    }

    /**
     * Returns the tag of one row of a kind: `news:4`.
     *
     * An id too long for a tag is replaced by its SHA-256, on pages and changes alike.
     *
     * @throws InvalidTag the kind or the id is empty
     */
    public static function one(string $kind, int|string $id): string
    {
        if ($id === '') {
            throw new InvalidTag("An id of the kind '$kind' was empty.");
        }
        $tag = self::whole($kind) . ':' . self::encode((string) $id, '%*');
        if (strlen($tag) > self::BYTES_MAX) {
            return self::whole($kind) . ':%sha256-' . hash('sha256', (string) $id);
        }
        return $tag;
    }

    /**
     * Returns the tag for an application's own tag, such as Drupal's `node:4`. Bytes other than
     * printable ASCII are percent-encoded, and a tag that is too long is replaced by its SHA-256.
     *
     * @throws InvalidTag it is empty
     */
    public static function raw(string $tag): string
    {
        if ($tag === '') {
            throw new InvalidTag('A tag was empty.');
        }
        $encoded = self::encode($tag, '');
        return strlen($encoded) > self::BYTES_MAX ? '%sha256-' . hash('sha256', $tag) : $encoded;
    }

    /**
     * Returns the tag of every page that depends on single rows of a kind: `news:*`.
     *
     * @throws InvalidTag see whole()
     */
    public static function any(string $kind): string
    {
        return self::whole($kind) . ':*';
    }

    /**
     * Returns the lines of a structured field with these tags: a List of Strings (RFC 9651 section
     * 3.1); several lines are one List. A line is shorter than 8,000 bytes, the limit of common
     * servers.
     *
     * @param list<string> $tags
     *
     * @return list<string> `Name: "tag", "tag"`; empty without tags
     */
    public static function lines(string $field, array $tags): array
    {
        $lines = [];
        $line = '';
        foreach ($tags as $tag) {
            $string = self::string($tag);
            if ($line !== '' && strlen($line) + strlen($string) > 7900) {
                $lines[] = $line;
                $line = '';
            }
            $line .= ($line === '' ? "$field: " : ', ') . $string;
        }
        return $line === '' ? $lines : [...$lines, $line];
    }

    /** @return list<string> the tags in the value of such a field */
    public static function listed(string $value): array
    {
        preg_match_all('/"((?:[^"\\\\]|\\\\.)*+)"/', $value, $found);
        return array_map(stripslashes(...), $found[1]);
    }

    /** Returns the length of a tag in such a line with its separator, in bytes. */
    public static function bytes(string $tag): int
    {
        return strlen(self::string($tag)) + 2;
    }

    /** RFC 9651 section 4.1.6: only the quote and the backslash are escaped. */
    private static function string(string $tag): string
    {
        return '"' . addcslashes($tag, '"\\') . '"';
    }

    /** Percent-encodes all bytes other than printable ASCII, and the given reserved ones. */
    private static function encode(string $name, string $reserved): string
    {
        $pattern = '/[^\x20-\x7e]' . ($reserved === '' ? '' : '|[' . preg_quote($reserved, '/') . ']') . '/';
        return (string) preg_replace_callback($pattern, static fn (array $byte): string => sprintf('%%%02X', ord($byte[0])), $name);
    }
}
