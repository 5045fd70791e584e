<?php

/**
 * The Drupal module in Symfony's HttpKernel, with stand-ins for the three things it asks of Drupal.
 * It has not been run within Drupal itself.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Drupal;

use Drupal\Core\Cache\CacheableResponseInterface;
use Drupal\Core\Database\Connection;
use Drupal\Core\Session\Account;
use Drupal\pagewell\Tags;
use Pagewell\Configuration;
use Pagewell\Core\InvalidationClient;
use Pagewell\RequestScope;
use Pagewell\Testing\RecordingChannel;
use Pagewell\Testing\RecordingClient;
use PHPUnit\Framework\TestCase;
use Symfony\Component\EventDispatcher\EventDispatcher;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpKernel\Controller\ControllerResolver;
use Symfony\Component\HttpKernel\Event\ExceptionEvent;
use Symfony\Component\HttpKernel\Event\ResponseEvent;
use Symfony\Component\HttpKernel\HttpKernel;
use Symfony\Component\HttpKernel\KernelEvents;

final class DrupalTest extends TestCase
{
    private Connection $database;

    private Tags $tags;

    private Account $user;

    public static function setUpBeforeClass(): void
    {
        if (stream_resolve_include_path('Symfony/Component/HttpKernel/autoload.php') === false) {
            self::markTestSkipped('Symfony/Component/HttpKernel/autoload.php is not installed');
        }
        require_once 'Symfony/Component/HttpKernel/autoload.php';
        require_once __DIR__ . '/../../tests/stand-ins/drupal.php';
        require_once __DIR__ . '/../../drupal/pagewell/src/Tags.php';
    }

    protected function setUp(): void
    {
        Configuration::set(new RecordingClient());
        $this->database = new Connection();
        $this->tags = new Tags($this->database, $this->user = new Account());
    }

    protected function tearDown(): void
    {
        Configuration::reset();
        RequestScope::begin();
    }

    public function testAPageHasItsCacheTagsAndTheSitesLifetime(): void
    {
        $response = $this->ask('GET', ['node:4', 'config:user.role.anonymous', 'rendered'], 'public, max-age=600');
        self::assertSame('"node:4", "config:user.role.anonymous", "rendered"', $response->headers->get('Cache-Groups'));
        self::assertSame('max-age=600', $response->headers->get('Pagewell-Cache-Control'));
        self::assertSame('max-age=600, public', $response->headers->get('Cache-Control'));
    }

    public function testOneThatMayNotBeKeptHasNone(): void
    {
        foreach (['must-revalidate, no-cache, private', 'public, max-age=0', ''] as $cacheControl) {
            self::assertFalse($this->ask('GET', ['node:4'], $cacheControl)->headers->has('Cache-Groups'), $cacheControl);
        }
        $this->user->isAuthenticated = true;
        self::assertSame('no-store', $this->ask('GET', ['node:4'], 'public, max-age=600')->headers->get('Pagewell-Cache-Control'));
    }

    public function testWhatIsInvalidatedIsTold(): void
    {
        $channel = RecordingChannel::install('POST');
        $this->tags->invalidateTags(['node:4', 'node_list']);
        self::assertSame(['Cache-Group-Invalidation: "node:4", "node_list"'], $channel->lines());
    }

    public function testInATransactionItWaitsForTheEnd(): void
    {
        $channel = RecordingChannel::install('POST');
        $this->database->open = true;
        $this->tags->invalidateTags(['node:4']);
        $this->tags->invalidateTags(['node_list', 'node:4']);
        self::assertSame([], $channel->lines());
        $this->database->end(true);
        self::assertSame(['Cache-Group-Invalidation: "node:4", "node_list"'], $channel->lines());
        self::assertSame([], $this->database->callbacks);
    }

    public function testACallbackThatIsLostHoldsNothingUpForEver(): void
    {
        $channel = RecordingChannel::install('POST');
        // Somebody's callback fails, and with it those after it are gone.
        $this->database->open = true;
        $this->database->callbacks[] = static fn () => throw new \RuntimeException('of another module');
        $this->tags->invalidateTags(['node:4']);
        try {
            $this->database->end(true);
            self::fail('it was to fail');
        } catch (\RuntimeException) {
            self::assertSame([], $channel->lines());
        }
        $this->database->open = true;
        $this->tags->invalidateTags(['node:5']);
        self::assertCount(1, $this->database->callbacks);
        $this->database->end(true);
        self::assertSame(['Cache-Group-Invalidation: "node:4", "node:5"'], $channel->lines());
    }

    public function testWhatWaitsIsOnTheAnswerEvenIfNobodyWasCalled(): void
    {
        $response = $this->ask('POST', [], '', function (): void {
            $this->database->open = true;
            $this->tags->invalidateTags(['node:4']);
            $this->database->callbacks = [];
            $this->database->open = false;
        });
        self::assertSame('"node:4"', $response->headers->get('Cache-Group-Invalidation'));
    }

    public function testAConnectionThatTakesNoCallbackBreaksNothing(): void
    {
        $said = $this->log();
        $this->database->open = true;
        $this->database->takesCallbacks = false;
        $response = $this->ask('POST', [], '', function (): void {
            $this->tags->invalidateTags(['node:4']);
            $this->database->open = false;
        });
        self::assertSame('"node:4"', $response->headers->get('Cache-Group-Invalidation'));
        self::assertSame(['pagewell: no callbacks'], $said->getArrayCopy());
    }

    public function testAWordThatIsNoneIsLoggedAndTheAnswerSaysTheChange(): void
    {
        $said = $this->log(client: $client = new RecordingClient());
        putenv('PAGEWELL_CHANGES=answer');
        try {
            $response = $this->ask('POST', [], '', fn () => $this->tags->invalidateTags(['node:4', '']));
        } finally {
            putenv('PAGEWELL_CHANGES');
        }
        self::assertSame('"node:4"', $response->headers->get('Cache-Group-Invalidation'));
        self::assertSame(['node:4'], $client->tags());
        self::assertStringContainsString('write response or control. Until then', implode("\n", $said->getArrayCopy()));
    }

    public function testWhatNobodyCanBeToldIsLoggedWithTheCommand(): void
    {
        $said = $this->log(client: false);
        $response = $this->ask('GET', ['node:4'], 'public, max-age=600', fn () => $this->tags->invalidateTags(['node:5']));
        self::assertSame(200, $response->getStatusCode());
        self::assertStringEndsWith("Run: pagewell purge --tag 'node:5'", $said[0]);
    }

    public function testAPageWhoseTagsCannotBeSaidIsNotKept(): void
    {
        $said = $this->log();
        $response = $this->ask('GET', ['node:4', ''], 'public, max-age=600', static fn () => RequestScope::current()->uses('own', 1));
        self::assertSame('no-store', $response->headers->get('Pagewell-Cache-Control'));
        self::assertCount(1, $said);
    }

    public function testTheAnswerToAFaultAfterThePageWasDeclaredIsAnotherPage(): void
    {
        foreach (['GET' => null, 'POST' => '"node:5"'] as $method => $changed) {
            $fails = static function (ResponseEvent $event): void {
                $event->getResponse()->getStatusCode() === 200 && throw new \RuntimeException('late');
            };
            $response = $this->ask($method, ['node:4'], 'public, max-age=600', fn () => $method === 'GET' || $this->tags->invalidateTags(['node:5']), $fails);
            self::assertSame([500, false], [$response->getStatusCode(), $response->headers->has('Cache-Groups')]);
            self::assertFalse($response->headers->has('Pagewell-Cache-Control'));
            self::assertSame($changed, $response->headers->get('Cache-Group-Invalidation'));
        }
    }

    public function testAWriteThatEndsWithoutAResponseIsTold(): void
    {
        $client = new RecordingClient();
        Configuration::set($client);
        try {
            $this->ask('POST', [], '', function (): void {
                $this->tags->invalidateTags(['node:4']);
                throw new \LogicException('nobody makes a response of this');
            });
            self::fail('it was to fail');
        } catch (\LogicException) {
            $this->tags->end();
            self::assertSame(['node:4'], $client->tags());
        }
    }

    public function testDrupalsOwnCachesAreEmptiedBeforePagewellHears(): void
    {
        $services = (string) file_get_contents(__DIR__ . '/../../drupal/pagewell/pagewell.services.yml');
        self::assertStringContainsString('{ name: cache_tags_invalidator, priority: -1000 }', $services);
    }

    /** Returns the messages of the log from here on. */
    private function log(InvalidationClient|false|null $client = null): \ArrayObject
    {
        $said = new \ArrayObject();
        Configuration::set($client ?? new RecordingClient(), static fn (string $text) => $said->append($text));
        return $said;
    }

    /** @param list<string> $tags */
    private function ask(string $method, array $tags, string $cacheControl, ?callable $does = null, ?callable $late = null): Response
    {
        $response = new class ($tags) extends Response implements CacheableResponseInterface {
            /** @param list<string> $tags */
            public function __construct(private readonly array $tags)
            {
                parent::__construct('page');
            }

            public function getCacheableMetadata(): self
            {
                return $this;
            }

            /** @return list<string> */
            public function getCacheTags(): array
            {
                return $this->tags;
            }
        };
        $response->headers->set('Cache-Control', $cacheControl);
        $dispatcher = new EventDispatcher();
        $dispatcher->addSubscriber($this->tags);
        if ($late !== null) {
            $dispatcher->addListener(KernelEvents::RESPONSE, $late, -4096);
            $dispatcher->addListener(KernelEvents::EXCEPTION, static fn (ExceptionEvent $event) => $event->setResponse(new Response('fault', 500)));
        }
        $request = Request::create('/', $method);
        $request->attributes->set('_controller', static function () use ($response, $does): Response {
            $does === null || $does();
            return $response;
        });
        return (new HttpKernel($dispatcher, new ControllerResolver()))->handle($request);
    }
}
