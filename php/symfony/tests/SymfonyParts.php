<?php

/**
 * The application of SymfonySubRequestsTest: pages with parts, and the parts.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Symfony;

use Pagewell\Attribute\FreshFor;
use Pagewell\Attribute\NotCached;
use Pagewell\Attribute\Uses;
use Pagewell\Symfony\FosHttpCache\Tag;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpFoundation\StreamedResponse;
use Symfony\Component\HttpKernel\Attribute\AsController;
use Symfony\Component\HttpKernel\Controller\ControllerReference;
use Symfony\Component\HttpKernel\Exception\NotFoundHttpException;
use Symfony\Component\HttpKernel\Fragment\EsiFragmentRenderer;
use Symfony\Component\HttpKernel\Fragment\InlineFragmentRenderer;
use Symfony\Component\HttpKernel\HttpKernel;
use Symfony\Component\HttpKernel\HttpKernelInterface;

use function Pagewell\uses;

/** Pages, and the parts that they embed: `part` names one. */
#[AsController]
final class SymfonyParts
{
    public static ?HttpKernel $kernel = null;

    public static InlineFragmentRenderer $inline;

    public static EsiFragmentRenderer $esi;

    #[Uses('news:{id}')]
    public function show(Request $request, int $id, string $part): Response
    {
        return new Response("news $id, " . self::render($request, $part === 'show' ? 'comments' : $part, ['ignore_errors' => true]));
    }

    /** As show(), where errors are shown. */
    #[Uses('news:{id}')]
    public function strict(Request $request, int $id, string $part): Response
    {
        return new Response("news $id, " . self::render($request, $part));
    }

    #[Uses('news:{id}')]
    public function alternative(Request $request, int $id, string $part): Response
    {
        return new Response("news $id, " . self::render($request, $part, ['alt' => new ControllerReference(self::class . '::comments')]));
    }

    /** The kernel handles the exception of the part. */
    #[Uses('news:{id}')]
    public function embed(int $id, string $part): Response
    {
        return new Response("news $id, " . self::handled(Request::create('/part'), $part)->getContent());
    }

    public function undeclared(Request $request, string $part): Response
    {
        return new Response('page, ' . self::render($request, $part));
    }

    public function afterwards(Request $request, string $part): Response
    {
        $rendered = self::render($request, $part);
        uses('polls');
        return new Response($rendered);
    }

    /** As AbstractController::forward() does it. */
    public function forward(Request $request, string $part): Response
    {
        return self::handled($request->duplicate([], null, ['id' => 4, 'part' => $part]), $part);
    }

    #[Uses('news:{id}')]
    public function stream(Request $request, int $id, string $part): Response
    {
        return new StreamedResponse(static fn () => print self::render($request, $part, ['ignore_errors' => true]));
    }

    #[Uses('news:{id}')]
    public function esi(Request $request, int $id): Response
    {
        return new Response("news $id, " . self::$esi->render(new ControllerReference(self::class . '::author', ['author' => 7]), $request)->getContent());
    }

    #[Uses('comments')]
    public function comments(): Response
    {
        return new Response('comments');
    }

    #[Uses('authors:{author}')]
    public function author(int $author = 7): Response
    {
        return new Response("by $author");
    }

    #[NotCached('by IP address')]
    public function visitor(): Response
    {
        return new Response('for 192.0.2.7');
    }

    #[FreshFor(60)]
    public function weather(): Response
    {
        return new Response('sunny');
    }

    #[FreshFor(0)]
    public function dice(): Response
    {
        return new Response('six');
    }

    #[Tag('footer')]
    public function tagged(): Response
    {
        return new Response('footer');
    }

    public function nested(Request $request): Response
    {
        return new Response(self::render($request, 'comments'));
    }

    public function member(): Response
    {
        return (new Response('Hello Ada'))->setPrivate();
    }

    public function calling(): Response
    {
        uses('polls');
        return new Response('poll');
    }

    public function failing(): Response
    {
        throw new \RuntimeException('the database is away');
    }

    public function missing(): Response
    {
        throw new NotFoundHttpException();
    }

    #[Uses('news:{id}')]
    public function gone(int $id): Response
    {
        throw new NotFoundHttpException("news $id");
    }

    #[Uses('news:{nope}')]
    public function mistyped(): Response
    {
        return new Response('mistyped');
    }

    #[Uses('menu')]
    public function error(\Throwable $exception): Response
    {
        $status = $exception instanceof NotFoundHttpException ? 404 : 500;
        return new Response("error $status", $status);
    }

    /** @param array<string, mixed> $options */
    private static function render(Request $request, string $part, array $options = []): string
    {
        return (string) self::$inline->render(new ControllerReference(self::class . "::$part", $part === 'author' ? ['author' => 7] : []), $request, $options)->getContent();
    }

    private static function handled(Request $request, string $part): Response
    {
        $request->attributes->set('_controller', self::class . "::$part");
        return self::$kernel->handle($request, HttpKernelInterface::SUB_REQUEST);
    }
}
