<?php

/**
 * `/random/`: three articles picked by chance.
 *
 * It declares nothing, so it works like any other page and is never stored: each visitor gets
 * another selection.
 */

declare(strict_types=1);

namespace News\Controllers;

use News\Controller;
use News\Libraries\News;
use News\Request;
use News\Response;
use Pagewell\Attribute\NotCached;

/** A lucky dip. */
#[NotCached('everybody gets a pick of their own')]
final class Random implements Controller
{
    public function __construct(private readonly News $news)
    {
    }

    public function answer(Request $request): Response
    {
        return Response::page('random', 'Lucky dip', news: $this->news->anyThree());
    }
}
