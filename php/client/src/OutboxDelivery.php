<?php

/**
 * Sends what waits in the outbox.
 *
 *     the request, the job or the command ends    if a call is due (Outbox::isDue), within END_SECONDS
 *     flush()                                     all calls, due or not
 *
 * A failure of Pagewell or of the outbox breaks nothing: it is logged, and tried again later. A call
 * that Pagewell will never accept, such as one for a site that it does not know, is replaced by one
 * for everything. So it holds up no other call, and no change is lost.
 */

declare(strict_types=1);

namespace Pagewell;

use Pagewell\Core\Exception\InvalidationRefused;
use Pagewell\Core\Exception\PagewellException;
use Pagewell\Core\Exception\PagewellUnreachable;
use Pagewell\Core\Invalidation;
use Pagewell\Core\InvalidationClient;
use Pagewell\Core\InvalidationResult;

/**
 * Delivers stored calls.
 *
 * @internal
 */
final class OutboxDelivery
{
    private const END_NANOSECONDS = 2_000_000_000;

    /** Refusals of a call itself. Others are of the token or the address, which the operator corrects. */
    private const NEVER = ['site-unknown', 'unreadable', 'too-large'];

    private function __construct()
    {
    }

    /** Sends the calls if they are due, and logs a failure. */
    public static function attempt(?InvalidationClient $client): void
    {
        $outbox = Configuration::outbox();
        if ($client === null || $outbox === null || $client instanceof NoPagewell) {
            return;
        }
        $deadline = hrtime(true) + self::END_NANOSECONDS;
        try {
            $outbox->isDue() && $outbox->deliver(static function (Invalidation $call) use ($client, $deadline): void {
                if (hrtime(true) > $deadline) {
                    throw new PagewellUnreachable('There was no time left to send everything.');
                }
                self::call($client, $call);
            });
        } catch (\Throwable $failure) {
            Configuration::log()->warn("pagewell: {$failure->getMessage()} Changes wait in the outbox.", $failure);
        }
    }

    /**
     * Sends all calls.
     *
     * @return int the number of purged pages
     *
     * @throws PagewellException see InvalidationClient::invalidate()
     */
    public static function flush(?InvalidationClient $client): int
    {
        $pages = 0;
        $client === null || $client instanceof NoPagewell || Configuration::outbox()?->deliver(static function (Invalidation $call) use ($client, &$pages): void {
            $pages += self::call($client, $call)->pages;
        });
        return $pages;
    }

    /** @throws PagewellException see InvalidationClient::invalidate() */
    private static function call(InvalidationClient $client, Invalidation $call): InvalidationResult
    {
        try {
            return $client->invalidate($call);
        } catch (InvalidationRefused $refused) {
            if (!in_array($refused->reason, self::NEVER, true)) {
                throw $refused;
            }
            $result = $client->invalidate(new Invalidation(all: true));
            Configuration::log()->warn("pagewell: {$refused->getMessage()} The call waited in the outbox. All pages were purged instead.");
            return $result;
        }
    }

    /**
     * Stores calls that could not be made.
     *
     * @param list<Invalidation> $calls
     *
     * @return bool whether they are stored
     */
    public static function store(array $calls): bool
    {
        $outbox = Configuration::outbox();
        try {
            $outbox?->store(...$calls);
            return $outbox !== null;
        } catch (\Throwable $fault) {
            Configuration::log()->warn("pagewell: {$fault->getMessage()}", $fault);
            return false;
        }
    }
}
