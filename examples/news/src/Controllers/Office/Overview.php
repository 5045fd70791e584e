<?php

/**
 * `/office/`: the page to sign in, and for those who have, the list of articles to edit.
 *
 * Made in a session, declares nothing.
 */

declare(strict_types=1);

namespace News\Controllers\Office;

use News\Controller;
use News\Libraries\News;
use News\Libraries\Office;
use News\Request;
use News\Response;
use Pagewell\Attribute\NotCached;

/** The desk. */
#[NotCached('the office is for those who have signed in')]
final class Overview implements Controller
{
    private const A_PAGE = 30;

    public function __construct(private readonly Office $office, private readonly News $news)
    {
    }

    public function answer(Request $request): Response
    {
        if (!$this->office->isOpen()) {
            return Response::page('office/sign-in', 'Office', office: $this->office, fault: '');
        }
        $page = max(1, min(100_000, (int) $request->query('page')));
        $news = $this->news->all(self::A_PAGE + 1, ($page - 1) * self::A_PAGE);
        $more = count($news) > self::A_PAGE;
        return Response::page('office/overview', 'Office', office: $this->office, news: array_slice($news, 0, self::A_PAGE), page: $page, more: $more);
    }
}
