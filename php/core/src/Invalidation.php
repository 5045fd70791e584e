<?php

/**
 * One call to `POST /v1/invalidate`: tags, URLs, or everything.
 *
 * A value object. The tags and URLs of one call are one change. Hard: the pages are purged when the
 * call returns. Soft: they are stale, and may be served for a moment while one render refreshes
 * them, if the site allows that. At most TAGS_MAX tags per call; batches() makes several calls.
 */

declare(strict_types=1);

namespace Pagewell\Core;

use Pagewell\Core\Exception\InvalidTag;

/** The pages to purge. */
final class Invalidation
{
    /** Maximum number of tags and of URLs per call. Pagewell accepts 16 MiB: twice as many of the longest tags. */
    public const TAGS_MAX = 5000;

    /**
     * @param list<string> $tags tags as Changes::tags() and Tag return them, not kinds and ids
     * @param list<string> $urls paths with their query, `/news/4/`, or whole URLs
     * @param bool         $all  every page
     * @param bool         $soft mark as stale instead of purging
     * @param string|null  $site only of the site with this host; null means every site
     */
    public function __construct(
        public readonly array $tags = [],
        public readonly array $urls = [],
        public readonly bool $all = false,
        public readonly bool $soft = false,
        public readonly ?string $site = null,
    ) {
    }

    /**
     * Returns calls for everything in place of these: one for each of their sites. A call that could not be read
     * is of every site.
     *
     * @param array<self|null> $calls
     *
     * @return list<self>
     */
    public static function everythingInPlaceOf(array $calls): array
    {
        $sites = array_unique(array_map(static fn (?self $call): ?string => $call?->site, $calls));
        return array_values(array_map(static fn (?string $site): self => new self(all: true, site: $site), $sites));
    }

    /** Whether it contains no tag and no URL, and is not for everything. */
    public function isEmpty(): bool
    {
        return $this->tags === [] && $this->urls === [] && !$this->all;
    }

    /** Returns the same call for one site. */
    public function for(?string $site): self
    {
        return new self($this->tags, $this->urls, $this->all, $this->soft, $site);
    }

    /**
     * @return list<self> calls of at most TAGS_MAX tags and TAGS_MAX URLs; empty if there is nothing to purge
     */
    public function batches(): array
    {
        $tags = array_chunk($this->tags, self::TAGS_MAX);
        $urls = array_chunk($this->urls, self::TAGS_MAX);
        $batches = [];
        for ($at = 0; $at < max(count($tags), count($urls), (int) $this->all); $at++) {
            $batches[] = new self($tags[$at] ?? [], $urls[$at] ?? [], $this->all && $at === 0, $this->soft, $this->site);
        }
        return $batches;
    }

    /**
     * Returns the body of the call. Empty fields are left out.
     *
     * @throws InvalidTag a tag or URL is not UTF-8; those of Tag always are
     */
    public function json(): string
    {
        $fields = array_filter(
            ['tags' => $this->tags, 'urls' => $this->urls, 'all' => $this->all, 'soft' => $this->soft, 'site' => $this->site],
            static fn (mixed $value): bool => $value !== [] && $value !== false && $value !== null,
        );
        try {
            return json_encode((object) $fields, JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE);
        } catch (\JsonException $fault) {
            throw new InvalidTag('A tag or URL cannot be said in JSON: ' . $fault->getMessage(), 0, $fault);
        }
    }

    /** Returns the call with this body, as json() has written it; null if it is damaged. */
    public static function ofJson(string $json): ?self
    {
        $said = json_decode($json, true, 4);
        $isList = static fn (mixed $list): bool => is_array($list) && array_is_list($list) && array_filter($list, is_string(...)) === $list;
        if (!is_array($said) || !$isList($said['tags'] ?? []) || !$isList($said['urls'] ?? []) || !is_string($said['site'] ?? '')) {
            return null;
        }
        $call = new self($said['tags'] ?? [], $said['urls'] ?? [], ($said['all'] ?? false) === true, ($said['soft'] ?? false) === true, $said['site'] ?? null);
        return $call->isEmpty() ? null : $call;
    }
}
