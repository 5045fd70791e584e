<?php

/**
 * The dependencies of one page, and the field lines that declare them.
 *
 * Collects; sends nothing and knows nothing of PHP's output, so it serves frameworks with
 * response objects and tests alike. The wire form:
 *
 *     Cache-Groups: "news:4", "news:*"             RFC 9875 section 2
 *     Pagewell-Cache-Control: max-age=31536000     RFC 9213: for Pagewell alone, which strips it
 *     Cache-Control: no-cache                      for everybody else: ask again, by ETag
 *
 * A page is kept until its data changes, a year at most. It is refused rather than cut
 * when it has more tags than fit.
 */

declare(strict_types=1);

namespace Pagewell;

/** Collects what a page is made from. */
final class Declaration
{
    /** How long a page may live when nothing changes, in seconds: a year. */
    public const LIFETIME_SECONDS_MAX = 31_536_000;

    /** The most tags of a page. */
    public const TAGS_MAX = 1000;

    /** The most bytes of all tags of a page, as sent. */
    public const TAG_BYTES_MAX = 64 * 1024;

    /** @var array<string, true> tags, in the order of first use */
    private array $tags = [];

    private ?int $lifetimeSeconds = null;

    /**
     * The page is made from a kind as a whole (no ids), or from these of a kind.
     *
     * @throws InvalidTag a name is empty or too long, or an id came by name
     */
    public function uses(string $kind, int|string ...$ids): self
    {
        if (!array_is_list($ids)) {
            throw new InvalidTag(sprintf("uses('%s', %s: …): what a page uses has no further name; say uses('%2\$s', …).", $kind, array_key_first($ids)));
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
     * The page shows these of a set (a search, a list by date), and may be behind by so many seconds
     * with what should newly be in it. More ids than fit become the kind as a whole.
     *
     * @param list<int|string> $ids     what is shown; may be none
     * @param int              $seconds how long the page lives at most
     *
     * @throws InvalidTag|InvalidLifetime as uses() and freshFor()
     */
    public function usesShown(string $kind, array $ids, int $seconds): self
    {
        if (count($ids) > self::TAGS_MAX - 100) {
            $this->uses($kind);
        } elseif ($ids !== []) {
            $this->uses($kind, ...array_values($ids));
        }
        return $this->freshFor($seconds);
    }

    /**
     * The page has these tags, as they are: for applications that have tags of their own.
     *
     * @throws InvalidTag a tag is empty
     */
    public function tagged(string ...$tags): self
    {
        foreach (array_map(Tag::raw(...), array_values($tags)) as $tag) {
            $this->add($tag);
        }
        return $this;
    }

    /**
     * The page lives for so many seconds at most. The shortest of several times counts.
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

    /**
     * @return list<string> the tags of the page
     */
    public function tags(): array
    {
        return array_map('strval', array_keys($this->tags));
    }

    /** The shortest time said so far, in seconds; null when none was. */
    public function lifetimeSeconds(): ?int
    {
        return $this->lifetimeSeconds;
    }

    /** Why this page is not to be stored, or null when it may be. */
    public function refusal(Response $response): ?NotDeclared
    {
        $kept = $response->status < 400 || $response->status === 404 || $response->status === 410;
        return match (true) {
            $this->tags === [] && $this->lifetimeSeconds === null => NotDeclared::Nothing,
            !in_array($response->method, ['GET', 'HEAD'], true) => NotDeclared::Method,
            !$kept || $response->failed => NotDeclared::Failed,
            $response->session => NotDeclared::Session,
            !$response->isMarkedShared() && self::visitors($response) !== null => self::visitors($response),
            $response->has('Set-Cookie') => NotDeclared::SetCookie,
            $response->forbidsStoring() => NotDeclared::CacheControl,
            $this->lifetimeSeconds === 0 => NotDeclared::ZeroLifetime,
            count($this->tags) > self::TAGS_MAX || $this->bytes() > self::TAG_BYTES_MAX => NotDeclared::TooManyTags,
            default => null,
        };
    }

    /**
     * The lines to add to this response; fields that the application has set are left to it.
     *
     * A page that may show what belongs to one visitor (a session, a cookie, Authorization) gets `private` if
     * nothing else says so: a rule that stores what declares nothing must not take it. Nor may a lifetime
     * that the application gives it keep one that is broken, or whose data cannot be named.
     *
     * @return list<string> `Name: value`
     */
    public function lines(Response $response): array
    {
        $refusal = $this->refusal($response);
        $personal = in_array($refusal, [NotDeclared::Session, NotDeclared::Authorization, NotDeclared::VisitorsCookie, NotDeclared::RequestUnknown, NotDeclared::SetCookie], true);
        $broken = $refusal === NotDeclared::Failed && $response->failed;
        if ($broken || $refusal === NotDeclared::ZeroLifetime || $refusal === NotDeclared::TooManyTags) {
            return $response->has('Pagewell-Cache-Control') ? [] : ['Pagewell-Cache-Control: no-store'];
        }
        if ($refusal !== null) {
            return $personal && !$response->has('Cache-Control') ? ['Cache-Control: private, no-cache'] : [];
        }
        $lines = Tag::lines('Cache-Groups', $this->tags());
        if (!$response->has('Pagewell-Cache-Control')) {
            $lines[] = 'Pagewell-Cache-Control: max-age=' . ($this->lifetimeSeconds ?? self::LIFETIME_SECONDS_MAX);
        }
        if (!$response->has('Cache-Control')) {
            $lines[] = 'Cache-Control: no-cache';
        }
        return $lines;
    }

    /** What in the request may say who the visitor is. */
    private static function visitors(Response $response): ?NotDeclared
    {
        $credentials = $response->credentials;
        return match (true) {
            !$credentials->isKnown => NotDeclared::RequestUnknown,
            $credentials->authorization => NotDeclared::Authorization,
            !$response->variesByCookie() && SharedCookies::others($credentials->cookies) !== [] => NotDeclared::VisitorsCookie,
            default => null,
        };
    }

    /** Keeps one more than the limit, so that refusal() sees it, and no more. */
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
