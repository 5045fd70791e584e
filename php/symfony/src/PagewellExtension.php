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
 */

declare(strict_types=1);

namespace Pagewell\Symfony;

use Pagewell\Bridge\Doctrine\TransactionMiddleware;
use Pagewell\PageCache;
use Pagewell\RequestPageCache;
use Symfony\Component\Config\Definition\Builder\TreeBuilder;
use Symfony\Component\Config\Definition\ConfigurationInterface;
use Symfony\Component\DependencyInjection\ContainerBuilder;
use Symfony\Component\DependencyInjection\ContainerInterface;
use Symfony\Component\DependencyInjection\Extension\Extension;
use Symfony\Component\DependencyInjection\Reference;

/**
 * Reads `pagewell:` of an application.
 *
 * @internal
 */
final class PagewellExtension extends Extension implements ConfigurationInterface
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

    public function load(array $configs, ContainerBuilder $container): void
    {
        $container->setParameter(self::SETTINGS, $this->processConfiguration($this, $configs));
        $container->register(PageCache::class, RequestPageCache::class);
        $container->register(Listener::class, Listener::class)
            ->setArguments([null, new Reference('security.untracked_token_storage', ContainerInterface::NULL_ON_INVALID_REFERENCE)])
            ->addTag('kernel.event_subscriber');
        if (interface_exists('Doctrine\DBAL\Driver\Middleware')) {
            $container->register(TransactionMiddleware::class, TransactionMiddleware::class)->addTag('doctrine.middleware');
        }
    }
}
