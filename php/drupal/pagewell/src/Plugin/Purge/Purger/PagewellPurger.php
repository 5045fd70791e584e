<?php

/**
 * A purger for the module Purge (drupal.org/project/purge): its queue, its Drush commands and its other queuers
 * then purge Pagewell's pages, by tag, by URL, by path, or all of them.
 *
 * The module does not need it: Tags sends the invalidated tags at once. It is for purges of another origin. Purge
 * finds it by the annotation below; without Purge, nothing loads this file.
 *
 * Purges that failed have the state `FAILED`, and Purge tries them again.
 */

declare(strict_types=1);

namespace Drupal\pagewell\Plugin\Purge\Purger;

use Drupal\purge\Plugin\Purge\Invalidation\InvalidationInterface;
use Drupal\purge\Plugin\Purge\Invalidation\InvStatesInterface;
use Drupal\purge\Plugin\Purge\Purger\PurgerBase;
use Pagewell\Core\Exception\InvalidationRefused;
use Pagewell\Core\Exception\InvalidTag;
use Pagewell\Core\Exception\PagewellException;
use Pagewell\Core\Invalidation;
use Pagewell\Core\Tag;
use Pagewell\RequestScope;

/**
 * Purges pages of Pagewell.
 *
 * @internal
 *
 * @PurgePurger(
 *   id = "pagewell",
 *   label = @Translation("Pagewell"),
 *   description = @Translation("Purges pages of Pagewell, through its control interface."),
 *   cooldown_time = 0.0,
 *   multi_instance = FALSE,
 *   types = {"tag", "url", "path", "everything"},
 * )
 */
final class PagewellPurger extends PurgerBase
{
    /** @param list<InvalidationInterface> $invalidations */
    public function invalidate(array $invalidations): void
    {
        try {
            $this->purge($invalidations);
        } catch (InvalidationRefused | InvalidTag $fault) {
            if (count($invalidations) > 1) {
                // One of them is wrong: the others are purged.
                array_map(fn (InvalidationInterface $one) => $this->invalidate([$one]), $invalidations);
                return;
            }
            $this->fail($invalidations, $fault);
        } catch (PagewellException $fault) {
            $this->fail($invalidations, $fault);
        }
    }

    /** Purge measures how long a purge takes, and offers as many as the time allows. */
    public function hasRuntimeMeasurement(): bool
    {
        return true;
    }

    /**
     * Purges all of them with one call.
     *
     * @param list<InvalidationInterface> $invalidations
     *
     * @throws PagewellException
     */
    private function purge(array $invalidations): void
    {
        $tags = $urls = [];
        $isAll = false;
        foreach ($invalidations as $one) {
            $expression = $one->getExpression();
            // A URL may be an object of Drupal.
            $expression = is_object($expression) && method_exists($expression, 'toString') ? $expression->toString() : (string) $expression;
            match ($one->getType()) {
                'tag' => $tags[] = Tag::raw($expression),
                'url' => $urls[] = $expression,
                'path' => $urls[] = base_path() . ltrim($expression, '/'),
                'everything' => $isAll = true,
                default => throw new InvalidTag("There is no purge by {$one->getType()}."),
            };
        }
        RequestScope::current()->invalidate(new Invalidation($tags, $urls, $isAll));
        foreach ($invalidations as $one) {
            $one->setState(InvStatesInterface::SUCCEEDED);
        }
    }

    /** @param list<InvalidationInterface> $invalidations */
    private function fail(array $invalidations, \Throwable $fault): void
    {
        $this->logger()->error('Pagewell: {reason}', ['reason' => $fault->getMessage()]);
        foreach ($invalidations as $one) {
            $one->setState(InvStatesInterface::FAILED);
        }
    }
}
