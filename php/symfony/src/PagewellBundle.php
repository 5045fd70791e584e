<?php

/**
 * The bundle: registers the listener, and the Doctrine middleware if Doctrine is installed.
 *
 *     // config/bundles.php
 *     Pagewell\Symfony\PagewellBundle::class => ['all' => true],
 *
 * There is nothing to configure: the address of Pagewell is read from the environment or .env
 * (PAGEWELL_ADMIN).
 */

declare(strict_types=1);

namespace Pagewell\Symfony;

use Pagewell\DoctrineMiddleware;
use Pagewell\Environment;
use Symfony\Component\DependencyInjection\ContainerBuilder;
use Symfony\Component\HttpKernel\Bundle\Bundle;

/** Registers the services. */
final class PagewellBundle extends Bundle
{
    /** Wrong values of the environment are refused here, before anything is written. */
    public function boot(): void
    {
        Environment::check();
    }

    public function build(ContainerBuilder $container): void
    {
        $container->register(Listener::class, Listener::class)->addTag('kernel.event_subscriber');
        if (interface_exists('Doctrine\DBAL\Driver\Middleware')) {
            $container->register(DoctrineMiddleware::class, DoctrineMiddleware::class)->addTag('doctrine.middleware');
        }
    }
}
