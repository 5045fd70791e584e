<?php

/**
 * The properties of a response that the library needs before it adds lines.
 *
 * A value object, created by ResponseChannel::response() just before the header section is sent, or by the
 * application.
 */

declare(strict_types=1);

namespace Pagewell\Core;

/** The properties of a response that is about to be sent. */
final class Response
{
    /**
     * @param string       $method  of the request, upper case
     * @param int          $status  three digits
     * @param list<string> $lines   field lines set so far, `Name: value`
     * @param bool         $session a session was open while the page was rendered
     * @param bool         $failed  PHP ended with a fatal error
     * @param Credentials  $credentials the parts of the request that may identify its visitor
     * @param bool         $isFronted whether Pagewell is in front of the request, or may be
     */
    public function __construct(
        public readonly string $method = 'GET',
        public readonly int $status = 200,
        public readonly array $lines = [],
        public readonly bool $session = false,
        public readonly bool $failed = false,
        public readonly Credentials $credentials = new Credentials(),
        public readonly bool $isFronted = true,
    ) {
    }

    /** Whether a field of this name is set. */
    public function has(string $field): bool
    {
        return $this->values($field) !== [];
    }

    /**
     * @return list<string> the values of the lines with this name, in order
     */
    public function values(string $field): array
    {
        $values = [];
        foreach ($this->lines as $line) {
            [$name, $value] = explode(':', $line, 2) + ['', ''];
            if (strcasecmp(trim($name), $field) === 0) {
                $values[] = trim($value);
            }
        }
        return $values;
    }

    /** Whether the application's Cache-Control forbids storing in a shared cache (RFC 9111 section 5.2.2). */
    public function forbidsStoring(): bool
    {
        return $this->hasDirective('no-store', 'private');
    }

    /** Whether the application's Cache-Control marks the response as shared (RFC 9111 section 3.5). */
    public function isMarkedShared(): bool
    {
        return $this->hasDirective('public', 's-maxage');
    }

    /** Whether fields of the application may have it stored, whatever it declares. */
    public function mayBeStoredByItsFields(): bool
    {
        return $this->has('Pagewell-Cache-Control') || $this->has('Surrogate-Control') || $this->isMarkedShared();
    }

    /** Whether the application sent `Vary: Cookie`, so that one copy is stored for each set of cookies. */
    public function variesByCookie(): bool
    {
        $names = array_map(static fn (string $name): string => strtolower(trim($name)), explode(',', implode(',', $this->values('Vary'))));
        return in_array('cookie', $names, true);
    }

    /**
     * Whether the request has a cookie that may select the content, as far as anybody knows. Pagewell stores no
     * response to such a request. It renders the page once more, without the cookie, for everybody. Other caches
     * in front of Pagewell know nothing of the cookie.
     *
     * @param list<string> $sharedCookies patterns of harmless cookies that the site adds
     */
    public function hasUnknownCookie(array $sharedCookies): bool
    {
        return !$this->isMarkedShared() && !$this->variesByCookie() && SharedCookies::others($this->credentials->cookies, $sharedCookies) !== [];
    }

    private function hasDirective(string ...$names): bool
    {
        foreach (explode(',', implode(',', $this->values('Cache-Control'))) as $directive) {
            if (in_array(strtolower(trim(explode('=', $directive, 2)[0])), $names, true)) {
                return true;
            }
        }
        return false;
    }
}
