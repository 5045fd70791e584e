<?php

/**
 * Symfony: adds declarations and changes to the response, and applies the attributes of
 * controllers.
 *
 *     event                                     what happens
 *     kernel.request (main)                     the state of the request begins
 *     kernel.controller_arguments (main)        usesOf(controller, its arguments and the attributes of the request);
 *                                               FosHttpCache\Tag
 *     kernel.response (main, after the session) lines are added to the response, unless the visitor is
 *                                               signed in; waiting changes are sent
 *     kernel.finish_request (main)              without a response: changes are sent anyway
 *     kernel.terminate                          later changes are sent
 *     console.terminate, a message of the       the same, except those that wait for a commit: a command may
 *     messenger, done or not                    run within a transaction, and the process continues
 *
 * A sub-request belongs to its page.
 */

declare(strict_types=1);

namespace Pagewell\Symfony;

use Pagewell\Bridge\HttpFoundation\ResponseLines;
use Pagewell\CollectingChannel;
use Pagewell\Configuration;
use Pagewell\InvalidationClient;
use Pagewell\OutboxDelivery;
use Pagewell\RequestScope;
use Pagewell\RowKey;
use Pagewell\Symfony\FosHttpCache\Tag;
use Pagewell\Symfony\Profiler\PageReport;
use Symfony\Component\EventDispatcher\EventSubscriberInterface;
use Symfony\Component\HttpKernel\Event\ControllerArgumentsEvent;
use Symfony\Component\HttpKernel\Event\FinishRequestEvent;
use Symfony\Component\HttpKernel\Event\RequestEvent;
use Symfony\Component\HttpKernel\Event\ResponseEvent;
use Symfony\Component\HttpKernel\KernelEvents;
use Symfony\Component\Security\Core\Authentication\Token\Storage\TokenStorageInterface;

use function Pagewell\changedTags;
use function Pagewell\usesOf;
use function Pagewell\usesTags;

/**
 * Connects Symfony's events with the library.
 *
 * @internal
 */
final class Listener implements EventSubscriberInterface
{
    private ?CollectingChannel $channel = null;

    /** @var list<string> FosHttpCache\Tag of a controller that writes */
    private array $written = [];

    /**
     * @param InvalidationClient|false|null $client as RequestScope::begin() takes it
     * @param TokenStorageInterface|null    $tokens of the security component; null without it
     * @param PageReport|null               $report for the profiler; null without it
     */
    public function __construct(private readonly InvalidationClient|false|null $client = null, private readonly ?TokenStorageInterface $tokens = null, private readonly ?PageReport $report = null)
    {
    }

    public static function getSubscribedEvents(): array
    {
        return [
            KernelEvents::REQUEST => ['begin', 4096],
            KernelEvents::CONTROLLER_ARGUMENTS => ['state', 0],
            // After whatever may still set a cookie or end the session (-1000).
            KernelEvents::RESPONSE => ['finish', -2048],
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
            $this->written = [];
            $this->channel = CollectingChannel::begin($event->getRequest()->getMethod(), $this->client, isEnded: true, capability: (string) $event->getRequest()->headers->get('Surrogate-Capability', ''), credentials: ResponseLines::credentials($event->getRequest()));
        }
    }

    public function state(ControllerArgumentsEvent $event): void
    {
        if ($event->isMainRequest()) {
            $controller = $event->getController();
            $name = match (true) {
                is_array($controller) => (is_object($controller[0]) ? $controller[0]::class : $controller[0]) . "::{$controller[1]}",
                is_object($controller) => $controller::class,
                default => $controller,
            };
            $request = $event->getRequest();
            $parameters = self::parameters($controller(...), $event->getArguments(), $request->attributes->all());
            usesOf($name, $parameters);
            $tags = Tag::of($controller, ['request' => $request] + $request->attributes->all() + $parameters);
            if ($request->isMethodSafe()) {
                $tags === [] || usesTags(...$tags);
            } else {
                $this->written = $tags;
            }
        }
    }

    public function finish(ResponseEvent $event): void
    {
        if ($event->isMainRequest() && $this->channel !== null) {
            if ($this->isSignedIn()) {
                RequestScope::current()->signedIn();
            }
            if ($this->written !== [] && $event->getResponse()->getStatusCode() < 400) {
                changedTags(...$this->written);
            }
            $page = $this->report === null ? null : RequestScope::current()->standing();
            ResponseLines::finish($this->channel, $event->getRequest(), $event->getResponse());
            $page === null || $this->report?->remember($event->getRequest(), $page[0], $this->channel->response(), $event->getResponse());
        }
    }

    public function lose(FinishRequestEvent $event): void
    {
        if ($event->isMainRequest()) {
            $this->channel?->lose();
        }
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

    /**
     * The values for `{name}` in the attributes of a controller. A row among the arguments precedes the text
     * of the URL that has its name: `{slug:news}` and `News $news`.
     *
     * @param array<mixed>         $arguments  of the controller, in order
     * @param array<string, mixed> $attributes of the request
     *
     * @return array<string, mixed>
     */
    private static function parameters(\Closure $controller, array $arguments, array $attributes): array
    {
        $names = array_map(static fn (\ReflectionParameter $one): string => $one->getName(), (new \ReflectionFunction($controller))->getParameters());
        $count = min(count($names), count($arguments));
        $named = $count === 0 ? [] : array_combine(array_slice($names, 0, $count), array_slice(array_values($arguments), 0, $count));
        $rows = array_filter($named, static fn (mixed $one): bool => is_object($one) && RowKey::isRow($one));
        return $rows + $attributes + $named;
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
