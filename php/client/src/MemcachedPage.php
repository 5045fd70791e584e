<?php

/**
 * One page on its way into Pagewell's memcached port, for sites where nginx reads pages from there.
 *
 *     $page = MemcachedPage::begin($memcached);   // before anything is read from the database
 *     uses('news', 4);
 *     $page->store($html);                        // before anything is sent
 *
 * A page is stored under its URL, as nginx looks it up. Its first line contains its tags and its
 * lease; Pagewell removes that line. A page is not stored if nginx could not deliver it exactly as
 * PHP does, or if its changes would not be published.
 */

declare(strict_types=1);

namespace Pagewell;

use Pagewell\Core\Declaration;
use Pagewell\Core\Exception\InvalidConfiguration;
use Pagewell\Core\Refusal;
use Pagewell\Core\Response;
use Pagewell\Core\SharedCookies;

/** A page to be stored. */
final class MemcachedPage
{
    /** Maximum length of a key, in bytes. */
    public const KEY_BYTES_MAX = 250;

    /** Maximum length of the first line, in bytes. */
    public const LINE_BYTES_MAX = 64 * 1024;

    /** Maximum relative time; the memcached protocol reads longer ones as a date. */
    private const SECONDS_MAX = 30 * 86_400;

    private Refusal|null $refusal = null;

    private function __construct(private readonly \Memcached|\Memcache $store, private readonly string $uri, private readonly ?string $lease)
    {
    }

    /**
     * Takes the lease. Data that is read afterwards is at least as recent as the lease.
     *
     * @param string|null $uri path and query as the client sent them; null: REQUEST_URI
     */
    public static function begin(\Memcached|\Memcache $store, ?string $uri = null): self
    {
        $lease = $store->get('pagewell:lease');
        return new self($store, $uri ?? (string) ($_SERVER['REQUEST_URI'] ?? ''), is_string($lease) ? $lease : null);
    }

    /**
     * Stores the page, unless there is a reason against it. The client gets the page in either
     * case.
     *
     * @param string $html the complete page
     *
     * @return bool whether it is stored; if not, refusal() returns the reason
     */
    public function store(string $html): bool
    {
        [$declaration, $response, $hasFragments] = RequestScope::current()->standing() ?? [null, null, false];
        $this->refusal = match (true) {
            $declaration === null => Refusal::Sent,
            $hasFragments => Refusal::Fragments,
            default => $this->reason($declaration, $response),
        };
        if ($this->refusal === null) {
            $page = self::line($declaration->tags(), $this->lease) . $html;
            $stored = $this->set(self::key($this->uri), $page, self::expiry($declaration->lifetimeSeconds()));
            $this->refusal = $stored ? null : Refusal::Refused;
        }
        return $this->refusal === null;
    }

    /** The reason why store() did not store the page; null if it did. */
    public function refusal(): Refusal|null
    {
        return $this->refusal;
    }

    /** Returns the key that nginx looks up for a request with this path and query: `$memcached_key $request_uri`. */
    public static function key(string $uri): string
    {
        return str_replace('%', '%25', $uri);
    }

    /**
     * Returns the first line of a page.
     *
     * @param list<string> $tags  commas and spaces in a tag are percent-encoded
     * @param string|null  $lease the value of the key `pagewell:lease` before the page was rendered
     */
    public static function line(array $tags, ?string $lease): string
    {
        return 'Pagewell-Page: tags=' . implode(',', array_map(self::written(...), $tags)) . ($lease === null ? '' : " lease=$lease") . "\n";
    }

    private function reason(Declaration $declaration, Response $response): Refusal|null
    {
        $declared = $declaration->refusal($response);
        return match (true) {
            !self::changesAreHeard() => Refusal::ChangesNotReceived,
            $declared !== null => $declared,
            // A page of that port is for everybody, and Pagewell does not see its request.
            $response->hasUnknownCookie(Configuration::sharedCookies()) => Refusal::VisitorsCookie,
            $response->method !== 'GET' => Refusal::Method,
            $response->status !== 200 => Refusal::Status,
            !self::isHtml($response) => Refusal::ContentType,
            $response->has('Vary') || $response->has('Content-Encoding') || SharedCookies::haveKeyed($response->credentials->cookies) => Refusal::Varies,
            preg_match('~^/[^\x00-\x20\x7f]*$~D', $this->uri) !== 1 || strlen(self::key($this->uri)) > self::KEY_BYTES_MAX => Refusal::Key,
            !self::fits($declaration->tags()) => Refusal::Tags,
            $this->lease === null => Refusal::NoLease,
            default => null,
        };
    }

    /** Returns false for a wrong value of the environment: only requests that may write fail because of it. */
    private static function changesAreHeard(): bool
    {
        try {
            return Configuration::way() === ChangeDelivery::Control;
        } catch (InvalidConfiguration) {
            return false;
        }
    }

    /** @param list<string> $tags */
    private static function fits(array $tags): bool
    {
        return strlen(self::line($tags, null)) < self::LINE_BYTES_MAX - 200;
    }

    /** Encodes the characters that would end a tag in the line. */
    private static function written(string $tag): string
    {
        return str_replace([',', ' '], ['%2C', '%20'], $tag);
    }

    private static function isHtml(Response $response): bool
    {
        foreach ($response->values('Content-Type') as $type) {
            if (strtolower(trim(explode(';', $type)[0])) !== 'text/html') {
                return false;
            }
        }
        return true;
    }

    /** Converts seconds for the protocol: a date for long times. */
    private static function expiry(int $seconds): int
    {
        return $seconds > self::SECONDS_MAX ? time() + $seconds : $seconds;
    }

    /** Stores the page uncompressed: otherwise nginx cannot read it, and Pagewell cannot read its first line. */
    private function set(string $key, string $page, int $expiry): bool
    {
        if ($this->store instanceof \Memcache) {
            return $this->store->set($key, $page, 0, $expiry);
        }
        $compression = $this->store->getOption(\Memcached::OPT_COMPRESSION);
        $this->store->setOption(\Memcached::OPT_COMPRESSION, false);
        try {
            return $this->store->set($key, $page, $expiry);
        } finally {
            $this->store->setOption(\Memcached::OPT_COMPRESSION, $compression);
        }
    }
}
