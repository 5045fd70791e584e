<?php

/**
 * The bundle with Symfony's console, Twig and Messenger.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Symfony;

use Pagewell\Bridge\Console\ExplainCommand;
use Pagewell\Bridge\Console\InvalidateCommand;
use Pagewell\Configuration;
use Pagewell\RequestPageCache;
use Pagewell\RequestScope;
use Pagewell\Symfony\MessengerMiddleware;
use Pagewell\Symfony\PagewellBundle;
use Pagewell\Symfony\TwigFunctions;
use Pagewell\Testing\RecordingChannel;
use Pagewell\Testing\RecordingClient;
use PHPUnit\Framework\TestCase;
use Symfony\Component\Console\Application;
use Symfony\Component\Console\DependencyInjection\AddConsoleCommandPass;
use Symfony\Component\Console\Tester\CommandTester;
use Symfony\Component\DependencyInjection\ContainerBuilder;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Handler\HandlersLocator;
use Symfony\Component\Messenger\MessageBus;
use Symfony\Component\Messenger\Middleware\HandleMessageMiddleware;
use Symfony\Component\Messenger\Stamp\ReceivedStamp;
use Twig\Environment;
use Twig\Loader\ArrayLoader;

use function Pagewell\changed;

final class SymfonyPackagesTest extends TestCase
{
    protected function setUp(): void
    {
        foreach (['HttpKernel', 'DependencyInjection', 'Config', 'Console'] as $component) {
            self::need("Symfony/Component/$component/autoload.php");
        }
    }

    protected function tearDown(): void
    {
        Configuration::reset();
        Configuration::ofFramework('', []);
        RequestScope::begin();
    }

    public function testTheConsoleHasItsCommands(): void
    {
        $container = new ContainerBuilder();
        (new PagewellBundle())->getContainerExtension()->load([], $container);
        $container->addCompilerPass(new AddConsoleCommandPass());
        $container->compile();
        Configuration::set($client = new RecordingClient());
        RequestScope::begin(new RecordingChannel(null));
        $console = new Application();
        $console->setCommandLoader($container->get('console.command_loader'));
        self::assertInstanceOf(ExplainCommand::class, self::unwrapped($console->find('pagewell:explain')));
        $invalidate = self::unwrapped($console->find('pagewell:invalidate'));
        self::assertInstanceOf(InvalidateCommand::class, $invalidate);
        $tester = new CommandTester($invalidate);
        self::assertSame(0, $tester->execute(['kind' => 'news', 'ids' => ['4']]));
        self::assertSame("0 pages purged.\n", $tester->getDisplay());
        self::assertSame(['news', 'news:4'], $client->tags());
    }

    public function testATemplateDeclaresItsData(): void
    {
        self::need('Twig/autoload.php');
        $twig = new Environment(new ArrayLoader(['page' => "News{% do pagewell_uses('news', id, 7) %}{{ pagewell_uses('menu') }}{% do pagewell_uses_tags('a', 'b') %}{% do pagewell_uses_list('comments', [1], 30) %}{% do pagewell_fresh_for(60) %}", 'none' => '{% do pagewell_not_cached() %}']), ['strict_variables' => true]);
        $twig->addExtension(new TwigFunctions(new RequestPageCache()));
        $channel = RecordingChannel::install();
        self::assertSame('News', $twig->render('page', ['id' => 4]));
        $channel->send();
        self::assertSame('Cache-Groups: "news:4", "news:7", "news:*", "menu", "a", "b", "comments:1", "comments:*"', $channel->lines()[0]);
        self::assertContains('Pagewell-Cache-Control: max-age=30', $channel->lines());
        $channel = RecordingChannel::install();
        $twig->render('none');
        $channel->send();
        self::assertSame(['Pagewell-Cache-Control: no-store', 'X-Pagewell-Refusal: not-cached'], $channel->lines());
    }

    public function testTheChangesOfAMessageAreSentAfterItsHandlers(): void
    {
        $this->needMessenger();
        $channel = RecordingChannel::install(null);
        $bus = self::bus($channel->client, static fn () => changed('news', 4));
        $bus->dispatch(new Envelope(new \stdClass()));
        self::assertSame([], $channel->client->calls(), 'a message of this process ends with it');
        $bus->dispatch(new Envelope(new \stdClass(), [new ReceivedStamp('async')]));
        self::assertSame(['news', 'news:4'], $channel->client->tags());
    }

    public function testTheChangesOfAMessageThatFailsAreSentAsWell(): void
    {
        $this->needMessenger();
        $channel = RecordingChannel::install(null);
        $bus = self::bus($channel->client, static function (): void {
            changed('news', 4);
            throw new \DomainException('after the write');
        });
        try {
            $bus->dispatch(new Envelope(new \stdClass(), [new ReceivedStamp('async')]));
            self::fail('the exception was swallowed');
        } catch (\Throwable $failure) {
            self::assertStringContainsString('after the write', $failure->getMessage());
        }
        self::assertSame(['news', 'news:4'], $channel->client->tags());
    }

    private static function bus(RecordingClient $client, callable $handler): MessageBus
    {
        return new MessageBus([new MessengerMiddleware($client), new HandleMessageMiddleware(new HandlersLocator([\stdClass::class => [$handler]]))]);
    }

    /** A command that is loaded lazily stands behind another. */
    private static function unwrapped(object $command): object
    {
        return method_exists($command, 'getCommand') ? $command->getCommand() : $command;
    }

    private static function need(string $autoload): void
    {
        if (stream_resolve_include_path($autoload) === false) {
            self::markTestSkipped("$autoload is not installed");
        }
        require_once $autoload;
    }

    /** Without the autoloader of its package, which needs all transports. */
    private function needMessenger(): void
    {
        if (stream_resolve_include_path('Symfony/Component/Messenger/Envelope.php') === false) {
            self::markTestSkipped('Symfony/Component/Messenger is not installed');
        }
        spl_autoload_register(static function (string $class): void {
            $file = str_starts_with($class, 'Symfony\Component\Messenger\\') ? stream_resolve_include_path(strtr($class, '\\', '/') . '.php') : false;
            $file === false || require_once $file;
        });
    }
}
