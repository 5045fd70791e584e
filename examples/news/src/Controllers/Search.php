<?php

/**
 * `/search/WORD/`: the articles with a word in them; `/search/?q=WORD` leads there.
 *
 * The set of these articles is not known in advance: an article that does not match today may match
 * tomorrow. There are three ways to handle such a set:
 *
 * - no declaration: every search runs PHP and scans the table;
 * - a lifetime: `freshFor(300)` alone; searches may then be five minutes behind;
 * - the whole kind: `uses('news')`. Always correct, but purged more often than necessary, namely
 *   whenever any article is written.
 *
 * This site uses the third: it is written a few times a day and searched all the time. In addition,
 * `FreshFor` limits rare searches to a day, whatever the default of the site is.
 */

declare(strict_types=1);

namespace News\Controllers;

use News\Controller;
use News\Libraries\News;
use News\Request;
use News\Response;
use Pagewell\Attribute\FreshFor;
use Pagewell\Attribute\Uses;

/** The search. */
#[Uses('news'), FreshFor(86_400)]
final class Search implements Controller
{
    private const SHOWN = 50;
    private const CHARACTERS_MAX = 60;

    public function __construct(private readonly News $news)
    {
    }

    public function answer(Request $request): Response
    {
        $asked = $request->query('q');
        if ($asked !== '') {
            return Response::seeOther('/search/' . rawurlencode($asked) . '/');
        }
        $word = $request->word('word');
        if ($word === '') {
            return Response::page('search', 'Search', word: '', news: [], more: false);
        }
        if (iconv_strlen($word, 'UTF-8') > self::CHARACTERS_MAX) {
            return Response::notFound();
        }
        $news = $this->news->search($word, self::SHOWN + 1);
        $more = count($news) > self::SHOWN;
        return Response::page('search', "Search: $word", word: $word, news: array_slice($news, 0, self::SHOWN), more: $more);
    }
}
