<?php

/**
 * Sets the response headers by which Pagewell caches a page: its tags and its TTL, or the reason why not.
 *
 *     Surrogate-Key: site page:0:Gull message:…   read and removed by Pagewell
 *     Pagewell-Cache-Control: max-age=86400       RFC 9213: for Pagewell only, which removes it
 *
 * The decision is made just before the header section is sent, because only then are the
 * dependencies known. MediaWiki's own Cache-Control stays for browsers. Its Last-Modified is
 * removed: it is the time of the page, and does not change with the texts of the interface or a
 * template. A refused page has the reason, and `no-store`, so that no rule of the site stores it.
 */

declare(strict_types=1);

namespace Pagewell\MediaWiki;

use MediaWiki\MediaWikiServices;
use MediaWiki\Session\SessionManager;
use Pagewell\MediaWiki\Core\Credentials;
use Pagewell\MediaWiki\Core\Front;

/**
 * Decides once per request.
 *
 * @internal
 */
final class CacheHeaders
{
    /** TTL of missing pages, in seconds, because there are very many of them. */
    public const MISSING_SECONDS = 3600;

    /** Entry points that the extension knows, and whether they have sessions. */
    private const ENTRIES = ['index' => true, 'api' => true, 'load' => false, 'opensearch_desc' => false];

    private static bool $isDecided = false;

    /** Decides, and sets the fields. */
    public static function decide(): void
    {
        if (self::$isDecided) {
            return;
        }
        self::$isDecided = true;
        try {
            if (!in_array($_SERVER['REQUEST_METHOD'] ?? '', ['GET', 'HEAD'], true)) {
                self::confirm();
                return;
            }
            $refusal = self::refusal();
            $refusal === null ? self::send() : self::refuse($refusal);
        } catch (\Throwable $fault) {
            // The page is delivered anyway.
            self::refuse(Refusal::Unobserved);
            error_log("pagewell: a page could not be offered for caching: {$fault->getMessage()}");
        }
    }

    /** The response to a write is never stored. After a login it says that the new session is of a signed-in visitor. */
    private static function confirm(): void
    {
        if (defined('MW_ENTRY_POINT') && (self::ENTRIES[MW_ENTRY_POINT] ?? false) && SessionManager::getGlobalSession()->getUser()->isRegistered()) {
            header('X-Pagewell-Refusal: ' . Refusal::SignedIn->value);
        }
    }

    private static function refuse(Refusal $refusal): void
    {
        header('Pagewell-Cache-Control: no-store');
        header("X-Pagewell-Refusal: $refusal->value");
    }

    private static function send(): void
    {
        $tags = Page::tags(Front::isGivenByIt() ? Page::BYTES_MAX : Page::BYTES_BEHIND_SERVER);
        foreach (explode("\n", wordwrap(implode(' ', $tags), 7900)) as $number => $line) {
            header("Surrogate-Key: $line", $number === 0);
        }
        $seconds = Page::lifetimeSeconds((int) self::lifetime());
        header('Pagewell-Cache-Control: max-age=' . (http_response_code() === 404 ? min($seconds, self::MISSING_SECONDS) : $seconds));
        header_remove('Last-Modified');
        header_remove('Set-Cookie');
        self::setVary();
    }

    /**
     * Removes Cookie from Vary: a page for a request with a session is refused. It stays if another
     * extension reads cookies of visitors who are not signed in.
     */
    private static function setVary(): void
    {
        if (!self::hasSessions() || self::othersCookies() !== []) {
            return;
        }
        $names = [];
        foreach (self::values('Vary') as $value) {
            array_push($names, ...array_map(trim(...), explode(',', $value)));
        }
        $names = array_filter($names, static fn (string $name): bool => strcasecmp($name, 'Cookie') !== 0);
        header_remove('Vary');
        $names === [] || header('Vary: ' . implode(', ', array_unique($names)));
    }

    private static function refusal(): ?Refusal
    {
        $entry = defined('MW_ENTRY_POINT') ? MW_ENTRY_POINT : '';
        if (!isset(self::ENTRIES[$entry])) {
            return Refusal::Unknown;
        }
        $status = http_response_code();
        $fatal = E_ERROR | E_PARSE | E_CORE_ERROR | E_COMPILE_ERROR | E_USER_ERROR | E_RECOVERABLE_ERROR;
        if (!in_array($status, [200, 301, 404], true) || ((error_get_last()['type'] ?? 0) & $fatal) !== 0 || self::values('MediaWiki-API-Error') !== []) {
            return Refusal::Status;
        }
        $visitors = self::visitors();
        if ($visitors !== null) {
            return $visitors;
        }
        if (MediaWikiServices::getInstance()->getDBLoadBalancer()->getServerCount() > 1) {
            return Refusal::Replicas;
        }
        self::complete($entry);
        return Page::refusal() ?? self::ofLifetime() ?? (Front::isInFront() ? null : Refusal::NotInFront);
    }

    private static function ofLifetime(): ?Refusal
    {
        $seconds = self::lifetime();
        if (is_int($seconds) && $seconds >= 0) {
            return $seconds === 0 ? Refusal::ZeroLifetime : null;
        }
        error_log('pagewell: no page is stored: $wgPagewellLifetime is ' . (is_scalar($seconds) ? "'$seconds'" : 'of the type ' . get_debug_type($seconds)) . ': write seconds, as in 86400.');
        return Refusal::Setting;
    }

    /** Returns $wgPagewellLifetime, as a number if it is one. */
    private static function lifetime(): mixed
    {
        $seconds = MediaWikiServices::getInstance()->getMainConfig()->get('PagewellLifetime');
        return is_string($seconds) && preg_match('/^[0-9]{1,9}$/D', $seconds) === 1 ? (int) $seconds : $seconds;
    }

    /** Returns the TTL that another extension permits to caches (lowerCdnMaxage), in seconds. MediaWiki has no method for it. */
    private static function limitSeconds(object $output): int
    {
        $limit = property_exists($output, 'mCdnMaxageLimit') ? (fn (): mixed => $this->mCdnMaxageLimit)->call($output) : INF;
        return is_numeric($limit) && $limit < PHP_INT_MAX ? max(0, (int) $limit) : PHP_INT_MAX;
    }

    /** Whether the only cookies are positions for replicas, which this wiki does not have. */
    private static function isPosition(): bool
    {
        return preg_grep('/^cpPosIndex=/', self::values('Set-Cookie'), PREG_GREP_INVERT) === [];
    }

    /** Adds what depends on the entry point. */
    private static function complete(string $entry): void
    {
        Page::uses('site');
        $context = \RequestContext::getMain();
        $request = $context->getRequest();
        if ($entry === 'load') {
            Modules::uses($request);
        } elseif ($entry === 'api') {
            ApiReads::isKnown($request) || Page::refuse(Refusal::Unknown);
        } elseif ($entry === 'index') {
            $title = $context->getTitle();
            if ($title === null || (!$title->canExist() && !$title->isSpecialPage())) {
                Page::refuse(Refusal::Unknown);
            } elseif ($title->canExist()) {
                Reads::action($context->getActionName(), $title, $request);
            }
            (Reads::areLinksCurrent() && Modules::areCurrent($context->getOutput())) || Page::refuse(Refusal::Outdated);
            Page::freshFor(self::limitSeconds($context->getOutput()));
        }
    }

    /** Returns the reason if the response belongs to one visitor. */
    private static function visitors(): ?Refusal
    {
        if (self::values('Set-Cookie') !== [] && !self::isPosition()) {
            return Refusal::SetCookie;
        }
        if (preg_match('/(^|,)\s*no-store\s*(,|$)/i', implode(',', self::values('Cache-Control'))) === 1) {
            return Refusal::CacheControl;
        }
        if (!self::hasSessions()) {
            return null;
        }
        $services = MediaWikiServices::getInstance();
        $context = \RequestContext::getMain();
        $user = $context->getUser();
        return match (true) {
            $user->isRegistered() => Refusal::SignedIn,
            SessionManager::getGlobalSession()->isPersistent(), $context->getOutput()->haveCacheVaryCookies(), self::hasAuthorization() => Refusal::Session,
            !$services->getPermissionManager()->isEveryoneAllowed('read') => Refusal::PrivateWiki,
            $services->getTalkPageNotificationManager()->userHasNewMessages($user) => Refusal::VisitorsMessages,
            $user->getBlock() !== null => Refusal::Blocked,
            default => null,
        };
    }

    private static function hasSessions(): bool
    {
        return self::ENTRIES[MW_ENTRY_POINT] ?? true;
    }

    private static function hasAuthorization(): bool
    {
        return Credentials::of('', [], $_SERVER)->authorization;
    }

    /** @return list<string> cookies, other than of sessions, by which pages differ */
    private static function othersCookies(): array
    {
        $known = [...SessionManager::singleton()->getVaryCookies(), 'forceHTTPS'];
        return array_values(array_diff(\RequestContext::getMain()->getOutput()->getCacheVaryCookies(), $known));
    }

    /** @return list<string> the values of a field of the response */
    private static function values(string $field): array
    {
        $values = [];
        foreach (headers_list() as $line) {
            [$name, $value] = explode(':', $line, 2) + ['', ''];
            if (strcasecmp(trim($name), $field) === 0) {
                $values[] = trim($value);
            }
        }
        return $values;
    }
}
