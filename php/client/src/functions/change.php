<?php

/**
 * The functions for a write: what it has changed, and calls of the control interface.
 *
 * Where a response can carry changes, they need no connection. The response to a write is delivered
 * after its pages are purged (in a cluster it waits for other nodes for at most `cluster.barrier`).
 */

declare(strict_types=1);

namespace Pagewell;

use Pagewell\Core\Exception\ChangeAfterHeaders;
use Pagewell\Core\Exception\ChangeBeforeCommit;
use Pagewell\Core\Exception\ChangeOnSafeMethod;
use Pagewell\Core\Exception\ChangeOutsideRequest;
use Pagewell\Core\Exception\InvalidationRefused;
use Pagewell\Core\Exception\InvalidConfiguration;
use Pagewell\Core\Exception\InvalidTag;
use Pagewell\Core\Exception\PagewellException;
use Pagewell\Core\Exception\PagewellUnreachable;
use Pagewell\Core\Exception\UnreadableResponse;
use Pagewell\Core\Invalidation;
use Pagewell\Core\InvalidationClient;
use Pagewell\Core\Tag;
use Pagewell\Core\Transaction;

/**
 * Declares what a write has changed. Call it after the write.
 *
 *     changed('news', 4);           // news 4: pages that depend on it, or on news as a whole
 *     changed('news');              // some of them, unknown which: every page with news
 *     changed('comments', news: 4); // a comment on news 4: every page with comments,
 *                                   // and the pages that depend on news 4 (but no list of news)
 *
 * The response to a POST, PUT, PATCH or DELETE carries the change, unless PAGEWELL_CHANGES is
 * `control`. Otherwise the control interface is called: for a GET before the header section is
 * sent; for a command, and after the header section, at the end. If Pagewell is unreachable, the
 * log has a line. In an open transaction that the library knows of, the change waits for the
 * commit.
 *
 * @param int|string|object|null ...$said the kind that was written; its id, or null if it is unknown; and, by name,
 *                                        its parents, as kind: id. A parent may have any name, also `kind` and `id`.
 *                                        A row with an id, such as an entity of Doctrine, may stand for its id
 *
 * @throws InvalidTag           a name is empty, or a parent came without its kind
 * @throws ChangeOnSafeMethod   the request is a GET, HEAD, OPTIONS or TRACE, and the control interface is switched off
 * @throws ChangeAfterHeaders   the header section has been sent, and the control interface is switched off
 * @throws ChangeOutsideRequest there is no response (a command, a cron job), and the control interface is switched off
 */
function changed(int|string|object|null ...$said): void
{
    RequestScope::current()->changed(...$said);
}

/**
 * Declares that data with these tags has changed, unchanged: for what changed() cannot say (two
 * parents of one kind, `kind` as the name of a parent), and for applications that have tags of
 * their own.
 *
 *     changedTags('comments', 'comments:17', 'people:4', 'people:7');
 *
 * @throws PagewellException as changed()
 */
function changedTags(string ...$tags): void
{
    RequestScope::current()->changedTags(...$tags);
}

/**
 * Like changed(), but stale pages may be served for a moment while they are refreshed.
 *
 * For frequent changes of little importance: a view counter, an import of prices. Always sent over
 * the control interface. If that is disabled, it is the same as changed().
 *
 * @throws PagewellException as changed()
 */
function changedSoftly(int|string|object|null ...$said): void
{
    RequestScope::current()->changedSoftly(...$said);
}

/**
 * Like changed(), but calls the control interface at once and returns after the pages are purged.
 *
 * @return int how many pages were purged
 *
 * @throws InvalidTag         as changed()
 * @throws ChangeBeforeCommit a transaction is open
 * @throws PagewellException  PagewellUnreachable, InvalidationRefused, UnreadableResponse, InvalidConfiguration: see InvalidationClient
 */
function changedNow(int|string|object|null ...$said): int
{
    return RequestScope::current()->changedNow(...$said);
}

/**
 * Purges pages by URL, by tag, or all of them, at once: after a deployment, for instance.
 *
 *     invalidate(urls: ['/about/']);
 *     invalidate(all: true);
 *
 * @param list<string> $urls paths with their query, or whole URLs
 * @param list<string> $tags as Tag returns them
 * @param bool         $soft mark as stale instead of purging
 *
 * @return int how many pages were purged
 *
 * @throws PagewellException PagewellUnreachable, InvalidationRefused, UnreadableResponse, InvalidConfiguration: see InvalidationClient
 */
function invalidate(array $urls = [], array $tags = [], bool $all = false, bool $soft = false): int
{
    return RequestScope::current()->invalidate(new Invalidation($tags, $urls, $all, $soft))->pages;
}

/**
 * Sends waiting changes at once, instead of at the end: after each job of a worker that never ends.
 *
 * @return int how many pages were purged
 *
 * @throws PagewellException PagewellUnreachable, InvalidationRefused, UnreadableResponse, InvalidConfiguration; unsent
 * changes stay in the queue
 */
function flush(): int
{
    return RequestScope::current()->flush();
}

/**
 * Returns the transaction of a database connection, for connections other than Pagewell\Pdo.
 *
 *     transaction()->begin();      // after BEGIN
 *     transaction()->commit();     // after COMMIT: the changes declared in it are sent now
 *     transaction()->rollBack();   // after ROLLBACK: they are discarded
 *
 * @param string $connection its name, if there are several
 */
function transaction(string $connection = ''): Transaction
{
    return RequestScope::current()->transaction($connection);
}
