<?php

/**
 * The functions for a page: what it depends on, how long it may be cached, its fragments.
 *
 * They collect during the request, and the response carries the result in its fields. So none of
 * them needs a connection. A page without declarations gets no field and is not stored.
 */

declare(strict_types=1);

namespace Pagewell;

use Pagewell\Core\Exception\InvalidFragment;
use Pagewell\Core\Exception\InvalidLifetime;
use Pagewell\Core\Exception\InvalidTag;
use Pagewell\Core\Exception\UnknownParameter;
use Pagewell\Core\Exception\UseAfterHeaders;

/**
 * Declares which data the current page depends on.
 *
 *     uses('news');          // the whole kind: a list, a count, a search
 *     uses('news', 4);       // this one
 *     uses('news', 4, 7, 9); // these
 *
 * @param string            $kind   a kind of data, named by the application; often a table
 * @param int|string|object ...$ids ids of that kind, or rows that have one, such as entities of Doctrine; none means
 *                                  the kind as a whole
 *
 * @throws InvalidTag      the kind or an id is empty, a row has no id, or an id came with a name (`news: 4`)
 * @throws UseAfterHeaders the header section has been sent, so it cannot contain this dependency
 */
function uses(string $kind, int|string|object ...$ids): void
{
    RequestScope::current()->uses($kind, ...$ids);
}

/**
 * Declares tags of the current page, unchanged: for what uses() cannot say, and for applications
 * that have tags of their own.
 *
 *     usesTags('news:4', 'author:7');
 *
 * A change purges the page only if it has one of these tags.
 *
 * @throws InvalidTag      a tag is empty
 * @throws UseAfterHeaders the header section has been sent
 */
function usesTags(string ...$tags): void
{
    RequestScope::current()->usesTags(...$tags);
}

/**
 * Declares that the current page must not be cached, whatever else it declares.
 *
 * The response gets `Pagewell-Cache-Control: no-store`, so that no rule of the site stores it.
 *
 * @throws UseAfterHeaders the header section has been sent
 */
function notCached(): void
{
    RequestScope::current()->notCached();
}

/**
 * Limits the TTL of the current page, even if its data does not change.
 *
 * If it is called several times, the shortest time counts. Without uses(), the page is cached for
 * this time. Without freshFor(), a page is cached for at most a day (PAGEWELL_LIFETIME).
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
 * @param list<int|string|object> $ids     the ids of the rows shown; may be empty
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
