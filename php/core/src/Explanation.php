<?php

/**
 * How Pagewell answers a page: `POST /v1/explain`, with the parts that an application can use.
 *
 * A value object. `lines()` is the text of the commands pagewell:explain and `wp pagewell explain`;
 * `pagewell explain`, of the program, prints more.
 */

declare(strict_types=1);

namespace Pagewell\Core;

/** The explanation of one page. */
final class Explanation
{
    /**
     * @param string       $url        the whole URL
     * @param string       $verdict    `hit`, `render` and others: what the next request gets
     * @param string       $sentence   the same as a sentence
     * @param string|null  $reason     why it is not a hit
     * @param string|null  $remedy     what to do about it
     * @param list<string> $tags       on which the cached page depends; empty if it is not cached
     * @param int|null     $ttlSeconds for how long it is fresh; null if it is not cached
     * @param bool         $hasReads   whether it depends on the rows of its SQL statements as well
     * @param string|null  $notStored  why the last render was not stored; null if it was, or if there was none
     */
    private function __construct(
        public readonly string $url,
        public readonly string $verdict,
        public readonly string $sentence,
        public readonly ?string $reason,
        public readonly ?string $remedy,
        public readonly array $tags,
        public readonly ?int $ttlSeconds,
        public readonly bool $hasReads,
        public readonly ?string $notStored,
    ) {
    }

    /**
     * Reads the response of the control interface.
     *
     * @param array<mixed> $said as decoded from JSON
     *
     * @return self|null null if it is not an explanation of a page
     */
    public static function of(array $said): ?self
    {
        $text = static fn (mixed $value): ?string => is_string($value) && $value !== '' ? $value : null;
        if ($text($said['url'] ?? null) === null || $text($said['verdict'] ?? null) === null) {
            return null;
        }
        $page = is_array($said['page'] ?? null) ? $said['page'] : [];
        $last = is_array($said['last_render'] ?? null) ? $said['last_render'] : [];
        return new self(
            $said['url'],
            $said['verdict'],
            $text($said['sentence'] ?? null) ?? '',
            $text($said['reason'] ?? null),
            $text($said['remedy'] ?? null),
            array_values(array_filter(is_array($page['tags'] ?? null) ? $page['tags'] : [], is_string(...))),
            is_int($page['ttl_seconds'] ?? null) ? $page['ttl_seconds'] : null,
            is_array($page['reads'] ?? null),
            ($last['stored'] ?? true) === false ? $text($last['reason'] ?? null) ?? 'unknown' : null,
        );
    }

    /** Whether the next request is answered from the cache. */
    public function isHit(): bool
    {
        return $this->verdict === 'hit';
    }

    /** @return list<string> the explanation as text, one fact a line */
    public function lines(): array
    {
        $facts = [
            '' => $this->url,
            $this->verdict => $this->sentence,
            'reason' => $this->reason,
            'remedy' => $this->remedy,
            'depends on' => $this->tags === [] ? null : implode(', ', $this->tags),
            'fresh for' => $this->ttlSeconds === null ? null : "$this->ttlSeconds seconds",
            'last render' => $this->notStored === null ? null : "not stored: $this->notStored",
        ];
        $facts = array_filter($facts, static fn (?string $fact): bool => $fact !== null && $fact !== '');
        return array_map(static fn (string $name, string $fact): string => $name === '' ? $fact : sprintf('  %-12s %s', $name, $fact), array_keys($facts), $facts);
    }
}
