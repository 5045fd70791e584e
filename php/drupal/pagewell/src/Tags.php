<?php

/**
 * Drupal: the tags of a page, and those that a write has invalidated.
 *
 *     event                                   what happens
 *     kernel.request (main)                   the state of the request begins
 *     kernel.response (main, the last)        a cacheable response is tagged with its own cache tags
 *     invalidateTags(), no transaction        the tags are told
 *     invalidateTags(), in a transaction      the tags are told once its outermost level has committed
 *     kernel.terminate                        what was said since is told
 *
 * Drupal knows by itself which page has which tags, so there is no table of kinds here: a node
 * that is saved invalidates `node:4` and `node_list`, and so on. Signed-in visitors have a session,
 * and their pages are not offered for storing. How long a page may be kept is the site's setting
 * (Cache-Control: max-age), at most.
 */

declare(strict_types=1);

namespace Drupal\pagewell;

use Drupal\Core\Cache\CacheableResponseInterface;
use Drupal\Core\Cache\CacheTagsInvalidatorInterface;
use Drupal\Core\Database\Connection;
use Pagewell\Outgoing;
use Pagewell\ResponseWire;
use Pagewell\SymfonyResponse;
use Symfony\Component\EventDispatcher\EventSubscriberInterface;
use Symfony\Component\HttpKernel\Event\RequestEvent;
use Symfony\Component\HttpKernel\Event\ResponseEvent;
use Symfony\Component\HttpKernel\KernelEvents;

/** Between Drupal's cache tags and the library. */
final class Tags implements CacheTagsInvalidatorInterface, EventSubscriberInterface
{
    private ?ResponseWire $wire = null;

    /** @var array<string, true> tags that wait for the commit */
    private array $waiting = [];

    public function __construct(private readonly Connection $database)
    {
    }

    public static function getSubscribedEvents(): array
    {
        return [
            KernelEvents::REQUEST => ['begin', 4096],
            KernelEvents::RESPONSE => ['finish', -2048],
            KernelEvents::TERMINATE => ['end', -2048],
        ];
    }

    public function begin(RequestEvent $event): void
    {
        if ($event->isMainRequest()) {
            $this->wire = ResponseWire::begin($event->getRequest()->getMethod());
        }
    }

    public function finish(ResponseEvent $event): void
    {
        if (!$event->isMainRequest() || $this->wire === null) {
            return;
        }
        $response = $event->getResponse();
        if ($response instanceof CacheableResponseInterface) {
            $tags = $response->getCacheableMetadata()->getCacheTags();
            $seconds = $response->getMaxAge();
            if ($tags !== [] && $seconds !== null && $seconds > 0) {
                Outgoing::current()->tagged(...array_values($tags));
                Outgoing::current()->freshFor($seconds);
            }
        }
        SymfonyResponse::finish($this->wire, $event->getRequest(), $response);
    }

    public function end(): void
    {
        Outgoing::current()->end();
    }

    public function invalidateTags(array $tags): void
    {
        if ($tags === []) {
            return;
        }
        if (!$this->database->inTransaction()) {
            Outgoing::current()->changedTagged(...array_values($tags));
            return;
        }
        if ($this->waiting === []) {
            $this->afterTransaction();
        }
        $this->waiting += array_fill_keys($tags, true);
    }

    /** Also after a rollback: what was held is told, which costs a render at most. */
    private function afterTransaction(): void
    {
        $tell = function (): void {
            $tags = array_map('strval', array_keys($this->waiting));
            $this->waiting = [];
            Outgoing::current()->changedTagged(...$tags);
        };
        // Drupal 10.2 and newer; before it the connection itself takes the callback.
        if (method_exists($this->database, 'transactionManager')) {
            $this->database->transactionManager()->addPostTransactionCallback($tell);
        } else {
            $this->database->addRootTransactionEndCallback($tell);
        }
    }
}
