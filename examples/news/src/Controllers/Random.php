<?php

/**
 * `/random/`: three articles picked by chance.
 *
 * Declares nothing, so it works like any other page and is never stored: each visitor gets
 * a pick of his own.
 */

declare(strict_types=1);

namespace News\Controllers;

use News\Controller;
use News\Libraries\News;
use News\Request;
use News\Response;
use Pagewell\NotCached;

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
