<?php

/**
 * A request as the controllers see it: method, path, what the path's pattern matched, fields
 * of the query and of the form.
 *
 * Everything that comes from outside is checked here to be text (UTF-8, no arrays).
 */

declare(strict_types=1);

namespace News;

/** One request. */
final class Request
{
    /**
     * @param string               $method  upper case
     * @param string               $path    as sent, without the query, still percent-encoded
     * @param array<string, mixed> $query   fields of the query
     * @param array<string, mixed> $form    fields of the form
     * @param array<string, string> $matched named parts of the path, decoded
     * @param string               $origin  scheme and host, for links that leave the site
     */
    public function __construct(
        public readonly string $method,
        public readonly string $path,
        private readonly array $query = [],
        private readonly array $form = [],
        private readonly array $matched = [],
        public readonly string $origin = '',
    ) {
    }

    /** The request that PHP is running for. */
    public static function received(): self
    {
        $path = explode('?', (string) ($_SERVER['REQUEST_URI'] ?? '/'), 2)[0];
        $host = (string) ($_SERVER['HTTP_HOST'] ?? '');
        $https = !in_array($_SERVER['HTTPS'] ?? '', ['', 'off'], true);
        $known = preg_match('/^[A-Za-z0-9.\-]+(:\d+)?$|^\[[0-9a-fA-F:.]+\](:\d+)?$/', $host) === 1;
        $origin = $known ? ($https ? 'https://' : 'http://') . $host : '';
        return new self((string) ($_SERVER['REQUEST_METHOD'] ?? 'GET'), $path, $_GET, $_POST, [], $origin);
    }

    /**
     * The same request, with what the pattern of its route matched.
     *
     * @param array<int|string, string> $parts as preg_match() gives them
     */
    public function matched(array $parts): self
    {
        $named = array_filter($parts, 'is_string', ARRAY_FILTER_USE_KEY);
        return new self($this->method, $this->path, $this->query, $this->form, array_map('rawurldecode', $named), $this->origin);
    }

    /** @return array<string, string> what the pattern of the route matched, by name */
    public function parameters(): array
    {
        return $this->matched;
    }

    /** A number from the path; the patterns let only digits through. */
    public function number(string $name): int
    {
        return (int) ($this->matched[$name] ?? '1');
    }

    /** A word from the path; empty when it is not UTF-8. */
    public function word(string $name): string
    {
        return self::text($this->matched[$name] ?? '');
    }

    /** A field of the query, without white space around it. */
    public function query(string $name): string
    {
        return self::text($this->query[$name] ?? '');
    }

    /** A field of the form, without white space around it. */
    public function form(string $name): string
    {
        return self::text($this->form[$name] ?? '');
    }

    private static function text(mixed $value): string
    {
        return is_string($value) && preg_match('//u', $value) === 1 ? trim($value) : '';
    }
}
