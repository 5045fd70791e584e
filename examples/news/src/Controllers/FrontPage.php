<?php

/**
 * `/` and `/page/N/`: the news, newest first, twenty-one to a page.
 *
 * Made from the news as a whole: whatever is published, edited or withdrawn may enter,
 * leave or move. It shows no comments, nor how many there are, so that a comment leaves it.
 */

declare(strict_types=1);

namespace News\Controllers;

use News\Controller;
use News\Libraries\News;
use News\Request;
use News\Response;
use Pagewell\Attribute\Uses;

/** The list of articles. */
#[Uses('news')]
final class FrontPage implements Controller
{
    private const A_PAGE = 21;

    public function __construct(private readonly News $news)
    {
    }

    public function answer(Request $request): Response
    {
        $page = $request->number('page');
        $pages = max(1, (int) ceil($this->news->count() / self::A_PAGE));
        if ($page > $pages) {
            return Response::notFound();
        }
        $news = $this->news->latest(self::A_PAGE, ($page - 1) * self::A_PAGE);
        $title = $page === 1 ? '' : "Page $page";
        return Response::page('front-page', $title, news: $news, page: $page, pages: $pages);
    }
}
