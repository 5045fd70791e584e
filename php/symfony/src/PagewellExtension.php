<?php

/**
 * The configuration of the bundle, and its services:
 *
 *     # config/packages/pagewell.yaml
 *     pagewell:
 *         admin: '127.0.0.1:8081'         # or unix:/run/pagewell/admin.sock, or off
 *         token_file: ~
 *         site: ~
 *         changes: response               # or control
 *         shared_cookies: [currency]
 *         lifetime: 86400
 *         outbox: '%kernel.project_dir%/var/pagewell-outbox'
 *
 * Each setting is the variable PAGEWELL_… of the library, which has precedence. Its value is checked
 * when the kernel boots, because `%env(…)%` has none before.
 *
 * Services for the console, Twig, Messenger, FOSHttpCache and Doctrine exist if their packages do, the panel of the
 * profiler if its bundle is registered.
 */

declare(strict_types=1);

namespace Pagewell\Symfony;

use FOS\HttpCache\ProxyClient\Invalidation\TagCapable;
use Pagewell\Bridge\Console\ExplainCommand;
use Pagewell\Bridge\Console\InvalidateCommand;
use Pagewell\Bridge\Doctrine\CaptureMiddleware;
use Pagewell\Bridge\Doctrine\TransactionMiddleware;
use Pagewell\Bridge\FosHttpCache\ProxyClient;
use Pagewell\PageCache;
use Pagewell\RequestPageCache;
use Pagewell\Symfony\Profiler\PageCollector;
use Pagewell\Symfony\Profiler\PageReport;
use Symfony\Component\Config\Definition\Builder\TreeBuilder;
use Symfony\Component\Config\Definition\ConfigurationInterface;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\DependencyInjection\ContainerBuilder;
use Symfony\Component\DependencyInjection\ContainerInterface;
use Symfony\Component\DependencyInjection\Extension\Extension;
use Symfony\Component\DependencyInjection\Extension\PrependExtensionInterface;
use Symfony\Component\DependencyInjection\Reference;
use Symfony\Component\Messenger\Middleware\MiddlewareInterface;
use Twig\Extension\AbstractExtension;

/**
 * Reads `pagewell:` of an application.
 *
 * @internal
 */
final class PagewellExtension extends Extension implements ConfigurationInterface, PrependExtensionInterface
{
    /** The parameter of the container with the settings. */
    public const SETTINGS = 'pagewell.settings';

    public function getConfigTreeBuilder(): TreeBuilder
    {
        $tree = new TreeBuilder('pagewell');
        $settings = $tree->getRootNode()->children();
        foreach (['admin', 'token_file', 'site', 'changes', 'lifetime', 'outbox'] as $name) {
            $settings->scalarNode($name)->defaultNull();
        }
        $settings->arrayNode('shared_cookies')->scalarPrototype();
        return $tree;
    }

    public function getConfiguration(array $config, ContainerBuilder $container): ConfigurationInterface
    {
        return $this;
    }

    /**
     * FOSHttpCacheBundle leaves pages without tags if the proxy client is not its own (`tags.enabled: auto`). With
     * Pagewell's they are needed. A value of the application has precedence.
     */
    public function prepend(ContainerBuilder $container): void
    {
        $configs = $container->hasExtension('fos_http_cache') ? $container->getExtensionConfig('fos_http_cache') : [];
        if (in_array(ProxyClient::class, array_map(static fn (mixed $one): mixed => $one['cache_manager']['custom_proxy_client'] ?? null, $configs), true)) {
            $container->prependExtensionConfig('fos_http_cache', ['tags' => ['enabled' => true]]);
        }
    }

    public function load(array $configs, ContainerBuilder $container): void
    {
        $container->setParameter(self::SETTINGS, $this->processConfiguration($this, $configs));
        $container->register(PageCache::class, RequestPageCache::class);
        $container->register(Listener::class, Listener::class)
            ->setArguments([null, new Reference('security.untracked_token_storage', ContainerInterface::NULL_ON_INVALID_REFERENCE), new Reference(PageReport::class, ContainerInterface::NULL_ON_INVALID_REFERENCE)])
            ->addTag('kernel.event_subscriber');
        foreach (class_exists(Command::class) ? [InvalidateCommand::class, ExplainCommand::class] : [] as $command) {
            $container->register($command, $command)->addTag('console.command', ['command' => $command::NAME]);
        }
        if ($container->hasParameter('kernel.bundles') && isset($container->getParameter('kernel.bundles')['WebProfilerBundle'])) {
            $container->register(PageReport::class, PageReport::class);
            $container->register(PageCollector::class, PageCollector::class)->setArguments([new Reference(PageReport::class)])
                ->addTag('data_collector', ['id' => PageCollector::NAME, 'template' => '@Pagewell/collector.html.twig']);
        }
        if (class_exists(AbstractExtension::class)) {
            $container->register(TwigFunctions::class, TwigFunctions::class)->setArguments([new Reference(PageCache::class)])->addTag('twig.extension');
        }
        if (interface_exists(MiddlewareInterface::class)) {
            $container->register(MessengerMiddleware::class, MessengerMiddleware::class);
        }
        if (interface_exists(TagCapable::class)) {
            $container->register(ProxyClient::class, ProxyClient::class);
        }
        if (interface_exists('Doctrine\DBAL\Driver\Middleware')) {
            foreach ([TransactionMiddleware::class, CaptureMiddleware::class] as $middleware) {
                $container->register($middleware, $middleware)->addTag('doctrine.middleware');
            }
        }
    }
}
