<?php

/**
 * The text of a prepared statement with its values, as the server understands it.
 *
 *     mode       value bound as          text
 *     both       null, PARAM_NULL        NULL
 *     both       PARAM_STR               the value as a text, in quotes
 *     emulated   PARAM_INT, PARAM_BOOL   the value as a whole number, 1 or 0: PDO sends the same text
 *     native     PARAM_INT, PARAM_BOOL   as its type is: a number, or a text in quotes
 *     both       anything else           null: the list of statements is incomplete
 *
 * PDO finds the placeholders of a text by rules of its own, the server by others. A text in which they could find
 * different ones has no result: `#`, `::`, `??`, `:=`, a comment that the server executes, or a placeholder within
 * quotes of names.
 */

declare(strict_types=1);

namespace Pagewell\Capture;

/**
 * Writes values into the text of a statement.
 *
 * @internal
 */
final class StatementText
{
    /** Constants, names in quotes, comments, placeholders, and everything between them. */
    private const PART = '~\G(?:'
        . "'(?:[^'\\\\]++|\\\\.|'')*+'"
        . '|"(?:[^"\\\\]++|\\\\.|"")*+"'
        . '|`[^`?:]*+`'
        . '|/\*(?!M?!)[^*]*+(?:\*(?!/)[^*]*+)*+\*/'
        . '|--[ \t][^\r\n]*+(?=\r?\n|\z)'
        . '|(?<place>\?(?!\?)|:[a-zA-Z0-9_]++(?![:=]))'
        . '|[^\'"`#/\-:?]++'
        . '|-(?!-)|/(?!\*)'
        . ')~As';

    /**
     * Returns the text of a statement with its values; null if it is not certain what the server understands.
     *
     * @param string                                        $query      the text with placeholders
     * @param array<int|string, array{mixed, int}>          $values     value and PDO::PARAM_* by position (from 1) or name (with a colon)
     * @param bool                                          $isEmulated whether PDO writes the values into the text itself
     * @param callable(string): (string|false)              $quote      PDO::quote() of the connection
     */
    public static function of(string $query, array $values, bool $isEmulated, callable $quote): ?string
    {
        [$text, $at, $position] = ['', 0, 0];
        while ($at < strlen($query)) {
            if (preg_match(self::PART, $query, $part, PREG_UNMATCHED_AS_NULL, $at) !== 1) {
                return null;
            }
            $at += strlen($part[0]);
            $place = $part['place'] ?? null;
            if ($place === null) {
                $text .= $part[0];
                continue;
            }
            $bound = $values[$place === '?' ? ++$position : $place] ?? null;
            $constant = $bound === null ? null : self::constant($bound[0], $bound[1], $isEmulated, $quote);
            if ($constant === null) {
                return null;
            }
            // The server takes a value of its own for one word. Blanks keep it apart from those beside it.
            $text .= $isEmulated ? $constant : " $constant ";
        }
        return $text;
    }

    /**
     * Returns a value as PDO keeps it when it is bound: PDO converts some at once.
     */
    public static function bound(mixed $value, int $type): mixed
    {
        return match (true) {
            $value === null || !is_scalar($value) => $value,
            $type === \PDO::PARAM_STR => (string) $value,
            $type === \PDO::PARAM_INT && is_bool($value) => (int) $value,
            $type === \PDO::PARAM_BOOL && is_int($value) => (bool) $value,
            default => $value,
        };
    }

    /** @param callable(string): (string|false) $quote */
    private static function constant(mixed $value, int $type, bool $isEmulated, callable $quote): ?string
    {
        if ($value === null || $type === \PDO::PARAM_NULL) {
            return 'NULL';
        }
        if (!is_scalar($value) || !in_array($type, [\PDO::PARAM_STR, \PDO::PARAM_INT, \PDO::PARAM_BOOL], true)) {
            return null;
        }
        return match (true) {
            $isEmulated && $type === \PDO::PARAM_BOOL => $value ? '1' : '0',
            $isEmulated && $type === \PDO::PARAM_INT => (string) (int) $value,
            $isEmulated, is_string($value) => $quote((string) $value) ?: null,
            is_float($value) => null,
            default => (string) (int) $value,
        };
    }
}
