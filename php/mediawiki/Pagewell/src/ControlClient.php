<?php

/**
 * Calls of Pagewell's control interface, at the address in `$wgPagewellAdmin`.
 *
 * The calls are made by the extension's copy of the library's SocketClient (Core). One deadline
 * covers connecting, sending and the response. A failure, or a wrong setting, is logged,
 * and a job repeats the call.
 */

declare(strict_types=1);

namespace Pagewell\MediaWiki;

use MediaWiki\MediaWikiServices;
use Pagewell\MediaWiki\Core\Changes;
use Pagewell\MediaWiki\Core\Exception\InvalidConfiguration;
use Pagewell\MediaWiki\Core\Exception\PagewellException;
use Pagewell\MediaWiki\Core\Invalidation;
use Pagewell\MediaWiki\Core\SocketClient;

/**
 * Purges pages.
 *
 * @internal
 */
final class ControlClient
{
    /** The settings that the library names by its environment variables. */
    private const NAMES = ['PAGEWELL_ADMIN' => '$wgPagewellAdmin', 'PAGEWELL_TOKEN_FILE' => '$wgPagewellTokenFile', 'PAGEWELL_SITE' => '$wgPagewellSite'];

    /** The deadline of a call, in seconds. */
    private const CALL_SECONDS = 3.0;

    /** Purges the pages of these changes. If that fails, a job does it later. */
    public static function send(Changes $changes): void
    {
        $invalidation = $changes->invalidation();
        $fault = self::invalidate($invalidation);
        if ($fault === null) {
            return;
        }
        error_log("pagewell: changes could not be sent; a job sends them again: $fault");
        try {
            InvalidationJob::push($invalidation);
        } catch (\Throwable $failure) {
            error_log("pagewell: the job could not be created, so old pages may be served: {$failure->getMessage()}");
        }
    }

    /** @return string|null the failure; null if the pages are purged */
    public static function invalidate(Invalidation $invalidation): ?string
    {
        try {
            $client = new SocketClient(self::address(), self::text('PagewellTokenFile'), self::text('PagewellSite'), self::CALL_SECONDS);
            $client->invalidate($invalidation);
            return null;
        } catch (PagewellException $failure) {
            return rtrim(strtr($failure->getMessage(), self::NAMES), '.');
        }
    }

    private static function address(): string
    {
        $address = self::text('PagewellAdmin') ?? SocketClient::ADDRESS;
        return SocketClient::isAddress($address) ? $address : throw new InvalidConfiguration("\$wgPagewellAdmin is '$address': write an address (127.0.0.1:8081), or a socket (unix:/run/pagewell/admin.sock).");
    }

    /** Returns the value of a setting. */
    private static function text(string $name): ?string
    {
        $value = MediaWikiServices::getInstance()->getMainConfig()->get($name);
        return $value === null || is_string($value) ? $value : throw new InvalidConfiguration("\$wg$name is no text, but of the type " . get_debug_type($value) . '.');
    }
}
