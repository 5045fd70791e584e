<?php

/**
 * The Drupal module with mistyped variables PAGEWELL_*: the site works, the log says what is wrong, no page is
 * stored, and no change is lost. In Symfony's HttpKernel, as DrupalTest.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Drupal;

use Drupal\Core\Cache\CacheableResponseInterface;
use Drupal\Core\Database\Connection;
use Drupal\Core\Session\Account;
use Drupal\pagewell\Tags;
use Pagewell\Configuration;
use Pagewell\RequestScope;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Symfony\Component\EventDispatcher\EventDispatcher;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpKernel\Controller\ControllerResolver;
use Symfony\Component\HttpKernel\HttpKernel;

final class DrupalSettingsTest extends TestCase
{
    private Tags $tags;

    /** @var list<string> */
    private array $log = [];

    private string $variable = '';

    public static function setUpBeforeClass(): void
    {
        DrupalTest::setUpBeforeClass();
    }

    protected function setUp(): void
    {
        $this->tags = new Tags(new Connection(), new Account());
        Configuration::set(log: function (string $line): void {
            $this->log[] = $line;
        });
    }

    protected function tearDown(): void
    {
        putenv($this->variable);
        Configuration::reset();
        RequestScope::begin();
    }

    /** @dataProvider mistyped */
    #[DataProvider('mistyped')]
    public function testAMistypedValueLetsNoPageBeStored(string $name, string $value): void
    {
        self::assertSame('"node:4"', $this->ask('GET')->headers->get('Cache-Groups'), 'with right values');
        $this->variable = "PAGEWELL_$name";
        putenv("$this->variable=$value");
        $response = $this->ask('GET');
        self::assertSame([200, null, 'no-store'], [$response->getStatusCode(), $response->headers->get('Cache-Groups'), $response->headers->get('Pagewell-Cache-Control')]);
        self::assertStringContainsString($this->variable, implode("\n", $this->log));
        self::assertSame('"node:5"', $this->ask('POST')->headers->get('Cache-Group-Invalidation'));
        putenv($this->variable);
        self::assertSame('"node:4"', $this->ask('GET')->headers->get('Cache-Groups'), 'with right values again');
    }

    /** @return iterable<array{string, string}> */
    public static function mistyped(): iterable
    {
        yield ['ADMIN', 'localhost 8081'];
        yield ['TOKEN_FILE', '/nowhere/token'];
        yield ['SITE', 'https://example.org/'];
        yield ['CHANGES', 'answer'];
        yield ['SHARED_COOKIES', 'cur rency;'];
        yield ['LIFETIME', 'a day'];
        yield ['OUTBOX', 'var/outbox'];
    }

    private function ask(string $method): Response
    {
        $response = new class ('page', 200, ['Cache-Control' => 'public, max-age=600']) extends Response implements CacheableResponseInterface {
            public function getCacheableMetadata(): self
            {
                return $this;
            }

            /** @return list<string> */
            public function getCacheTags(): array
            {
                return ['node:4'];
            }
        };
        $dispatcher = new EventDispatcher();
        $dispatcher->addSubscriber($this->tags);
        $request = Request::create('/', $method);
        $request->attributes->set('_controller', function () use ($response, $method): Response {
            $method === 'POST' && $this->tags->invalidateTags(['node:5']);
            return $response;
        });
        return (new HttpKernel($dispatcher, new ControllerResolver()))->handle($request);
    }
}
