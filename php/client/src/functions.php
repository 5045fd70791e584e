<?php

/**
 * The functions of the library: uses, freshFor and changed, and a few for changes outside a
 * request.
 *
 * A page declares its dependencies, and a write its changes. Both are collected during the request
 * and sent as fields of its response. So neither needs a connection, and the response to a write is
 * delivered after its pages are purged (in a cluster it waits for other nodes for at most
 * `cluster.barrier`). A page without declarations gets no field and is not stored.
 */

declare(strict_types=1);

namespace Pagewell;

use Pagewell\Exception\ChangeAfterHeaders;
use Pagewell\Exception\ChangeBeforeCommit;
use Pagewell\Exception\ChangeOnSafeMethod;
use Pagewell\Exception\ChangeOutsideRequest;
use Pagewell\Exception\InvalidationRefused;
use Pagewell\Exception\InvalidConfiguration;
use Pagewell\Exception\InvalidFragment;
use Pagewell\Exception\InvalidLifetime;
use Pagewell\Exception\InvalidTag;
use Pagewell\Exception\PagewellException;
use Pagewell\Exception\PagewellUnreachable;
use Pagewell\Exception\UnknownParameter;
use Pagewell\Exception\UnreadableResponse;
use Pagewell\Exception\UseAfterHeaders;

/**
 * Declares which data the current page depends on.
 *
 *     uses('news');          // the whole kind: a list, a count, a search
 *     uses('news', 4);       // this one
 *     uses('news', 4, 7, 9); // these
 *
 * @param string     $kind   a kind of data, named by the application; often a table
 * @param int|string ...$ids ids of that kind; none means the kind as a whole
 *
 * @throws InvalidTag      the kind or an id is empty, or an id came with a name (`news: 4`)
 * @throws UseAfterHeaders the header section has been sent, so it cannot contain this dependency
 */
function uses(string $kind, int|string ...$ids): void
{
    RequestScope::current()->uses($kind, ...$ids);
}

/**
 * Limits the TTL of the current page, even if its data does not change.
 *
 * If it is called several times, the shortest time counts. Without uses(), the page is cached for
 * this time.
 *
 * @param int $seconds zero or more; zero: do not store the page
 *
 * @throws InvalidLifetime the time is negative
 * @throws UseAfterHeaders the header section has been sent
 */
function freshFor(int $seconds): void
{
    RequestScope::current()->freshFor($seconds);
}

/**
 * Declares which rows of a set the page shows: a search, a list by date.
 *
 *     usesList('news', $ids, 60);
 *
 * A change of these rows purges the page at once. Rows that are new in the set appear within the
 * time.
 *
 * @param list<int|string> $ids     the ids of the rows shown; may be empty
 * @param int              $seconds the maximum TTL
 *
 * @throws InvalidTag      an id is empty
 * @throws InvalidLifetime the time is negative
 * @throws UseAfterHeaders the header section has been sent
 */
function usesList(string $kind, array $ids, int $seconds): void
{
    RequestScope::current()->usesList($kind, $ids, $seconds);
}

/**
 * Returns an ESI fragment: the element of ESI if the server in front inserts fragments, otherwise
 * the output of the function.
 *
 *     <?= fragment('/box', fn () => include 'box.php') ?>
 *
 * The response then has `Surrogate-Control: content="ESI/1.0"`, so all other content of the page
 * has to be escaped.
 *
 * @param string            $src      a path of this site, with its query; apply rawurlencode() to text from visitors
 * @param callable(): mixed $render   returns the fragment, or prints it; its exceptions are not caught
 * @param string|null       $alt      another path, requested if the first fails
 * @param bool              $continue whether the server in front leaves it out if that fails, too (`onerror="continue"`)
 *
 * @return string HTML for the page; do not escape it
 *
 * @throws InvalidFragment an address is no path
 * @throws UseAfterHeaders the header section has been sent
 */
function fragment(string $src, callable $render, ?string $alt = null, bool $continue = false): string
{
    return RequestScope::current()->fragment($src, $render, $alt, $continue);
}

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
 * @param int|string|null ...$said the kind that was written; its id, or null if it is unknown; and, by name,
 *                                 its parents, as kind: id. A parent may have any name, also `kind` and `id`
 *
 * @throws InvalidTag           a name is empty, or a parent came without its kind
 * @throws ChangeOnSafeMethod   the request is a GET, HEAD, OPTIONS or TRACE, and the control interface is switched off
 * @throws ChangeAfterHeaders   the header section has been sent, and the control interface is switched off
 * @throws ChangeOutsideRequest there is no response (a command, a cron job), and the control interface is switched off
 */
function changed(int|string|null ...$said): void
{
    RequestScope::current()->changed(...$said);
}

/**
 * Like changed(), but stale pages may be served for a moment while they are refreshed.
 *
 * For frequent changes of little importance: a view counter, an import of prices. Always sent over
 * the control interface. If that is disabled, it is the same as changed().
 *
 * @throws PagewellException as changed()
 */
function changedSoftly(int|string|null ...$said): void
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
function changedNow(int|string|null ...$said): int
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

/**
 * Prepares the header section before it is sent. Call it in the function that your application
 * passes to header_register_callback().
 *
 *     header_register_callback(static function (): void {
 *         header('X-Own: yes');
 *         Pagewell\beforeHeaders();
 *     });
 *
 * PHP calls only one such function. Without this call, a page that is sent before its script ends
 * is not cached.
 */
function beforeHeaders(): void
{
    HeaderCallback::run();
}

/**
 * Declares what the current page depends on, as stated by the attributes of its controller.
 *
 *     usesOf($controller, ['id' => 4]);                  // #[Uses('news:{id}')] on its class
 *     usesOf(NewsController::class . '::show', $route);  // on its method
 *
 * The page of a controller without attributes is not cached.
 *
 * @param object|string        $controller an instance, `Class`, or `Class::method`
 * @param array<string, mixed> $parameters of the route, by name
 *
 * @throws UnknownParameter a name in braces is not among the parameters
 * @throws UseAfterHeaders  the header section has been sent
 */
function usesOf(object|string $controller, array $parameters = []): void
{
    Dependencies\DependencyList::statement(is_object($controller) ? $controller::class : $controller)->apply(RequestScope::current(), $parameters);
}

// Before the application registers its own function, which then stays.
HeaderCallback::claim();

// A wrong value is refused here, before the application writes anything, and not by changed() after the write.
Configuration::check((new PhpChannel())->method());
