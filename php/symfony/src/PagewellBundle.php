<?php

/**
 * The bundle: reads the configuration, and registers the services.
 *
 *     // config/bundles.php
 *     Pagewell\Symfony\PagewellBundle::class => ['all' => true],
 *
 * There is nothing that has to be configured. The variables PAGEWELL_* of the environment and of
 * .env are read, and then `config/packages/pagewell.yaml` (PagewellExtension).
 */

declare(strict_types=1);

namespace Pagewell\Symfony;

use Pagewell\Configuration;
use Symfony\Component\DependencyInjection\Compiler\PassConfig;
use Symfony\Component\DependencyInjection\ContainerBuilder;
use Symfony\Component\DependencyInjection\Extension\ExtensionInterface;
use Symfony\Component\HttpKernel\Bundle\Bundle;

/** Connects Pagewell with an application. */
final class PagewellBundle extends Bundle
{
    /** Wrong settings are refused here, before anything is written. */
    public function boot(): void
    {
        $settings = isset($this->container) && $this->container->hasParameter(PagewellExtension::SETTINGS) ? $this->container->getParameter(PagewellExtension::SETTINGS) : [];
        Configuration::ofFramework('config/packages/pagewell.yaml', is_array($settings) ? $settings : []);
    }

    /** After the pass by which Symfony's profiler records calls itself. */
    public function build(ContainerBuilder $container): void
    {
        $container->addCompilerPass(new CachePools(), PassConfig::TYPE_BEFORE_REMOVING, -64);
    }

    /** The directory with `templates`. */
    public function getPath(): string
    {
        return dirname(__DIR__);
    }

    public function getContainerExtension(): ?ExtensionInterface
    {
        return new PagewellExtension();
    }
}
