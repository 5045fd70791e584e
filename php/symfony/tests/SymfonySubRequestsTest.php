<?php

/**
 * Sub-requests of Symfony: their attributes belong to the page. With Symfony's own renderers of fragments, its
 * listener for their addresses and its controller of errors.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Symfony;

use Pagewell\Core\Exception\UnknownParameter;
use Pagewell\RequestScope;
use Pagewell\Symfony\Listener;
use Pagewell\Testing\RecordingClient;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Symfony\Component\EventDispatcher\EventDispatcher;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\RequestStack;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpKernel\Controller\ControllerResolver;
use Symfony\Component\HttpKernel\EventListener\ErrorListener;
use Symfony\Component\HttpKernel\EventListener\FragmentListener;
use Symfony\Component\HttpKernel\Fragment\EsiFragmentRenderer;
use Symfony\Component\HttpKernel\Fragment\InlineFragmentRenderer;
use Symfony\Component\HttpKernel\HttpCache\Esi;
use Symfony\Component\HttpKernel\HttpKernel;
use Symfony\Component\HttpKernel\UriSigner;

final class SymfonySubRequestsTest extends TestCase
{
    private RecordingClient $client;

    public static function setUpBeforeClass(): void
    {
        if (stream_resolve_include_path('Symfony/Component/HttpKernel/autoload.php') === false) {
            self::markTestSkipped('Symfony/Component/HttpKernel/autoload.php is not installed');
        }
        require_once 'Symfony/Component/HttpKernel/autoload.php';
        require_once 'Symfony/Component/DependencyInjection/autoload.php';
    }

    protected function setUp(): void
    {
        $this->client = new RecordingClient();
        SymfonyParts::$kernel = $this->kernel();
    }

    protected function tearDown(): void
    {
        SymfonyParts::$kernel = null;
        RequestScope::begin();
    }

    /** @dataProvider pages */
    #[DataProvider('pages')]
    public function testAPageHasTheAttributesOfItsParts(string $page, string $part, ?string $groups, ?string $control, string $content = ''): void
    {
        $response = $this->ask($page, ['id' => 4, 'part' => $part]);
        self::assertSame([$groups, $control], [$response->headers->get('Cache-Groups'), $response->headers->get('Pagewell-Cache-Control')]);
        $content === '' || self::assertSame($content, $response->getContent());
    }

    /** @return iterable<string, array{0: string, 1: string, 2: ?string, 3: ?string, 4?: string}> */
    public static function pages(): iterable
    {
        $day = 'max-age=86400';
        yield '#[Uses]' => ['show', 'comments', '"news:4", "news:*", "comments"', $day, 'news 4, comments'];
        yield '#[Uses] with its own parameter' => ['show', 'author', '"news:4", "news:*", "authors:7", "authors:*"', $day];
        yield '#[NotCached]' => ['show', 'visitor', null, 'no-store'];
        yield '#[FreshFor]' => ['show', 'weather', '"news:4", "news:*"', 'max-age=60'];
        yield '#[FreshFor(0)]' => ['show', 'dice', null, 'no-store'];
        yield '#[Tag]' => ['show', 'tagged', '"news:4", "news:*", "footer"', $day];
        yield 'a part within a part' => ['show', 'nested', '"news:4", "news:*", "comments"', $day];
        yield 'a part that calls itself private' => ['show', 'member', null, 'no-store'];
        yield 'a part that calls uses()' => ['show', 'calling', '"news:4", "news:*", "polls"', $day];
        yield 'a part that fails, and is left out' => ['show', 'failing', null, 'no-store', 'news 4, '];
        yield 'a part that is missing, with an alternative' => ['alternative', 'missing', null, 'no-store', 'news 4, comments'];
        yield 'a part with a response to its exception' => ['embed', 'missing', null, 'no-store', 'news 4, error 404'];
        yield 'a page that declares nothing itself' => ['undeclared', 'comments', null, null, 'page, comments'];
        yield 'the same, and #[NotCached]' => ['undeclared', 'visitor', null, 'no-store'];
        yield 'a page that declares after its parts' => ['afterwards', 'comments', '"polls", "comments"', $day];
        yield 'forward()' => ['forward', 'comments', '"comments"', $day, 'comments'];
        yield 'forward() to #[NotCached]' => ['forward', 'visitor', null, 'no-store'];
        yield 'forward() to a page with parts' => ['forward', 'show', '"news:4", "news:*", "comments"', $day];
        yield 'forward() to what is private' => ['forward', 'member', null, null];
        yield 'forward() to a missing page' => ['forward', 'missing', null, 'no-store', 'error 404'];
        yield 'the page of an error does not speak for its address' => ['missing', '', null, null, 'error 404'];
        yield 'but has its attributes' => ['gone', '', '"news:4", "news:*", "menu"', $day, 'error 404'];
    }

    public function testAPartWithAMistypedAttributeIsAnError(): void
    {
        $this->expectException(UnknownParameter::class);
        SymfonyParts::$kernel = $this->kernel(false);
        $this->ask('strict', ['id' => 4, 'part' => 'mistyped']);
    }

    public function testAWriteReadsNoneOfThem(): void
    {
        $response = $this->ask('strict', ['id' => 4, 'part' => 'mistyped'], 'POST');
        self::assertSame([200, false], [$response->getStatusCode(), $response->headers->has('Pagewell-Cache-Control')]);
        self::assertSame(200, $this->ask('mistyped', [], 'POST')->getStatusCode());
    }

    public function testAWriteThatIsForwardedHasChangedItsTags(): void
    {
        $response = $this->ask('forward', ['part' => 'tagged'], 'POST');
        self::assertSame('"footer"', $response->headers->get('Cache-Group-Invalidation'));
        self::assertFalse($this->ask('show', ['id' => 4, 'part' => 'tagged'], 'POST')->headers->has('Cache-Group-Invalidation'), 'a part that is only shown');
    }

    public function testAPartOfAStreamComesTooLate(): void
    {
        $response = $this->ask('stream', ['id' => 4, 'part' => 'visitor']);
        self::assertSame('"news:4", "news:*"', $response->headers->get('Cache-Groups'));
        // Twig leaves out a part that ends with an exception, but not one that ends with an error.
        $this->expectException(\Error::class);
        $this->expectExceptionMessage('came after the header section was sent');
        $response->sendContent();
    }

    public function testNothingIsLeftForTheNextPage(): void
    {
        $this->ask('show', ['id' => 4, 'part' => 'visitor']);
        self::assertSame('"news:4", "news:*", "comments"', $this->ask('show', ['id' => 4, 'part' => 'comments'])->headers->get('Cache-Groups'));
    }

    /** A server in front inserts it: it is requested by its address, and is a page of its own. */
    public function testAFragmentOfEsiIsAPageOfItsOwn(): void
    {
        $page = $this->ask('esi', ['id' => 4], capability: 'pagewell="ESI/1.0"');
        self::assertSame('"news:4", "news:*"', $page->headers->get('Cache-Groups'));
        self::assertSame(1, preg_match('~<esi:include src="([^"]+)"~', (string) $page->getContent(), $found));
        $fragment = SymfonyParts::$kernel->handle(Request::create('http://localhost' . html_entity_decode($found[1])));
        self::assertSame(['by 7', '"authors:7", "authors:*"'], [$fragment->getContent(), $fragment->headers->get('Cache-Groups')]);
        $page = $this->ask('esi', ['id' => 4]);
        self::assertSame(['news 4, by 7', '"news:4", "news:*", "authors:7", "authors:*"'], [$page->getContent(), $page->headers->get('Cache-Groups')], 'nobody in front inserts it');
    }

    /** @param array<string, mixed> $attributes */
    private function ask(string $page, array $attributes = [], string $method = 'GET', string $capability = ''): Response
    {
        $request = Request::create('/', $method);
        $capability === '' || $request->headers->set('Surrogate-Capability', $capability);
        $request->attributes->add(['_controller' => SymfonyParts::class . "::$page"] + $attributes);
        return SymfonyParts::$kernel->handle($request);
    }

    private function kernel(bool $hasErrorPage = true): HttpKernel
    {
        $signer = class_exists(\Symfony\Component\HttpFoundation\UriSigner::class) ? new \Symfony\Component\HttpFoundation\UriSigner('s') : new UriSigner('s');
        $dispatcher = new EventDispatcher();
        $dispatcher->addSubscriber(new Listener($this->client));
        $dispatcher->addSubscriber(new FragmentListener($signer));
        $hasErrorPage && $dispatcher->addSubscriber(new ErrorListener(SymfonyParts::class . '::error', new \Psr\Log\NullLogger()));
        $kernel = new HttpKernel($dispatcher, new ControllerResolver(), new RequestStack());
        SymfonyParts::$inline = new InlineFragmentRenderer($kernel, $dispatcher);
        SymfonyParts::$esi = new EsiFragmentRenderer(new Esi(), SymfonyParts::$inline, $signer);
        return $kernel;
    }
}
