<?php

/**
 * Drupal: the tags of a page, and the tags that a write has invalidated.
 *
 *     event                                   what happens
 *     kernel.request (main)                   the state of the request begins
 *     kernel.response (main, the last)        a cacheable response is tagged with its own cache tags
 *     kernel.finish_request (main)            without a response: changes are sent anyway
 *     invalidateTags(), no transaction        the tags are sent
 *     invalidateTags(), in a transaction      the tags are sent once its outermost level has committed
 *     kernel.terminate                        later changes are sent
 *
 * Drupal knows which page has which tags, so there is no table here: a saved node invalidates
 * `node:4` and `node_list`, and so on. Pages of signed-in visitors are not offered for storing.
 * The maximum TTL is the site's setting (Cache-Control: max-age).
 *
 * Nothing here throws into the site. A page that cannot be declared is not stored. A change that
 * cannot be sent is added to the response, or the log has the command that makes up for it. If a variable PAGEWELL_*
 * has a wrong value, no page is stored, because changes may not arrive.
 */

declare(strict_types=1);

namespace Drupal\pagewell;

use Drupal\Core\Cache\CacheableResponseInterface;
use Drupal\Core\Cache\CacheTagsInvalidatorInterface;
use Drupal\Core\Database\Connection;
use Drupal\Core\Session\AccountInterface;
use Pagewell\Bridge\HttpFoundation\ResponseLines;
use Pagewell\CollectingChannel;
use Pagewell\Configuration;
use Pagewell\Core\Changes;
use Pagewell\Core\PendingChanges;
use Pagewell\RequestScope;
use Symfony\Component\EventDispatcher\EventSubscriberInterface;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpFoundation\Session\Session;
use Symfony\Component\HttpKernel\Event\FinishRequestEvent;
use Symfony\Component\HttpKernel\Event\RequestEvent;
use Symfony\Component\HttpKernel\Event\ResponseEvent;
use Symfony\Component\HttpKernel\KernelEvents;

/**
 * Connects Drupal's cache tags with the library.
 *
 * @internal
 */
final class Tags implements CacheTagsInvalidatorInterface, EventSubscriberInterface
{
    /** The library's name for the transaction of Drupal's connection. */
    private const CONNECTION = 'drupal';

    private ?CollectingChannel $channel = null;

    /** Whether all variables PAGEWELL_* have right values; if not, no page is stored. */
    private bool $isConfigured = false;

    /** @var \WeakReference<\Closure>|null called by the connection when its transaction ends */
    private ?\WeakReference $awaited = null;

    public function __construct(private readonly Connection $database, private readonly AccountInterface $user)
    {
    }

    public static function getSubscribedEvents(): array
    {
        return [
            KernelEvents::REQUEST => ['begin', 4096],
            // After all listeners that may add a tag, set a cookie or forbid storing (-1024).
            KernelEvents::RESPONSE => ['finish', -2048],
            KernelEvents::FINISH_REQUEST => ['lose', -2048],
            KernelEvents::TERMINATE => ['end', -2048],
        ];
    }

    public function begin(RequestEvent $event): void
    {
        if ($event->isMainRequest()) {
            $this->channel = null;
            $this->isConfigured = self::guarded(static fn () => Configuration::check(null));
            self::guarded(fn () => $this->channel = CollectingChannel::begin($event->getRequest()->getMethod(), isEnded: true, capability: (string) $event->getRequest()->headers->get('Surrogate-Capability', ''), credentials: ResponseLines::credentials($event->getRequest()), isChecked: false));
        }
    }

    public function finish(ResponseEvent $event): void
    {
        if (!$event->isMainRequest()) {
            return;
        }
        $response = $event->getResponse();
        $finished = $this->channel !== null && self::guarded(function () use ($event, $response): void {
            $this->settle();
            if ($this->user->isAuthenticated()) {
                RequestScope::current()->signedIn();
            }
            $this->isConfigured && $this->declare($response);
            ResponseLines::finish($this->channel, $event->getRequest(), $response, self::usesSession($event->getRequest()));
        });
        // Drupal's own Cache-Control would have a page stored without its tags, and a change would not purge it.
        if (!$finished || !$this->isConfigured || ($response instanceof CacheableResponseInterface && !$response->headers->has('Cache-Groups'))) {
            $response->headers->set('Pagewell-Cache-Control', 'no-store');
        }
    }

    public function lose(FinishRequestEvent $event): void
    {
        if ($event->isMainRequest()) {
            self::guarded(fn () => $this->channel?->lose());
        }
    }

    public function end(): void
    {
        self::guarded(static fn () => RequestScope::current()->end());
    }

    /** Called last of all invalidators: a page that is rendered afterwards finds Drupal's own caches emptied. */
    public function invalidateTags(array $tags): void
    {
        // No page has an empty tag, because it would not have been declared.
        $tags = array_values(array_filter(array_map('strval', $tags), static fn (string $tag): bool => $tag !== ''));
        if ($tags === []) {
            return;
        }
        self::guarded($this->settle(...));
        try {
            RequestScope::current()->changedTags(...$tags);
        } catch (\Throwable $fault) {
            $this->sayAnyway((new Changes())->changedTags(...$tags), $fault);
        }
    }

    /**
     * Whether the visitor has a session. Drupal prepares one for everybody (SessionManager::start(), which may also
     * choose an id), and starts it only if there is a cookie, or something to store.
     */
    private static function usesSession(Request $request): bool
    {
        if (session_status() === PHP_SESSION_ACTIVE) {
            return true;
        }
        $session = $request->hasSession() ? $request->getSession() : null;
        return $session !== null && ($session->isStarted() || !$session instanceof Session || !$session->isEmpty());
    }

    private function declare(Response $response): void
    {
        if (!$response instanceof CacheableResponseInterface || $this->channel?->isSent()) {
            return;
        }
        $tags = $response->getCacheableMetadata()->getCacheTags();
        $seconds = $response->getMaxAge();
        if ($tags !== [] && $seconds !== null && $seconds > 0) {
            RequestScope::current()->usesTags(...array_values($tags));
            RequestScope::current()->freshFor($seconds);
        }
    }

    /**
     * Holds changes while Drupal's transaction is open. Sends them if it has ended without a
     * callback.
     */
    private function settle(): void
    {
        $transaction = RequestScope::current()->transaction(self::CONNECTION);
        if (!$this->database->inTransaction()) {
            $transaction->commitAll();
            return;
        }
        if (!$transaction->isOpen()) {
            $transaction->begin();
        }
        if ($this->awaited?->get() === null) {
            $this->await();
        }
    }

    /** Sends the held changes when the transaction ends, also after a rollback, which costs a render at most. */
    private function await(): void
    {
        $send = static function (): void {
            self::guarded(static fn () => RequestScope::current()->transaction(self::CONNECTION)->commitAll());
        };
        // Drupal 10.2 and newer; in older versions the connection itself accepts the callback.
        if (method_exists($this->database, 'transactionManager')) {
            $this->database->transactionManager()->addPostTransactionCallback($send);
        } else {
            $this->database->addRootTransactionEndCallback($send);
        }
        $this->awaited = \WeakReference::create($send);
    }

    /** Adds a change to the response that the library has refused, or logs the command if there is no response. */
    private function sayAnyway(Changes $changes, \Throwable $fault): void
    {
        $carried = $this->channel !== null && !$this->channel->isSent() && !in_array($this->channel->method(), ['GET', 'HEAD', 'OPTIONS', 'TRACE'], true);
        if ($carried) {
            $this->channel->set($changes->lines());
        }
        $then = $carried ? 'The answer to the request says what has changed.' : 'Pages may be old. Run: ' . PendingChanges::one($changes)->command();
        Configuration::log()->warn("pagewell: {$fault->getMessage()} $then", $fault);
    }

    /**
     * Calls a function, and logs any exception instead of throwing it.
     *
     * @return bool whether it did not throw
     */
    private static function guarded(callable $does): bool
    {
        try {
            $does();
            return true;
        } catch (\Throwable $fault) {
            Configuration::log()->warn("pagewell: {$fault->getMessage()}", $fault);
            return false;
        }
    }
}
