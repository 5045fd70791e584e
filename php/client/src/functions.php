<?php

/**
 * The functions of the library: uses, freshFor and changed, and a few for changes outside a
 * request.
 *
 * A page declares its dependencies, and a write its changes. Both are collected during the request
 * and sent as fields of its response. So neither needs a connection, and a write is acknowledged
 * only after its invalidations are applied. A page without declarations gets no field and is not
 * stored.
 */

declare(strict_types=1);

namespace Pagewell;

/**
 * Says what the page being made is made from.
 *
 *     uses('news');          // the whole kind: a list, a count, a search
 *     uses('news', 4);       // this one
 *     uses('news', 4, 7, 9); // these
 *
 * @param string     $kind   a kind of data, as the application calls it; often a table
 * @param int|string ...$ids ids of that kind; none means the kind as a whole
 *
 * @throws InvalidTag      the kind or an id is empty, or an id came with a name (`news: 4`)
 * @throws UseAfterHeaders the header section has been sent, and could not tell of this
 */
function uses(string $kind, int|string ...$ids): void
{
    Outgoing::current()->uses($kind, ...$ids);
}

/**
 * Lets the page go after so many seconds, whether or not its data has changed.
 *
 * The shortest of several times counts. Without uses() the page lives by this time alone.
 *
 * @param int $seconds zero or more; zero means: not to be stored
 *
 * @throws InvalidLifetime the time is negative
 * @throws UseAfterHeaders the header section has been sent
 */
function freshFor(int $seconds): void
{
    Outgoing::current()->freshFor($seconds);
}

/**
 * Says which of a set the page shows: a search, a list by date.
 *
 *     usesShown('news', $ids, 60);
 *
 * A change of what is shown is seen at once; what newly belongs into the set, within the time.
 *
 * @param list<int|string> $ids     what is shown; may be none
 * @param int              $seconds how long the page lives at most
 *
 * @throws InvalidTag      an id is empty
 * @throws InvalidLifetime the time is negative
 * @throws UseAfterHeaders the header section has been sent
 */
function usesShown(string $kind, array $ids, int $seconds): void
{
    Outgoing::current()->usesShown($kind, $ids, $seconds);
}

/**
 * A part of the page that is a page of its own: the element of ESI where the server in front puts it in, what the
 * function makes where it does not.
 *
 *     <?= fragment('/box', fn () => include 'box.php') ?>
 *
 * The response then says `Surrogate-Control: content="ESI/1.0"`: whatever else stands in the page has to be escaped.
 *
 * @param string            $src      a path of this site, with its query; what a visitor typed in it through rawurlencode()
 * @param callable(): mixed $render   returns the fragment, or prints it; what it throws the page throws
 * @param string|null       $alt      another path, asked for where the first fails
 * @param bool              $continue whether the server in front leaves it out where that fails too (`onerror="continue"`)
 *
 * @return string as it goes into the page, not to be escaped
 *
 * @throws InvalidFragment an address is no path
 * @throws UseAfterHeaders the header section has been sent
 */
function fragment(string $src, callable $render, ?string $alt = null, bool $continue = false): string
{
    return Outgoing::current()->fragment($src, $render, $alt, $continue);
}

/**
 * Says what has been changed, once it is written.
 *
 *     changed('news', 4);           // news 4: pages made from it, and from the kind as a whole
 *     changed('news');              // some of them, nobody knows which: every page with news in it
 *     changed('comments', news: 4); // a comment, on news 4: every page with comments in it,
 *                                   // and the pages made from news 4 (but no list of news)
 *
 * In answer to a POST, PUT, PATCH or DELETE it travels on the response, unless PAGEWELL_CHANGES says
 * `control`. Elsewhere the control interface is called: for a GET before the header section goes out,
 * for a command, and after the header section, at the end; if Pagewell is away, the log says so. While a transaction is open that the library knows of, it waits for the commit.
 *
 * @param int|string|null ...$said the kind that was written; its id, or null when that is not known; and by name
 *                                 what else shows it: kind: id. A parent may have any name, also `kind` and `id`
 *
 * @throws InvalidTag           a name is empty, or a parent came without its kind
 * @throws ChangeOnSafeMethod   the request is a GET, HEAD, OPTIONS or TRACE, and the control interface is switched off
 * @throws ChangeAfterHeaders   the header section has been sent, and the control interface is switched off
 * @throws ChangeOutsideRequest there is no response (a command, a cron job), and the control interface is switched off
 */
function changed(int|string|null ...$said): void
{
    Outgoing::current()->changed(...$said);
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
    Outgoing::current()->changedSoftly(...$said);
}

/**
 * The same as changed(), at once: the pages are gone when it returns.
 *
 * @return int how many pages were dropped
 *
 * @throws InvalidTag         as changed()
 * @throws ChangeBeforeCommit a transaction is open
 * @throws PagewellException  ControlAway, ControlRefused, ControlUnreadable, InvalidControl: see Control
 */
function changedNow(int|string|null ...$said): int
{
    return Outgoing::current()->changedNow(...$said);
}

/**
 * Drops pages by address, by tag, or all of them, at once: after a deployment, for instance.
 *
 *     invalidate(urls: ['/about/']);
 *     invalidate(all: true);
 *
 * @param list<string> $urls paths with their query, or whole URLs
 * @param list<string> $tags as Tag makes them
 * @param bool         $soft mark as stale rather than drop
 *
 * @return int how many pages were dropped
 *
 * @throws PagewellException ControlAway, ControlRefused, ControlUnreadable, InvalidControl: see Control
 */
function invalidate(array $urls = [], array $tags = [], bool $all = false, bool $soft = false): int
{
    return Outgoing::current()->invalidate(new Invalidation($tags, $urls, $all, $soft))->pages;
}

/**
 * Sends waiting changes at once, instead of at the end: after each job of a worker that never ends.
 *
 * @return int how many pages were dropped
 *
 * @throws PagewellException ControlAway, ControlRefused, ControlUnreadable, InvalidControl; unsent
 * changes stay in the queue
 */
function tell(): int
{
    return Outgoing::current()->tell();
}

/**
 * The transaction of a database connection, for those whose connection is no Pagewell\Pdo.
 *
 *     transaction()->begin();      // after BEGIN
 *     transaction()->commit();     // after COMMIT: the changes declared in it are sent now
 *     transaction()->rollBack();   // after ROLLBACK: they are discarded
 *
 * @param string $connection its name, where there are several
 */
function transaction(string $connection = ''): Transaction
{
    return Outgoing::current()->transaction($connection);
}

/**
 * The header section is about to be sent: for the function that an application gives to header_register_callback().
 *
 *     header_register_callback(static function (): void {
 *         header('X-Own: yes');
 *         Pagewell\beforeHeaders();
 *     });
 *
 * PHP calls one such function only. Without this call, a page that is sent before its script ends is not stored.
 */
function beforeHeaders(): void
{
    HeaderCallback::run();
}

/**
 * Says what the page being made is made from, as its controller's attributes say.
 *
 *     usesOf($controller, ['id' => 4]);                  // #[Uses('news:{id}')] on its class
 *     usesOf(NewsController::class . '::show', $route);  // on its method
 *
 * A controller that states nothing declares nothing: its page is not kept.
 *
 * @param object|string        $controller an instance, `Class`, or `Class::method`
 * @param array<string, mixed> $parameters of the route, by name
 *
 * @throws UnknownParameter a name in braces is not among the parameters
 * @throws UseAfterHeaders  the header section has been sent
 */
function usesOf(object|string $controller, array $parameters = []): void
{
    Dependencies\DependencyList::statement(is_object($controller) ? $controller::class : $controller)->apply(Outgoing::current(), $parameters);
}

// Before the application registers a function of its own, which then stays.
HeaderCallback::claim();

// A value that is mistyped is refused before the application writes anything, and not by changed(), after it.
Configuration::check((new PhpWire())->method());
