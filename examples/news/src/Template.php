<?php

/**
 * Templates are PHP files in templates/ that see the values given to them and `$e`.
 *
 * `$e` makes text safe to stand in HTML; whatever a template prints goes through it, save
 * the content that the layout is put around.
 */

declare(strict_types=1);

namespace News;

/** Fills templates in. */
final class Template
{
    /**
     * @param string               $name   file name in templates/, without `.php`
     * @param array<string, mixed> $values what the template sees, by variable name
     */
    public static function render(string $name, array $values = []): string
    {
        $values['e'] = self::escape(...);
        $level = ob_get_level();
        ob_start();
        try {
            (static function (string $__file, array $__values): void {
                extract($__values);
                require $__file;
            })(__DIR__ . "/../templates/$name.php", $values);
            return (string) ob_get_clean();
        } finally {
            while (ob_get_level() > $level) {
                ob_end_clean();
            }
        }
    }

    /** Text as it may stand in HTML, in an attribute too. */
    public static function escape(string|int $text): string
    {
        return htmlspecialchars((string) $text, ENT_QUOTES | ENT_SUBSTITUTE);
    }

    /**
     * @return list<string> the paragraphs of a text, divided by empty lines
     */
    public static function paragraphs(string $text): array
    {
        return preg_split('/\s*\R\s*\R\s*/', trim($text)) ?: [];
    }

    /** `2026-11-20 18:04:00` as `20 November 2026`, with the time of day where asked. */
    public static function date(string $time, bool $withTime = false): string
    {
        return (new \DateTimeImmutable($time))->format($withTime ? 'j F Y, H:i' : 'j F Y');
    }
}
