<?php

/**
 * The session that Drupal prepares for every visitor makes no page personal, until something is in it. As
 * Drupal\Core\Session\SessionManager does it, in Symfony's own Session.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Drupal;

use Drupal\Core\Cache\CacheableResponseInterface;
use Drupal\Core\Database\Connection;
use Drupal\Core\Session\Account;
use Drupal\pagewell\Tags;
use Pagewell\Configuration;
use Pagewell\RequestScope;
use Pagewell\Testing\RecordingClient;
use PHPUnit\Framework\TestCase;
use Symfony\Component\EventDispatcher\EventDispatcher;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpFoundation\Session\Session;
use Symfony\Component\HttpFoundation\Session\Storage\MockArraySessionStorage;
use Symfony\Component\HttpKernel\Controller\ControllerResolver;
use Symfony\Component\HttpKernel\HttpKernel;

final class DrupalSessionTest extends TestCase
{
    public static function setUpBeforeClass(): void
    {
        DrupalTest::setUpBeforeClass();
    }

    protected function setUp(): void
    {
        Configuration::set(new RecordingClient());
    }

    protected function tearDown(): void
    {
        Configuration::reset();
        RequestScope::begin();
    }

    public function testAPreparedSessionThatIsReadIsNone(): void
    {
        $session = self::prepared();
        $session->get('messages');
        self::assertGreaterThan(0, $session->getUsageIndex());
        self::assertSame('"node:4"', self::ask($session)->headers->get('Cache-Groups'));
    }

    public function testAPageWithASessionIsNotStoredByDrupalsOwnLifetime(): void
    {
        ($written = self::prepared())->set('cart', [4]);
        ($started = new Session(new MockArraySessionStorage()))->start();
        foreach ([$written, $started] as $session) {
            $response = self::ask($session);
            self::assertFalse($response->headers->has('Cache-Groups'));
            self::assertSame('no-store', $response->headers->get('Pagewell-Cache-Control'));
        }
    }

    /** Loaded and not started: there was no cookie. */
    private static function prepared(): Session
    {
        $session = new Session(new class () extends MockArraySessionStorage {
            public function start(): bool
            {
                $this->loadSession();
                return $this->started = false;
            }
        });
        $session->start();
        return $session;
    }

    private static function ask(Session $session): Response
    {
        $response = new class ('page') extends Response implements CacheableResponseInterface {
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
        $response->headers->set('Cache-Control', 'public, max-age=600');
        $dispatcher = new EventDispatcher();
        $dispatcher->addSubscriber(new Tags(new Connection(), new Account()));
        $request = Request::create('/');
        $request->setSession($session);
        $request->attributes->set('_controller', static fn (): Response => $response);
        return (new HttpKernel($dispatcher, new ControllerResolver()))->handle($request);
    }
}
