<?php

/**
 * Symfony's cache pools, for automatic dependencies: a page that shows a value of a pool was not made from its
 * statements alone, so its reads are hidden.
 *
 *     pool                                              of a request whose statements are reported
 *     of data: `cache.app`, and those made like it      its calls are recorded; reads are hidden after a hit
 *     of code: made by createSystemCache()              as it is (validation, annotations, Doctrine's mapping)
 *     in the memory of the request (array, null)        as it is
 *
 * A value that is missing is made from statements. A hit is seen at the end of the script, before the statements are
 * reported. Not seen: a pool that the application makes itself, without the container.
 */

declare(strict_types=1);

namespace Pagewell\Symfony;

use Pagewell\Capture\StatementCapture;
use Symfony\Component\Cache\Adapter\AdapterInterface;
use Symfony\Component\Cache\Adapter\ArrayAdapter;
use Symfony\Component\Cache\Adapter\NullAdapter;
use Symfony\Component\Cache\Adapter\TagAwareAdapterInterface;
use Symfony\Component\Cache\Adapter\TraceableAdapter;
use Symfony\Component\Cache\Adapter\TraceableTagAwareAdapter;
use Symfony\Component\DependencyInjection\Compiler\CompilerPassInterface;
use Symfony\Component\DependencyInjection\ContainerBuilder;
use Symfony\Component\DependencyInjection\Definition;
use Symfony\Component\DependencyInjection\Reference;

/**
 * Puts a factory in front of each pool of data.
 *
 * @internal
 */
final class CachePools implements CompilerPassInterface
{
    private const INNER = '.pagewell_inner';

    public function process(ContainerBuilder $container): void
    {
        foreach (array_keys($container->findTaggedServiceIds('cache.pool')) as $id) {
            $definition = $container->getDefinition($id);
            $factory = $definition->getFactory();
            if (!$definition->isAbstract() && !(is_array($factory) && ($factory[1] ?? '') === 'createSystemCache')) {
                $this->watch($container, $id, $definition);
            }
        }
    }

    /** The pool itself, or one that records its calls, if the statements of this request are reported. */
    public static function watched(AdapterInterface $pool, string $name): AdapterInterface
    {
        $capture = StatementCapture::running();
        if ($capture === null || $pool instanceof ArrayAdapter || $pool instanceof NullAdapter) {
            return $pool;
        }
        $traced = match (true) {
            $pool instanceof TraceableAdapter => $pool,
            $pool instanceof TagAwareAdapterInterface => new TraceableTagAwareAdapter($pool),
            default => new TraceableAdapter($pool),
        };
        // Before the capture reports: that is the last shutdown function.
        register_shutdown_function(static function () use ($capture, $traced, $name): void {
            foreach ($traced->getCalls() as $call) {
                if ($call->hits > 0 || ($call->name === 'hasItem' && in_array(true, (array) $call->result, true))) {
                    $capture->hide("symfony-cache:$name");
                    return;
                }
            }
        });
        return $traced;
    }

    /** As Symfony's CacheCollectorPass does it. A pool with tags has its values in `.NAME.inner`. */
    private function watch(ContainerBuilder $container, string $id, Definition $definition): void
    {
        foreach ($definition->getMethodCalls() as [$method, $arguments]) {
            $wrapper = $method === 'setCallbackWrapper' && $arguments[0] instanceof Definition ? $arguments[0]->getArguments()[2] ?? null : null;
            if ($wrapper instanceof Definition && $wrapper->getFactory() == [new Reference($id), 'setCallbackWrapper']) {
                $wrapper->setFactory([new Reference($id . self::INNER), 'setCallbackWrapper']);
            }
        }
        $watched = (new Definition($definition->getClass()))->setFactory([self::class, 'watched'])
            ->setArguments([new Reference($id . self::INNER), preg_replace('/^\.(.*)\.inner$/', '$1', $id)])->setTags($definition->getTags())->setPublic($definition->isPublic());
        $container->setDefinition($id . self::INNER, $definition->setTags([])->setPublic(false));
        $container->setDefinition($id, $watched);
    }
}
