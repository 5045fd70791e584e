<?php

/**
 * The page as an ESI template, with fragments that Pagewell inserts for each client
 * (docs/guide/esi.md).
 *
 *     the request has Surrogate-Capability: …="ESI/1.0"   `<esi:include …/>`, and the response has
 *                                                          Surrogate-Control: content="ESI/1.0"
 *     it does not                                          what the function returns or prints
 *     the address cannot be written safely                 the same: it has dot segments, or is too long
 *
 * The response has the field from the first element on. It is set once more before sending, because
 * an application may overwrite it. No character of a URL can end its attribute.
 */

declare(strict_types=1);

namespace Pagewell\Core;

use Pagewell\Core\Exception\InvalidFragment;

/**
 * Writes the elements of fragments.
 *
 * @internal
 */
final class Template
{
    /** Maximum length of an encoded URL; a fragment with a longer one is rendered in place. */
    public const SRC_BYTES_MAX = 4096;

    private const FIELD = 'Surrogate-Control';

    private bool $isOne = false;

    public function __construct(private readonly ResponseChannel $channel)
    {
    }

    /**
     * @param callable(): mixed $render see Pagewell\fragment()
     *
     * @throws InvalidFragment an address is no path of this site
     */
    public function fragment(string $src, callable $render, ?string $alt, bool $continue): string
    {
        $attributes = ['src' => self::written($src), ...($alt === null ? [] : ['alt' => self::written($alt)])];
        if (in_array(null, $attributes, true) || !self::isUnderstood($this->channel->capability())) {
            return self::rendered($render);
        }
        $this->isOne = true;
        $this->write();
        $attributes += $continue ? ['onerror' => 'continue'] : [];
        $named = array_map(static fn (string $name, string $value): string => " $name=\"$value\"", array_keys($attributes), $attributes);
        return '<esi:include' . implode('', $named) . '/>';
    }

    /** Whether an element was written, so that the page is a template. */
    public function isOne(): bool
    {
        return $this->isOne;
    }

    /** Adds Surrogate-Control if the page is a template and the field is missing. */
    public function write(): void
    {
        $said = array_filter($this->channel->response()->values(self::FIELD));
        if ($this->isOne && !self::says($said)) {
            $this->channel->set([self::FIELD . ': ' . implode(', ', [...$said, 'content="ESI/1.0"'])], replace: self::FIELD);
        }
    }

    /**
     * Whether the client interprets a response with these values of Surrogate-Control as a
     * template.
     *
     * @param array<string> $values
     */
    private static function says(array $values): bool
    {
        return preg_match('~(?:^|,)\s*content="(?:[^"]*\s)?ESI/1\.0(?:\s[^"]*)?"\s*(?:,|$)~i', implode(', ', $values)) === 1;
    }

    private static function isUnderstood(string $capability): bool
    {
        return preg_match('~="(?:[^"]*\s)?ESI/1\.0(?:\s[^"]*)?"~', $capability) === 1;
    }

    /**
     * Encodes a URL as the value of an attribute: invalid characters are percent-encoded. Null if
     * it cannot be written safely.
     */
    private static function written(string $address): ?string
    {
        if (preg_match('~^/(?![/\\\\])~', $address) !== 1) {
            throw new InvalidFragment('A fragment is a path of this site, /box?of=4, and not ' . json_encode(substr($address, 0, 200), JSON_INVALID_UTF8_SUBSTITUTE) . '.');
        }
        // Shortened first, so that long input costs no time.
        $address = substr($address, 0, self::SRC_BYTES_MAX + 1);
        $encoded = (string) preg_replace_callback(
            "~%(?![0-9A-Fa-f]{2})|[^A-Za-z0-9\\-._\\~:/?\\[\\]@!$&'()*+,;=%]~",
            static fn (array $found): string => sprintf('%%%02X', ord($found[0])),
            $address,
        );
        $written = htmlspecialchars($encoded, ENT_QUOTES | ENT_XML1, 'UTF-8');
        $hasDots = preg_match('~/(?:\.|%2e){1,2}(?:/|$)~i', explode('?', $encoded, 2)[0]) === 1;
        return $hasDots || strlen($written) > self::SRC_BYTES_MAX ? null : $written;
    }

    /** Returns the printed output of a function and its return value as text, so that a file can be included. */
    private static function rendered(callable $render): string
    {
        $level = ob_get_level();
        ob_start();
        try {
            $returned = $render();
        } catch (\Throwable $fault) {
            self::printed($level);
            throw $fault;
        }
        return self::printed($level) . (is_string($returned) || $returned instanceof \Stringable ? (string) $returned : '');
    }

    private static function printed(int $level): string
    {
        $printed = '';
        while (ob_get_level() > $level && is_string($inner = ob_get_clean())) {
            $printed = $inner . $printed;
        }
        return $printed;
    }
}
