<?php

/**
 * The Drupal module in Symfony's HttpKernel, with stand-ins for the three things it asks of Drupal.
 * It has not been run within Drupal itself.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Glue;

use Drupal\Core\Cache\CacheableResponseInterface;
use Drupal\Core\Database\Connection;
use Drupal\pagewell\Tags;
use Pagewell\Outgoing;
use Pagewell\RecordingControl;
use Pagewell\RecordingWire;
use PHPUnit\Framework\TestCase;
use Symfony\Component\EventDispatcher\EventDispatcher;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpKernel\Controller\ControllerResolver;
use Symfony\Component\HttpKernel\HttpKernel;

final class DrupalTest extends TestCase
{
    private Connection $database;

    private Tags $tags;

    public static function setUpBeforeClass(): void
    {
        if (stream_resolve_include_path('Symfony/Component/HttpKernel/autoload.php') === false) {
            self::markTestSkipped('Symfony/Component/HttpKernel/autoload.php is not installed');
        }
        require_once 'Symfony/Component/HttpKernel/autoload.php';
        require_once __DIR__ . '/../stand-ins/drupal.php';
        require_once __DIR__ . '/../../../drupal/pagewell/src/Tags.php';
    }

    protected function setUp(): void
    {
        Outgoing::configure(new RecordingControl());
        $this->database = new Connection();
        $this->tags = new Tags($this->database);
    }

    protected function tearDown(): void
    {
        Outgoing::configure();
        Outgoing::begin();
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
    }

    public function testWhatIsInvalidatedIsTold(): void
    {
        $wire = RecordingWire::install('POST');
        $this->tags->invalidateTags(['node:4', 'node_list']);
        self::assertSame(['Cache-Group-Invalidation: "node:4", "node_list"'], $wire->lines());
    }

    public function testInATransactionItWaitsForTheEnd(): void
    {
        $wire = RecordingWire::install('POST');
        $this->database->open = true;
        $this->tags->invalidateTags(['node:4']);
        $this->tags->invalidateTags(['node_list', 'node:4']);
        self::assertSame([], $wire->lines());
        $this->database->end(true);
        self::assertSame(['Cache-Group-Invalidation: "node:4", "node_list"'], $wire->lines());
        self::assertSame([], $this->database->callbacks);
    }

    /** @param list<string> $tags */
    private function ask(string $method, array $tags, string $cacheControl): Response
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
        $request = Request::create('/', $method);
        $request->attributes->set('_controller', static fn (): Response => $response);
        return (new HttpKernel($dispatcher, new ControllerResolver()))->handle($request);
    }
}
