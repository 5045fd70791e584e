<?php

/**
 * Which controller answers what: method, path, how the controller is made.
 *
 * Beside each: what its pages are made from (its #[Uses] says so too), or what it writes.
 */

declare(strict_types=1);

use News\Controllers\Article;
use News\Controllers\Feed;
use News\Controllers\FrontPage;
use News\Controllers\Letters;
use News\Controllers\Office\Edit;
use News\Controllers\Office\Overview;
use News\Controllers\Office\RemoveComment;
use News\Controllers\Office\Save;
use News\Controllers\Office\SignIn;
use News\Controllers\Office\SignOut;
use News\Controllers\Random;
use News\Controllers\Search;
use News\Controllers\WriteComment;
use News\Libraries\Comments;
use News\Libraries\Database;
use News\Libraries\News;
use News\Libraries\Office;

$number = '[1-9][0-9]{0,8}';

return [
    // made from news
    ['GET', '/', static fn (Database $db) => new FrontPage(new News($db))],
    ['GET', "/page/(?<page>$number)/", static fn (Database $db) => new FrontPage(new News($db))],
    ['GET', '/rss\.xml', static fn (Database $db) => new Feed(new News($db))],
    ['GET', '/search/(?:(?<word>[^/]+)/)?', static fn (Database $db) => new Search(new News($db))],
    // made from news N
    ['GET', "/news/(?<id>$number)/", static fn (Database $db) => new Article(new News($db), new Comments($db))],
    // made from comments
    ['GET', '/letters/', static fn (Database $db) => new Letters(new Comments($db))],
    // declares nothing
    ['GET', '/random/', static fn (Database $db) => new Random(new News($db))],
    // writes a comment on news N
    ['POST', "/news/(?<id>$number)/", static fn (Database $db) => new WriteComment(new News($db), new Comments($db))],

    // the back office, in a session: declares nothing; writes news N, removes a comment
    ['GET', '/office/', static fn (Database $db) => new Overview(new Office(), new News($db))],
    ['POST', '/office/', static fn (Database $db) => new SignIn(new Office())],
    ['POST', '/office/out/', static fn (Database $db) => new SignOut(new Office())],
    ['GET', '/office/new/', static fn (Database $db) => new Edit(new Office(), new News($db), new Comments($db))],
    ['POST', '/office/new/', static fn (Database $db) => new Save(new Office(), new News($db))],
    ['GET', "/office/news/(?<id>$number)/", static fn (Database $db) => new Edit(new Office(), new News($db), new Comments($db))],
    ['POST', "/office/news/(?<id>$number)/", static fn (Database $db) => new Save(new Office(), new News($db))],
    ['POST', "/office/comments/(?<id>$number)/", static fn (Database $db) => new RemoveComment(new Office(), new Comments($db))],
];
