<?php

/**
 * A purge that throws nothing, for code that runs after a write: it is sent over the control interface, or put into
 * the outbox for the site of the client, or logged for the operator.
 */

declare(strict_types=1);

namespace Pagewell\Bridge;

use Pagewell\Configuration;
use Pagewell\Core\Exception\InvalidConfiguration;
use Pagewell\Core\Invalidation;
use Pagewell\Core\SiteClient;
use Pagewell\OutboxDelivery;
use Pagewell\RequestScope;

/**
 * Sends a purge at once.
 *
 * @internal
 */
final class PurgeDelivery
{
    private function __construct()
    {
    }

    /** Sends a purge, or stores or logs it. */
    public static function send(Invalidation $call): void
    {
        try {
            RequestScope::current()->invalidate($call);
        } catch (\Throwable $failure) {
            $left = $call->for($call->site ?? self::site());
            $then = OutboxDelivery::store([$left]) ? 'The purge waits in the outbox.' : "Send it later: {$left->json()}";
            Configuration::log()->warn("pagewell: {$failure->getMessage()} $then", $failure);
        }
    }

    private static function site(): ?string
    {
        try {
            $client = Configuration::client(null);
        } catch (InvalidConfiguration) {
            return null; // For every site: its address is mistyped, and nothing is known of it.
        }
        return $client instanceof SiteClient ? $client->site() : null;
    }
}
