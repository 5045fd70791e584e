<?php

/**
 * Visitors whom Symfony's security component knows: with a stand-in for it, in Symfony's own
 * HttpKernel.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Glue;

use Pagewell\RequestScope;
use Pagewell\Symfony\Listener;
use Pagewell\Testing\RecordingClient;
use PHPUnit\Framework\TestCase;
use Symfony\Component\EventDispatcher\EventDispatcher;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpKernel\Controller\ControllerResolver;
use Symfony\Component\HttpKernel\HttpKernel;
use Symfony\Component\Security\Core\Authentication\Token\Storage\TokenStorage;
use Symfony\Component\Security\Core\Authentication\Token\TokenInterface;

use function Pagewell\uses;

final class SymfonySecurityTest extends TestCase
{
    public static function setUpBeforeClass(): void
    {
        if (stream_resolve_include_path('Symfony/Component/HttpKernel/autoload.php') === false) {
            self::markTestSkipped('Symfony/Component/HttpKernel/autoload.php is not installed');
        }
        require_once 'Symfony/Component/HttpKernel/autoload.php';
        require_once __DIR__ . '/../stand-ins/symfony-security.php';
    }

    protected function tearDown(): void
    {
        RequestScope::begin();
    }

    public function testAPageOfASignedInVisitorIsNeverOffered(): void
    {
        $tokens = new TokenStorage();
        $tokens->setToken(self::token(new \stdClass()));
        $page = static function (): Response {
            uses('news', 4);
            return (new Response('Hello Ada'))->setPublic();
        };
        $response = self::ask($page, $tokens);
        self::assertFalse($response->headers->has('Cache-Groups'));
        self::assertSame('no-store', $response->headers->get('Pagewell-Cache-Control'));
        // Nobody is signed in, or only as `anon.`, as Symfony 5 names a visitor.
        foreach ([null, self::token(null), self::token('anon.')] as $token) {
            $tokens->setToken($token);
            self::assertTrue(self::ask($page, $tokens)->headers->has('Cache-Groups'));
        }
    }

    public function testALazyFirewallThatNobodyHasAskedIsNotAskedHere(): void
    {
        $tokens = new TokenStorage();
        $page = static function (): Response {
            uses('news', 4);
            return new Response('page');
        };
        $tokens->setInitializer(static fn () => self::fail('it was asked'));
        $response = self::ask($page, $tokens);
        self::assertSame('"news:4", "news:*"', $response->headers->get('Cache-Groups'));
    }

    private static function token(mixed $user): TokenInterface
    {
        return new class ($user) implements TokenInterface {
            public function __construct(private readonly mixed $user)
            {
            }

            public function getUser()
            {
                return $this->user;
            }
        };
    }

    private static function ask(callable $controller, TokenStorage $tokens): Response
    {
        $dispatcher = new EventDispatcher();
        $dispatcher->addSubscriber(new Listener(new RecordingClient(), $tokens));
        $request = Request::create('/');
        $request->attributes->set('_controller', $controller);
        return (new HttpKernel($dispatcher, new ControllerResolver()))->handle($request);
    }
}
