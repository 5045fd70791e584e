<?php

/**
 * The three words of the library: uses, freshFor and changed.
 *
 * A page says what it is made from, a write says what it has changed; both are collected
 * while the request runs and travel as fields of its response, so that neither costs a
 * connection and a write is acknowledged only when it has taken effect. A page that says
 * nothing gets no field and is not stored.
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
 * Says what this request has changed, once it is written.
 *
 *     changed('news', 4);           // news 4: pages made from it, and from the kind as a whole
 *     changed('news');              // some of them, nobody knows which: every page with news in it
 *     changed('comments', news: 4); // a comment, on news 4: every page with comments in it,
 *                                   // and the pages made from news 4 (but no list of news)
 *
 * @param string          $kind  the kind that was written
 * @param int|string|null $id    which one; null when that is not known
 * @param int|string      ...$of what else shows it: kind: id
 *
 * @throws InvalidTag           a name is empty, or something in $of came without its kind
 * @throws ChangeOnSafeMethod   the request is a GET, HEAD, OPTIONS or TRACE
 * @throws ChangeAfterHeaders   the header section has been sent
 * @throws ChangeOutsideRequest there is no response to say it on (a command, a cron job)
 */
function changed(string $kind, int|string|null $id = null, int|string ...$of): void
{
    Outgoing::current()->changed($kind, $id, ...$of);
}
