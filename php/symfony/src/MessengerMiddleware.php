<?php

/**
 * Messenger: the changes of a message are sent when its handlers are done, also if one has failed.
 *
 *     # config/packages/messenger.yaml
 *     framework:
 *         messenger:
 *             buses:
 *                 messenger.bus.default:
 *                     middleware: [Pagewell\Symfony\MessengerMiddleware]     # before doctrine_transaction
 *
 * `messenger:consume` needs no middleware: the bundle listens to its events. This is for messages
 * that another program takes from a transport and dispatches. A message that is only sent to a
 * transport changes nothing.
 */

declare(strict_types=1);

namespace Pagewell\Symfony;

use Pagewell\Configuration;
use Pagewell\Core\InvalidationClient;
use Pagewell\OutboxDelivery;
use Pagewell\RequestScope;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Middleware\MiddlewareInterface;
use Symfony\Component\Messenger\Middleware\StackInterface;
use Symfony\Component\Messenger\Stamp\ReceivedStamp;

/** Sends the changes of each received message. */
final class MessengerMiddleware implements MiddlewareInterface
{
    /** @param InvalidationClient|false|null $client as RequestScope::begin() takes it */
    public function __construct(private readonly InvalidationClient|false|null $client = null)
    {
    }

    public function handle(Envelope $envelope, StackInterface $stack): Envelope
    {
        try {
            return $stack->next()->handle($envelope, $stack);
        } finally {
            if ($envelope->last(ReceivedStamp::class) !== null) {
                RequestScope::current()->flushOrLog();
                OutboxDelivery::attempt(Configuration::client($this->client));
            }
        }
    }
}
