<?php

/**
 * `/rss.xml`: the twenty latest news as a feed.
 *
 * Made from the news as a whole, as the front page is.
 */

declare(strict_types=1);

namespace News\Controllers;

use News\Controller;
use News\Libraries\News;
use News\Request;
use News\Response;
use News\Template;
use Pagewell\Attribute\Uses;

/** The feed. */
#[Uses('news')]
final class Feed implements Controller
{
    public function __construct(private readonly News $news)
    {
    }

    public function answer(Request $request): Response
    {
        $content = Template::render('rss', ['news' => $this->news->latest(20), 'origin' => $request->origin]);
        return new Response(200, $content, ['Content-Type' => 'application/rss+xml; charset=utf-8']);
    }
}
