<?php

/**
 * The functions of the library as an object, for applications that inject their dependencies.
 *
 *     final class News { public function __construct(private PageCache $pages) {} … $this->pages->changed('news', 4); }
 *
 * The integrations for Symfony, Laravel and Drupal register RequestPageCache as the service of this
 * name. In a test of a class that gets it, an object of your own implements it.
 */

declare(strict_types=1);

namespace Pagewell;

use Pagewell\Core\Exception\ChangeBeforeCommit;
use Pagewell\Core\Exception\InvalidLifetime;
use Pagewell\Core\Exception\InvalidTag;
use Pagewell\Core\Exception\PagewellException;
use Pagewell\Core\Exception\UseAfterHeaders;
use Pagewell\Core\Refusal;
use Pagewell\Core\Tag;

/** Declares what the running request depends on and what it has changed. */
interface PageCache
{
    /**
     * Declares that the page depends on a kind of data as a whole, or on these rows of it.
     *
     * @throws InvalidTag|UseAfterHeaders see Pagewell\uses()
     */
    public function uses(string $kind, int|string|object ...$ids): void;

    /**
     * Declares which rows of a set the page shows, and limits its TTL.
     *
     * @param list<int|string|object> $ids     the ids of the rows shown; may be empty
     * @param int              $seconds the maximum TTL
     *
     * @throws InvalidTag|InvalidLifetime|UseAfterHeaders see Pagewell\usesList()
     */
    public function usesList(string $kind, array $ids, int $seconds): void;

    /**
     * Declares that the page depends on these tags, unchanged.
     *
     * @throws InvalidTag|UseAfterHeaders see Pagewell\usesTags()
     */
    public function usesTags(string ...$tags): void;

    /**
     * Limits the TTL of the page, in seconds.
     *
     * @throws InvalidLifetime|UseAfterHeaders see Pagewell\freshFor()
     */
    public function freshFor(int $seconds): void;

    /**
     * Declares that the page must not be cached, whatever else it declares.
     *
     * @throws UseAfterHeaders see Pagewell\notCached()
     */
    public function notCached(): void;

    /**
     * Reports that the visitor is signed in, for a login that no integration knows: the page is not
     * cached, whatever it declares. Has no effect after the header section was sent.
     */
    public function signedIn(): void;

    /**
     * Declares what a write has changed: a kind, an id, and parents by name.
     *
     * @throws PagewellException see Pagewell\changed()
     */
    public function changed(int|string|object|null ...$said): void;

    /**
     * Declares that a write has changed data with these tags, unchanged.
     *
     * @throws PagewellException see Pagewell\changedTags()
     */
    public function changedTags(string ...$tags): void;

    /**
     * Like changed(), but stale pages may be served for a moment while they are refreshed.
     *
     * @throws PagewellException see Pagewell\changedSoftly()
     */
    public function changedSoftly(int|string|object|null ...$said): void;

    /**
     * Like changed(), but calls the control interface at once.
     *
     * @return int the number of purged pages
     *
     * @throws ChangeBeforeCommit|PagewellException see Pagewell\changedNow()
     */
    public function changedNow(int|string|object|null ...$said): int;

    /**
     * Purges pages at once, by URL, by tag, or all of them.
     *
     * @param list<string> $urls paths with their query, or whole URLs
     * @param list<string> $tags as Tag returns them
     * @param bool         $soft mark as stale instead of purging
     *
     * @return int the number of purged pages
     *
     * @throws PagewellException see Pagewell\invalidate()
     */
    public function invalidate(array $urls = [], array $tags = [], bool $all = false, bool $soft = false): int;

    /**
     * Sends waiting changes at once.
     *
     * @return int the number of purged pages
     *
     * @throws PagewellException see Pagewell\flush()
     */
    public function flush(): int;

    /** Returns the reason why the page would not be offered for caching now; null if it would be. */
    public function refusal(): ?Refusal;

    /** @return list<string> the tags that the page has declared so far */
    public function tags(): array;
}
