<?php

/**
 * `POST /office/new/` and `POST /office/news/N/`: writes an article, published or as a draft.
 *
 * News says what has changed; the notice on the next page shows it.
 */

declare(strict_types=1);

namespace News\Controllers\Office;

use News\Controller;
use News\Libraries\News;
use News\Libraries\Office;
use News\Request;
use News\Response;
use Pagewell\Attribute\Writes;

/** Writes an article. */
#[Writes('news:{id}')]
final class Save implements Controller
{
    /** The most characters of each field, as the table has it; the body in bytes, as TEXT has it. */
    private const MAX = ['title' => 200, 'summary' => 500, 'body' => 60_000, 'author' => 80];

    public function __construct(private readonly Office $office, private readonly News $news)
    {
    }

    public function answer(Request $request): Response
    {
        if (!$this->office->isOpen()) {
            return Response::seeOther('/office/');
        }
        $id = $request->path === '/office/new/' ? 0 : $request->number('id');
        if ($id !== 0 && $this->news->find($id) === null) {
            return Response::notFound();
        }
        $news = ['topic' => $request->form('topic')];
        foreach (array_keys(self::MAX) as $field) {
            $news[$field] = $request->form($field);
        }
        $publish = $request->form('publish') === 'yes';
        $fault = $this->office->sent($request) ? self::fault($news) : 'This form was too old. Please send it again.';
        if ($fault !== '') {
            $shown = $news + ['id' => $id, 'published' => $publish ? '' : null];
            return Response::pageWith(422, 'office/edit', 'Edit', office: $this->office, news: $shown, comments: [], fault: $fault);
        }
        if ($id === 0) {
            $id = $this->news->add($news, $publish);
        } else {
            $this->news->update($id, $news, $publish);
        }
        $this->office->say($publish ? "Published. The pages made from news:$id, and those made from news as a whole, are new." : 'Saved as a draft.');
        return Response::seeOther("/office/news/$id/");
    }

    /**
     * Returns the error in the input as a sentence; empty if there is none.
     *
     * @param array<string, string> $news
     */
    private static function fault(array $news): string
    {
        if (!in_array($news['topic'], News::TOPICS, true)) {
            return 'Please choose a topic.';
        }
        foreach (self::MAX as $field => $max) {
            $length = $field === 'body' ? strlen($news[$field]) : iconv_strlen($news[$field], 'UTF-8');
            if ($length === 0) {
                return "The $field is missing.";
            }
            if ($length > $max) {
                return "The $field is too long.";
            }
        }
        return '';
    }
}
