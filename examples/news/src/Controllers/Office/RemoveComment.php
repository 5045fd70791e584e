<?php

/**
 * `POST /office/comments/N/`: removes a comment.
 */

declare(strict_types=1);

namespace News\Controllers\Office;

use News\Controller;
use News\Libraries\Comments;
use News\Libraries\Office;
use News\Request;
use News\Response;
use Pagewell\Attribute\Writes;

/** Removes a comment. */
#[Writes('comments', 'news:{id}')]
final class RemoveComment implements Controller
{
    public function __construct(private readonly Office $office, private readonly Comments $comments)
    {
    }

    public function answer(Request $request): Response
    {
        if (!$this->office->isOpen() || !$this->office->sent($request)) {
            return Response::seeOther('/office/');
        }
        $news = $this->comments->remove($request->number('id'));
        if ($news === null) {
            return Response::notFound();
        }
        $this->office->say("Removed. The page of news:$news and the pages with comments are new.");
        return Response::seeOther("/office/news/$news/");
    }
}
