<?php

/**
 * The dependencies of one page, and the field lines that declare them.
 *
 * It sends nothing, so frameworks with response objects can use it. The fields:
 *
 *     Cache-Groups: "news:4", "news:*"             RFC 9875 section 2
 *     Pagewell-Cache-Control: max-age=86400        RFC 9213: for Pagewell only, which removes it
 *     Cache-Control: no-cache                      for browsers: revalidate, by ETag
 *
 * A page is cached until its data changes, for a day at most unless it says otherwise.
 */

declare(strict_types=1);

namespace Pagewell\Core;

use Pagewell\Core\Exception\InvalidLifetime;
use Pagewell\Core\Exception\InvalidTag;

/** Collects the dependencies of a page. */
final class Declaration
{
    /** TTL of a page that does not limit its own, in seconds: a day. */
    public const LIFETIME_SECONDS = 86_400;
    /** Maximum TTL of a page, in seconds: a year. */
    public const LIFETIME_SECONDS_MAX = 31_536_000;
    /** Maximum number of tags of a page. */
    public const TAGS_MAX = 1000;
    /** Maximum size of all tags of a page, in bytes as sent. */
    public const TAG_BYTES_MAX = 64 * 1024;
    /** The same where Pagewell is not in front: by default nginx accepts 4 KB of fields from PHP, and answers 502 beyond that. */
    public const TAG_BYTES_ELSEWHERE = 2048;
    /** @var array<string, true> tags, in the order of first use */
    private array $tags = [];
    private ?int $lifetimeSeconds = null;
    /** NotCached or SignedIn, if the application has said so. */
    private ?Refusal $said = null;

    /**
     * @param list<string> $sharedCookies further names of cookies that make no page personal: SharedCookies has the common ones
     */
    public function __construct(private readonly int $defaultSeconds = self::LIFETIME_SECONDS, private readonly array $sharedCookies = [])
    {
    }

    /**
     * Adds a dependency on a kind as a whole (no ids), or on these rows of it.
     *
     * @throws InvalidTag a name is empty or too long, or an id came by name
     */
    public function uses(string $kind, int|string ...$ids): self
    {
        if (!array_is_list($ids)) {
            throw new InvalidTag(sprintf("uses('%s', %s: …): ids have no names. Write uses('%1\$s', %3\$s).", $kind, array_key_first($ids), var_export(reset($ids), true)));
        }
        $tags = $ids === [] ? [Tag::whole($kind)] : array_map(static fn (int|string $id): string => Tag::one($kind, $id), $ids);
        if ($ids !== []) {
            $tags[] = Tag::any($kind);
        }
        foreach ($tags as $tag) {
            $this->add($tag);
        }
        return $this;
    }

    /**
     * Adds a dependency on the rows of a set (a search, a list by date) and limits the TTL, because
     * new rows of the set do not purge the page. More ids than fit are replaced by the kind as a
     * whole.
     *
     * @param list<int|string> $ids     the ids of the rows shown; may be empty
     * @param int              $seconds the maximum TTL
     *
     * @throws InvalidTag|InvalidLifetime as uses() and freshFor()
     */
    public function usesList(string $kind, array $ids, int $seconds): self
    {
        if (count($ids) > self::TAGS_MAX - 100) {
            $this->uses($kind);
        } elseif ($ids !== []) {
            $this->uses($kind, ...array_values($ids));
        }
        return $this->freshFor($seconds);
    }

    /**
     * Adds tags unchanged, for applications that have tags of their own.
     *
     * @throws InvalidTag a tag is empty
     */
    public function usesTags(string ...$tags): self
    {
        foreach (array_map(Tag::raw(...), array_values($tags)) as $tag) {
            $this->add($tag);
        }
        return $this;
    }

    /**
     * Limits the TTL. If it is called several times, the shortest time counts.
     *
     * @throws InvalidLifetime the time is negative
     */
    public function freshFor(int $seconds): self
    {
        if ($seconds < 0) {
            throw new InvalidLifetime("A page cannot be fresh for $seconds seconds.");
        }
        $this->lifetimeSeconds = min($seconds, $this->lifetimeSeconds ?? self::LIFETIME_SECONDS_MAX);
        return $this;
    }

    /** Forbids storing the page, whatever else is declared. */
    public function notCached(): self
    {
        $this->said ??= Refusal::NotCached;
        return $this;
    }

    /** Forbids storing the page, because it is rendered for a visitor who is signed in. */
    public function signedIn(): self
    {
        $this->said = Refusal::SignedIn;
        return $this;
    }

    /** @return list<string> the tags of the page */
    public function tags(): array
    {
        return array_map('strval', array_keys($this->tags));
    }

    /** Returns the shortest TTL so far, or the default, in seconds. */
    public function lifetimeSeconds(): int
    {
        return $this->lifetimeSeconds ?? $this->defaultSeconds;
    }

    /** Returns the reason why this page must not be stored; null if it may be. */
    public function refusal(Response $response): ?Refusal
    {
        $kept = $response->status < 400 || $response->status === 404 || $response->status === 410;
        return match (true) {
            $this->tags === [] && $this->lifetimeSeconds === null && $this->said === null => Refusal::Nothing,
            !in_array($response->method, ['GET', 'HEAD'], true) => Refusal::Method,
            !$kept || $response->failed => Refusal::Failed,
            $this->said !== null => $this->said,
            $response->session => Refusal::Session,
            !$response->isMarkedShared() && $this->visitors($response) !== null => $this->visitors($response),
            $response->has('Set-Cookie') => Refusal::SetCookie,
            $response->forbidsStoring() => Refusal::CacheControl,
            $this->lifetimeSeconds === 0 => Refusal::ZeroLifetime,
            count($this->tags) > self::TAGS_MAX || $this->bytes() > self::TAG_BYTES_MAX => Refusal::TooManyTags,
            default => null,
        };
    }

    /** Returns the reason why the response of this page has no tags, though it may be stored; null if it has them. */
    public function refusalOfTags(Response $response): ?Refusal
    {
        return !$response->isFronted && $this->bytes() > self::TAG_BYTES_ELSEWHERE ? Refusal::NotInFront : null;
    }

    /**
     * Returns the lines to add to this response. Fields that the application has set are not
     * changed.
     *
     * A page that may be personal (a session, a cookie of a login, Authorization, a signed-in visitor) gets
     * `private`, unless the application has set Cache-Control. Otherwise a rule that stores
     * undeclared pages would store it. Such a page, a failed page, or one with too many tags is not
     * stored either, even if the application gives it a TTL.
     *
     * @return list<string> `Name: value`
     */
    public function lines(Response $response): array
    {
        $refusal = $this->refusal($response) ?? $this->refusalOfTags($response);
        return $refusal === null ? $this->offering($response) : $this->refusing($refusal, $response);
    }

    /**
     * Returns the same lines, and X-Pagewell-Refusal for `pagewell explain` if fields alone do not say enough.
     *
     * @return list<string> `Name: value`; without the reason if it is one of $silent
     */
    public function explainedLines(Response $response, Refusal ...$silent): array
    {
        $refusal = $this->refusal($response) ?? $this->refusalOfTags($response);
        $lines = $refusal === null ? $this->offering($response) : $this->refusing($refusal, $response);
        return match (true) {
            $this->said === Refusal::SignedIn && $refusal === Refusal::Method => [...$lines, 'X-Pagewell-Refusal: ' . Refusal::SignedIn->value],
            $refusal === null, $refusal === Refusal::CacheControl, in_array($refusal, $silent, true), !in_array($response->method, ['GET', 'HEAD'], true),
            $refusal === Refusal::Failed && !$response->failed, $refusal === Refusal::Nothing && $response->mayBeStoredByItsFields() => $lines,
            default => [...$lines, "X-Pagewell-Refusal: {$refusal->value}"],
        };
    }

    /** @return list<string> the lines that offer the page */
    private function offering(Response $response): array
    {
        $lines = Tag::lines('Cache-Groups', $this->tags());
        if (!$response->has('Pagewell-Cache-Control')) {
            $lines[] = "Pagewell-Cache-Control: max-age={$this->lifetimeSeconds()}";
        }
        if (!$response->has('Cache-Control')) {
            $lines[] = $response->hasUnknownCookie($this->sharedCookies) ? 'Cache-Control: private, no-cache' : 'Cache-Control: no-cache';
        }
        return $lines;
    }

    /** @return list<string> the lines that keep a page from being stored */
    private function refusing(Refusal $refusal, Response $response): array
    {
        $isNever = match (true) {
            $refusal === $this->said, $refusal === Refusal::ZeroLifetime, $refusal === Refusal::TooManyTags => true,
            $refusal === Refusal::Failed => $response->failed,
            default => $refusal->isOfVisitor() && $response->has('Pagewell-Cache-Control'),
        };
        $isPrivate = ($refusal->isOfVisitor() || $refusal === Refusal::SetCookie) && !$response->has('Cache-Control');
        // Added also to a field of the application: of several values, `no-store` counts.
        return array_keys(array_filter(['Pagewell-Cache-Control: no-store' => $isNever, 'Cache-Control: private, no-cache' => $isPrivate]));
    }

    /** Returns the reason if the request may identify its visitor. */
    private function visitors(Response $response): ?Refusal
    {
        $credentials = $response->credentials;
        return match (true) {
            !$credentials->isKnown => Refusal::RequestUnknown,
            $credentials->authorization => Refusal::Authorization,
            !$response->variesByCookie() && SharedCookies::areOfVisitor($credentials->cookies, $this->sharedCookies) => Refusal::VisitorsCookie,
            default => null,
        };
    }

    /** Stores at most one tag above the limit, so that refusal() detects the excess. */
    private function add(string $tag): void
    {
        if (count($this->tags) <= self::TAGS_MAX) {
            $this->tags[$tag] = true;
        }
    }

    private function bytes(): int
    {
        return array_sum(array_map('strlen', Tag::lines('Cache-Groups', $this->tags())));
    }
}
