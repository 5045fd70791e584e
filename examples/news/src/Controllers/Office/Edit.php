<?php

/**
 * `/office/new/` and `/office/news/N/`: the form for an article, and its comments to moderate.
 */

declare(strict_types=1);

namespace News\Controllers\Office;

use News\Controller;
use News\Libraries\Comments;
use News\Libraries\News;
use News\Libraries\Office;
use News\Request;
use News\Response;
use Pagewell\Attribute\NotCached;

/** The form. */
#[NotCached('the office is for those who have signed in')]
final class Edit implements Controller
{
    private const EMPTY = ['id' => 0, 'topic' => 'Harbour', 'title' => '', 'summary' => '', 'body' => '', 'author' => '', 'published' => null];

    public function __construct(
        private readonly Office $office,
        private readonly News $news,
        private readonly Comments $comments,
    ) {
    }

    public function answer(Request $request): Response
    {
        if (!$this->office->isOpen()) {
            return Response::seeOther('/office/');
        }
        $isNew = $request->path === '/office/new/';
        $id = $isNew ? 0 : $request->number('id');
        $news = $isNew ? self::EMPTY : $this->news->find($id);
        if ($news === null) {
            return Response::notFound();
        }
        $comments = $isNew ? [] : $this->comments->on($id);
        return Response::page('office/edit', $isNew ? 'New' : 'Edit', office: $this->office, news: $news, comments: $comments, fault: '');
    }
}
