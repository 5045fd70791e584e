<?php

/**
 * Functions for Twig's templates, for data that only the template reads:
 *
 *     {% do pagewell_uses('news', article.id) %}
 *     {% do pagewell_uses_list('news', ids, 60) %}
 *     {% do pagewell_uses_tags('menu', 'footer') %}
 *     {% do pagewell_fresh_for(60) %}
 *     {% do pagewell_not_cached() %}
 *
 * They print nothing.
 */

declare(strict_types=1);

namespace Pagewell\Symfony;

use Pagewell\PageCache;
use Twig\Extension\AbstractExtension;
use Twig\TwigFunction;

/** The declarations of a page, in a template. */
final class TwigFunctions extends AbstractExtension
{
    public function __construct(private readonly PageCache $pages)
    {
    }

    public function getFunctions(): array
    {
        return [
            new TwigFunction('pagewell_uses', $this->pages->uses(...)),
            new TwigFunction('pagewell_uses_list', $this->pages->usesList(...)),
            new TwigFunction('pagewell_uses_tags', $this->pages->usesTags(...)),
            new TwigFunction('pagewell_fresh_for', $this->pages->freshFor(...)),
            new TwigFunction('pagewell_not_cached', $this->pages->notCached(...)),
        ];
    }
}
