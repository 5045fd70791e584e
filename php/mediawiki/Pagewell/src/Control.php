<?php

/**
 * Calls of Pagewell's control interface, at the address in `$wgPagewellControl`.
 *
 * The calls are made by the extension's copy of the library's SocketClient (Core). One deadline
 * covers connecting, sending and the response. A failure is logged, and a job repeats the call.
 */

declare(strict_types=1);

namespace Pagewell\MediaWiki;

use MediaWiki\MediaWikiServices;
use Pagewell\MediaWiki\Core\Changes;
use Pagewell\MediaWiki\Core\Exception\PagewellException;
use Pagewell\MediaWiki\Core\Invalidation;
use Pagewell\MediaWiki\Core\SocketClient;

/** Purges pages. */
final class Control
{
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
        $config = MediaWikiServices::getInstance()->getMainConfig();
        $client = new SocketClient(
            (string) $config->get('PagewellControl'),
            $config->get('PagewellTokenFile'),
            $config->get('PagewellSite'),
            self::CALL_SECONDS,
        );
        try {
            $client->invalidate($invalidation);
            return null;
        } catch (PagewellException $failure) {
            return rtrim($failure->getMessage(), '.');
        }
    }
}
