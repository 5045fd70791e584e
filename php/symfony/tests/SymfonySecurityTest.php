<?php

/**
 * Visitors whom Symfony's security component knows, in Symfony's own HttpKernel.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Symfony;

use Pagewell\RequestScope;
use Pagewell\Symfony\Listener;
use Pagewell\Testing\RecordingClient;
use PHPUnit\Framework\TestCase;
use Symfony\Component\EventDispatcher\EventDispatcher;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpKernel\Controller\ControllerResolver;
use Symfony\Component\HttpKernel\HttpKernel;
use Symfony\Component\Security\Core\Authentication\Token\AnonymousToken;
use Symfony\Component\Security\Core\Authentication\Token\NullToken;
use Symfony\Component\Security\Core\Authentication\Token\Storage\TokenStorage;
use Symfony\Component\Security\Core\Authentication\Token\UsernamePasswordToken;
use Symfony\Component\Security\Core\User\InMemoryUser;

use function Pagewell\uses;

final class SymfonySecurityTest extends TestCase
{
    public static function setUpBeforeClass(): void
    {
        foreach (['HttpKernel', 'Security/Core'] as $component) {
            if (stream_resolve_include_path("Symfony/Component/$component/autoload.php") === false) {
                self::markTestSkipped("Symfony/Component/$component/autoload.php is not installed");
            }
            require_once "Symfony/Component/$component/autoload.php";
        }
    }

    protected function tearDown(): void
    {
        RequestScope::begin();
    }

    public function testAPageOfASignedInVisitorIsNeverOffered(): void
    {
        $tokens = new TokenStorage();
        $tokens->setToken(new UsernamePasswordToken(new InMemoryUser('ada', 'a'), 'main'));
        $page = static function (): Response {
            uses('news', 4);
            return (new Response('Hello Ada'))->setPublic();
        };
        $response = self::ask($page, $tokens);
        self::assertFalse($response->headers->has('Cache-Groups'));
        self::assertSame('no-store', $response->headers->get('Pagewell-Cache-Control'));
        // Nobody is signed in, or only as `anon.`, as Symfony 5 names a visitor.
        foreach ([null, new NullToken(), ...(class_exists(AnonymousToken::class) ? [new AnonymousToken('secret', 'anon.')] : [])] as $token) {
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

    private static function ask(callable $controller, TokenStorage $tokens): Response
    {
        $dispatcher = new EventDispatcher();
        $dispatcher->addSubscriber(new Listener(new RecordingClient(), $tokens));
        $request = Request::create('/');
        $request->attributes->set('_controller', $controller);
        return (new HttpKernel($dispatcher, new ControllerResolver()))->handle($request);
    }
}
