<?php

/**
 * `/letters/`: the latest comments, on whichever news.
 *
 * Made from the comments as a whole, and from the news that it names: a headline that
 * changes, or an article withdrawn, changes this page too.
 */

declare(strict_types=1);

namespace News\Controllers;

use News\Controller;
use News\Libraries\Comments;
use News\Request;
use News\Response;
use Pagewell\Attribute\Uses;

/** The latest comments. */
#[Uses('comments', 'news')]
final class Letters implements Controller
{
    private const SHOWN = 30;

    public function __construct(private readonly Comments $comments)
    {
    }

    public function answer(Request $request): Response
    {
        return Response::page('letters', 'Letters', letters: $this->comments->latest(self::SHOWN));
    }
}
