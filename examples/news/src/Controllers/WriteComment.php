<?php

/**
 * `POST /news/N/`: adds a comment, then sends the reader back to the page.
 *
 * The redirect is sent after the old page has been purged, so the author then sees the new comment.
 * Everybody may write here without a login, so there is no session that needs a token.
 */

declare(strict_types=1);

namespace News\Controllers;

use News\Controller;
use News\Libraries\Comments;
use News\Libraries\News;
use News\Request;
use News\Response;
use Pagewell\Attribute\Writes;

/** Adds a comment. */
#[Writes('comments', 'news:{id}')]
final class WriteComment implements Controller
{
    private const AUTHOR_CHARACTERS_MAX = 60;
    private const BODY_CHARACTERS_MAX = 2000;

    public function __construct(private readonly News $news, private readonly Comments $comments)
    {
    }

    public function answer(Request $request): Response
    {
        $id = $request->number('id');
        $news = $this->news->published($id);
        if ($news === null) {
            return Response::notFound();
        }
        $draft = ['author' => $request->form('author'), 'body' => $request->form('body'), 'fault' => ''];
        $draft['fault'] = self::fault($draft['author'], $draft['body']);
        if ($draft['fault'] !== '') {
            $comments = $this->comments->on($id);
            return Response::pageWith(422, 'article', $news['title'], news: $news, comments: $comments, draft: $draft);
        }
        $comment = $this->comments->add($id, $draft['author'], $draft['body']);
        return Response::seeOther("/news/$id/#c$comment");
    }

    /** Returns the fault as a sentence; empty if there is none. */
    private static function fault(string $author, string $body): string
    {
        return match (true) {
            $author === '' => 'Please give a name.',
            $body === '' => 'Please write something.',
            iconv_strlen($author, 'UTF-8') > self::AUTHOR_CHARACTERS_MAX => 'That name is too long.',
            iconv_strlen($body, 'UTF-8') > self::BODY_CHARACTERS_MAX => 'Please keep to two thousand characters.',
            default => '',
        };
    }
}
