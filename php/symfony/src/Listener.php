<?php

/**
 * Symfony: adds declarations and changes to the response, and applies the attributes of
 * controllers.
 *
 *     event                                     what happens
 *     kernel.request (main)                     the state of the request begins
 *     kernel.controller_arguments               the attributes of the controller are read (ControllerAttributes); those
 *                                               of the main request are declared
 *     kernel.response (first)                   the tags of a write have changed
 *     kernel.response (main, after the session) sub-requests are declared (PageParts), lines are added to the response,
 *                                               unless the visitor is signed in; waiting changes are sent
 *     kernel.exception, kernel.finish_request   a sub-request that failed: the page is not cached
 *     kernel.finish_request (main)              without a response: changes are sent anyway
 *     kernel.terminate                          later changes are sent
 *     console.terminate, a message of the       the same, except those that wait for a commit: a command may
 *     messenger, done or not                    run within a transaction, and the process continues
 */

declare(strict_types=1);

namespace Pagewell\Symfony;

use Pagewell\Bridge\HttpFoundation\ResponseLines;
use Pagewell\Bridge\PurgeDelivery;
use Pagewell\ChangeDelivery;
use Pagewell\CollectingChannel;
use Pagewell\Configuration;
use Pagewell\Core\Exception\InvalidConfiguration;
use Pagewell\Core\Exception\UseAfterHeaders;
use Pagewell\Core\Invalidation;
use Pagewell\Core\InvalidationClient;
use Pagewell\OutboxDelivery;
use Pagewell\RequestScope;
use Pagewell\Symfony\Profiler\PageReport;
use Symfony\Component\EventDispatcher\EventSubscriberInterface;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpKernel\Event\ControllerArgumentsEvent;
use Symfony\Component\HttpKernel\Event\ExceptionEvent;
use Symfony\Component\HttpKernel\Event\FinishRequestEvent;
use Symfony\Component\HttpKernel\Event\RequestEvent;
use Symfony\Component\HttpKernel\Event\ResponseEvent;
use Symfony\Component\HttpKernel\KernelEvents;
use Symfony\Component\Security\Core\Authentication\Token\Storage\TokenStorageInterface;

use function Pagewell\changedTags;

/**
 * Connects Symfony's events with the library.
 *
 * @internal
 */
final class Listener implements EventSubscriberInterface
{
    private ?CollectingChannel $channel = null;

    private PageParts $parts;

    /** @var array<int, ControllerAttributes> of the requests that are running, by the number of the object */
    private array $running = [];

    /** @var array<int, true> sub-requests that have a response, by the same number */
    private array $answered = [];

    /** Whether the main request is a GET or HEAD. */
    private bool $isPage = false;

    private bool $isError = false;

    /** Whether the page was offered for caching. */
    private bool $isOffered = false;

    /** Whether a write has changed a tag that is unknown, so that every page is purged. */
    private bool $isUnknownWritten = false;

    /**
     * @param InvalidationClient|false|null $client as RequestScope::begin() takes it
     * @param TokenStorageInterface|null    $tokens of the security component; null without it
     * @param PageReport|null               $report for the profiler; null without it
     */
    public function __construct(private readonly InvalidationClient|false|null $client = null, private readonly ?TokenStorageInterface $tokens = null, private readonly ?PageReport $report = null)
    {
        $this->parts = new PageParts();
    }

    public static function getSubscribedEvents(): array
    {
        return [
            KernelEvents::REQUEST => ['begin', 4096],
            KernelEvents::CONTROLLER_ARGUMENTS => ['read', 0],
            KernelEvents::EXCEPTION => ['fail', 4096],
            // At once; and after whatever may still set a cookie or end the session (-1000).
            KernelEvents::RESPONSE => [['change', 4096], ['finish', -2048]],
            KernelEvents::FINISH_REQUEST => ['lose', -2048],
            KernelEvents::TERMINATE => ['end', -2048],
            'console.terminate' => ['flush', -2048],
            'Symfony\Component\Messenger\Event\WorkerMessageHandledEvent' => ['flush', -2048],
            'Symfony\Component\Messenger\Event\WorkerMessageFailedEvent' => ['flush', -2048],
        ];
    }

    public function begin(RequestEvent $event): void
    {
        if ($event->isMainRequest()) {
            [$this->parts, $this->running, $this->answered] = [new PageParts(), [], []];
            [$this->isPage, $this->isError, $this->isOffered, $this->isUnknownWritten] = [$event->getRequest()->isMethodSafe(), false, false, false];
            $this->channel = CollectingChannel::begin($event->getRequest()->getMethod(), $this->client, isEnded: true, capability: (string) $event->getRequest()->headers->get('Surrogate-Capability', ''), credentials: ResponseLines::credentials($event->getRequest()));
        }
    }

    public function read(ControllerArgumentsEvent $event): void
    {
        if ($this->channel === null) {
            return; // A sub-request of a command: there is no page.
        }
        $attributes = ControllerAttributes::of($event, $this->isPage);
        $this->running[spl_object_id($event->getRequest())] = $attributes;
        if ($event->isMainRequest() || ($this->isOffered && !$attributes->isEmpty())) {
            $this->declare($attributes);
        } elseif (!$this->channel->isSent()) {
            $this->parts->add($attributes);
        }
    }

    /**
     * In a StreamedResponse the page was offered without the sub-request. Symfony leaves out a sub-request that ends
     * with an exception; an error ends the page, and it is not stored.
     */
    private function declare(ControllerAttributes $attributes): void
    {
        try {
            $attributes->declare(RequestScope::current());
        } catch (UseAfterHeaders $late) {
            throw new \Error($late->getMessage(), 0, $late);
        }
    }

    public function fail(ExceptionEvent $event): void
    {
        $event->isMainRequest() ? $this->isError = true : $this->parts->broke();
    }

    /** A later listener may fail: what the controller has written is said before. */
    public function change(ResponseEvent $event): void
    {
        $attributes = $this->running[spl_object_id($event->getRequest())] ?? null;
        if ($attributes !== null && $event->getResponse()->getStatusCode() < 400) {
            $attributes->written === [] || changedTags(...$attributes->written);
            $this->isUnknownWritten = $this->isUnknownWritten || $attributes->isUnknownWritten;
        }
    }

    public function finish(ResponseEvent $event): void
    {
        $number = spl_object_id($event->getRequest());
        if (!$event->isMainRequest()) {
            $this->answered[$number] = true;
            $this->parts->answered($this->running[$number] ?? null, $event->getResponse());
        } elseif ($this->channel !== null) {
            $this->finishPage($this->channel, $event->getRequest(), $event->getResponse());
        }
    }

    public function lose(FinishRequestEvent $event): void
    {
        $number = spl_object_id($event->getRequest());
        if ($event->isMainRequest()) {
            $isLost = $this->channel?->isSent() === false;
            $this->channel?->lose();
            $isLost && $this->isUnknownWritten && PurgeDelivery::send(new Invalidation(all: true));
        } elseif (!isset($this->answered[$number])) {
            $this->parts->broke();
        }
        unset($this->running[$number], $this->answered[$number]);
    }

    public function end(): void
    {
        RequestScope::current()->end();
    }

    public function flush(): void
    {
        RequestScope::current()->flushOrLog();
        OutboxDelivery::attempt(Configuration::client($this->client));
    }

    private function finishPage(CollectingChannel $channel, Request $request, Response $response): void
    {
        if ($this->isPage && !$channel->isSent()) {
            $this->parts->declare(RequestScope::current(), $response, $this->isError);
        }
        if ($this->isSignedIn()) {
            RequestScope::current()->signedIn();
        }
        $page = $this->report === null ? null : RequestScope::current()->standing();
        ResponseLines::finish($channel, $request, $response);
        $this->isUnknownWritten && $this->purgeEverything($response);
        $this->isOffered = preg_match('/max-age=[1-9]/', (string) $response->headers->get('Pagewell-Cache-Control', '')) === 1;
        $page === null || $this->report?->remember($request, $page[0], $channel->response(), $response);
    }

    /** On the response; and over the control interface, if responses to writes do not reach Pagewell, or this is none. */
    private function purgeEverything(Response $response): void
    {
        $response->headers->set('Cache-Group-Invalidation', '*', false);
        try {
            $isCarried = !$this->isPage && Configuration::way() === ChangeDelivery::Response;
        } catch (InvalidConfiguration) {
            $isCarried = false;
        }
        $isCarried || PurgeDelivery::send(new Invalidation(all: true));
    }

    /**
     * Whether the security component has identified the visitor. If a lazy firewall has not been
     * asked, nothing was rendered for that visitor, and the question would begin the session.
     */
    private function isSignedIn(): bool
    {
        $tokens = $this->tokens;
        if ($tokens === null || (fn (): bool => isset($this->initializer))->call($tokens)) {
            return false;
        }
        // The user of an anonymous token, in Symfony 5, is a text.
        return is_object($tokens->getToken()?->getUser());
    }
}
