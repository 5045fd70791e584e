<?php

/**
 * How data is named on the wire.
 *
 *     uses('news')     "news"                changed('news')     "news", "news:*"
 *     uses('news', 4)  "news:4", "news:*"    changed('news', 4)  "news", "news:4"
 *
 * A page and a change meet when they share a tag: a change with an id reaches the pages of
 * that id and those of the whole kind; one without reaches everything of the kind. Names are
 * percent-encoded so that two different names never make the same tag, and so that a tag is
 * printable ASCII, as RFC 9651 section 3.3.3 wants a String to be. At most 1,024 bytes.
 */

declare(strict_types=1);

namespace Pagewell;

/** Makes tags; there is nothing to hold. */
final class Tag
{
    /** The longest tag that Pagewell takes, in bytes. */
    public const BYTES_MAX = 1024;

    /** The longest name of a kind, in bytes once encoded: room must be left for a hashed id. */
    public const KIND_BYTES_MAX = 256;

    private function __construct()
    {
    }

    /**
     * The tag of a kind as a whole: `news`.
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
     * The tag of one of a kind: `news:4`.
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
     * A tag that an application has already, as it is: Drupal's `node:4`. Other bytes than printable
     * ASCII are percent-encoded, and one that is too long is replaced by its SHA-256.
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
     * The tag that every page carries which uses some of a kind by id: `news:*`.
     *
     * @throws InvalidTag as whole()
     */
    public static function any(string $kind): string
    {
        return self::whole($kind) . ':*';
    }

    /**
     * Lines of a structured field that lists these tags: RFC 9651 section 3.1, a List of
     * Strings; several lines are one List. A line stays under 8,000 bytes, which every
     * server between takes.
     *
     * @param list<string> $tags
     *
     * @return list<string> `Name: "tag", "tag"`; none for no tags
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

    /** How many bytes a tag takes in such a line, with what stands between two of them. */
    public static function bytes(string $tag): int
    {
        return strlen(self::string($tag)) + 2;
    }

    /** RFC 9651 section 4.1.6: only the quote and the backslash are escaped. */
    private static function string(string $tag): string
    {
        return '"' . addcslashes($tag, '"\\') . '"';
    }

    /** Percent-encodes what is not printable ASCII, and the given bytes that mean something in a tag. */
    private static function encode(string $name, string $reserved): string
    {
        $pattern = '/[^\x20-\x7e]' . ($reserved === '' ? '' : '|[' . preg_quote($reserved, '/') . ']') . '/';
        return (string) preg_replace_callback($pattern, static fn (array $byte): string => sprintf('%%%02X', ord($byte[0])), $name);
    }
}
