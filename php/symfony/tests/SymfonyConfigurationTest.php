<?php

/**
 * The configuration and the services of the bundle, in Symfony's own container.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Symfony;

use Pagewell\Bridge\Doctrine\CaptureMiddleware;
use Pagewell\Bridge\Doctrine\TransactionMiddleware;
use Pagewell\Bridge\FosHttpCache\ProxyClient;
use Pagewell\Configuration;
use Pagewell\Core\Exception\InvalidConfiguration;
use Pagewell\Environment;
use Pagewell\PageCache;
use Pagewell\Symfony\Listener;
use Pagewell\Symfony\PagewellBundle;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Symfony\Component\Config\Definition\Exception\InvalidConfigurationException;
use Symfony\Component\DependencyInjection\ContainerBuilder;
use Symfony\Component\DependencyInjection\Extension\Extension;
use Symfony\Component\HttpKernel\DependencyInjection\MergeExtensionConfigurationPass;

final class SymfonyConfigurationTest extends TestCase
{
    public static function setUpBeforeClass(): void
    {
        if (stream_resolve_include_path('Symfony/Component/HttpKernel/autoload.php') === false) {
            self::markTestSkipped('Symfony/Component/HttpKernel/autoload.php is not installed');
        }
        require_once 'Symfony/Component/HttpKernel/autoload.php';
        require_once 'Symfony/Component/DependencyInjection/autoload.php';
        require_once 'Symfony/Component/Config/autoload.php';
    }

    protected function tearDown(): void
    {
        Configuration::ofFramework('', []);
    }

    public function testAMistypedVariableIsRefusedAsTheKernelBoots(): void
    {
        $_ENV['PAGEWELL_CHANGES'] = 'contol';
        try {
            $this->expectException(InvalidConfiguration::class);
            $this->expectExceptionMessage("PAGEWELL_CHANGES is 'contol': write response or control.");
            (new PagewellBundle())->boot();
        } finally {
            unset($_ENV['PAGEWELL_CHANGES']);
        }
    }

    public function testTheBundleRegistersItsServices(): void
    {
        require_once 'Doctrine/DBAL/autoload.php';
        $container = self::container([]);
        self::assertTrue($container->getDefinition(Listener::class)->hasTag('kernel.event_subscriber'));
        self::assertTrue($container->getDefinition(TransactionMiddleware::class)->hasTag('doctrine.middleware'));
        self::assertTrue($container->getDefinition(CaptureMiddleware::class)->hasTag('doctrine.middleware'));
        $container->getDefinition(Listener::class)->setPublic(true);
        $container->getDefinition(PageCache::class)->setPublic(true);
        $container->compile();
        self::assertInstanceOf(Listener::class, $container->get(Listener::class));
        self::assertInstanceOf(PageCache::class, $container->get(PageCache::class));
    }

    public function testItsConfigurationCountsFromTheBootOn(): void
    {
        $container = self::container(['admin' => 'unix:/run/pagewell/admin.sock', 'shared_cookies' => ['currency', 'theme_*'], 'lifetime' => 600]);
        $container->compile();
        $this->boot($container);
        self::assertSame('unix:/run/pagewell/admin.sock', Environment::value('ADMIN'));
        self::assertSame('currency,theme_*', Environment::value('SHARED_COOKIES'));
        self::assertSame(600, Configuration::lifetimeSeconds());
    }

    public function testAMistypedSettingIsRefusedAsTheKernelBoots(): void
    {
        $_ENV['SETTING_OF_A_TEST'] = 'contol';
        $container = self::container(['changes' => '%env(SETTING_OF_A_TEST)%']);
        $container->compile(true);
        try {
            $this->expectException(InvalidConfiguration::class);
            $this->expectExceptionMessage("PAGEWELL_CHANGES is 'contol': write response or control.");
            $this->boot($container);
        } finally {
            unset($_ENV['SETTING_OF_A_TEST']);
        }
    }

    public function testAnUnknownSettingIsRefusedAsTheContainerIsBuilt(): void
    {
        $this->expectException(InvalidConfigurationException::class);
        $this->expectExceptionMessage('chnages');
        self::container(['chnages' => 'control'])->compile();
    }

    /**
     * @dataProvider fosHttpCache
     *
     * @param array<string, mixed> $config   of fos_http_cache
     * @param array<string, mixed> $received by its bundle, merged
     */
    #[DataProvider('fosHttpCache')]
    public function testTheClientForFosHttpCacheTurnsItsTagsOn(array $config, array $received): void
    {
        $fos = new class () extends Extension {
            /** @var array<string, mixed> */
            public array $received = [];

            public function load(array $configs, ContainerBuilder $container): void
            {
                $this->received = array_replace_recursive(...$configs);
            }

            public function getAlias(): string
            {
                return 'fos_http_cache';
            }
        };
        $container = new ContainerBuilder();
        foreach ([$fos, (new PagewellBundle())->getContainerExtension()] as $extension) {
            $container->registerExtension($extension);
        }
        $container->loadFromExtension('fos_http_cache', ['debug' => ['enabled' => true]]);
        $container->loadFromExtension('fos_http_cache', $config);
        (new MergeExtensionConfigurationPass(['pagewell', 'fos_http_cache']))->process($container);
        self::assertEquals($received + ['debug' => ['enabled' => true]], $fos->received);
    }

    /** @return iterable<string, array{array<string, mixed>, array<string, mixed>}> */
    public static function fosHttpCache(): iterable
    {
        $pagewell = ['cache_manager' => ['custom_proxy_client' => ProxyClient::class]];
        yield 'by one setting' => [$pagewell, $pagewell + ['tags' => ['enabled' => true]]];
        yield 'the application precedes' => [$pagewell + ['tags' => ['enabled' => false]], $pagewell + ['tags' => ['enabled' => false]]];
        yield 'another client' => [['cache_manager' => ['custom_proxy_client' => 'own']], ['cache_manager' => ['custom_proxy_client' => 'own']]];
        yield 'no client' => [['cache_manager' => ['enabled' => false]], ['cache_manager' => ['enabled' => false]]];
    }

    /** @param array<string, mixed> $settings */
    private static function container(array $settings): ContainerBuilder
    {
        $bundle = new PagewellBundle();
        $container = new ContainerBuilder();
        $container->registerExtension($bundle->getContainerExtension());
        $container->loadFromExtension('pagewell', $settings);
        $pass = new MergeExtensionConfigurationPass(['pagewell']);
        $pass->process($container);
        return $container;
    }

    private function boot(ContainerBuilder $container): void
    {
        $bundle = new PagewellBundle();
        $bundle->setContainer($container);
        $bundle->boot();
    }
}
