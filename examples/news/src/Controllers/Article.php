<?php

/**
 * `/news/N/`: one article with its comments, and the form to add one.
 *
 * It depends only on that article. Its comments need no declaration of their own: a new comment
 * declares the article that shows it, `changed('comments', news: 4)`. With `uses('comments')` here,
 * a comment on any article would purge the pages of all. For the same reason the page has no list
 * of other articles.
 */

declare(strict_types=1);

namespace News\Controllers;

use News\Controller;
use News\Libraries\Comments;
use News\Libraries\News;
use News\Request;
use News\Response;
use Pagewell\Attribute\Uses;

/** One article. */
#[Uses('news:{id}')]
final class Article implements Controller
{
    public function __construct(private readonly News $news, private readonly Comments $comments)
    {
    }

    public function answer(Request $request): Response
    {
        $news = $this->news->published($request->number('id'));
        if ($news === null) {
            return Response::notFound(); // kept until the article is there: publishing it drops this page
        }
        $comments = $this->comments->on($request->number('id'));
        return Response::page('article', $news['title'], news: $news, comments: $comments, draft: null);
    }
}
