<?php

/**
 * The caching headers that WordPress, the theme or another plugin has set: they precede those of this plugin.
 *
 *     Cache-Control: no-cache, must-revalidate, max-age=0    nocache_headers(): not this page
 *     Cache-Control: max-age=60                              at most 60 seconds
 *     CDN-Cache-Control, Surrogate-Control                   the same for caches of the server: they precede Cache-Control
 *     Expires, Pragma: no-cache                              the same where there is no Cache-Control
 *
 * WordPress sends such fields with each 404. Those are its own, and say nothing about the page.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Read;

/**
 * Reads the fields of the response; has no state.
 *
 * @internal
 */
final class ExistingHeaders
{
    /** Fields for caches of the server, the most specific first. Each replaces those after it. */
    private const FIELDS = ['pagewell-cache-control', 'surrogate-control', 'cdn-cache-control', 'cache-control'];

    private function __construct()
    {
    }

    /** Returns how long the fields permit to store the page, in seconds; 0: not at all. Null: there is no such field. */
    public static function seconds(): ?int
    {
        foreach (self::FIELDS as $name) {
            $value = self::value($name);
            if ($value !== '' && !($name === 'cache-control' && self::isOfMissing($value))) {
                return self::permitted($value);
            }
        }
        if (self::value('cache-control') !== '') {
            return null;
        }
        $expires = self::value('expires');
        return match (true) {
            str_contains(strtolower(self::value('pragma')), 'no-cache') => 0,
            $expires !== '' => max(0, (int) strtotime($expires) - time()),
            default => null,
        };
    }

    /** Whether a field is one client's: `Cart-Token`, `Nonce`, `X-WP-Nonce`, `X-Session`. */
    public static function haveSecret(): bool
    {
        return preg_grep('/^[^:]*(token|nonce|csrf|xsrf|session|password|secret|jwt)/i', headers_list()) !== [];
    }

    /** Returns the values of a response field so far, joined. */
    public static function value(string $name): string
    {
        $values = [];
        foreach (headers_list() as $line) {
            [$found, $value] = explode(':', $line, 2) + ['', ''];
            if (strcasecmp(trim($found), $name) === 0) {
                $values[] = trim($value);
            }
        }
        return implode(', ', $values);
    }

    /** Whether this is the field that WordPress itself sends with a 404. */
    private static function isOfMissing(string $value): bool
    {
        return is_404() && $value === (string) (wp_get_nocache_headers()['Cache-Control'] ?? '');
    }

    /** A field without a time says nothing about it, so that the plugin's own counts. */
    private static function permitted(string $value): ?int
    {
        if (preg_match('/(?<![\w-])(private|no-store|no-cache)(?![\w-])/i', $value) === 1) {
            return 0;
        }
        foreach (['s-maxage', 'max-age'] as $directive) {
            if (preg_match("/(?<![\\w-])$directive\\s*=\\s*\"?(\\d{1,9})/i", $value, $found) === 1) {
                return (int) $found[1];
            }
        }
        return null;
    }
}
