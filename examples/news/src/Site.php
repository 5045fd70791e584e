<?php

/**
 * Converts a request to a response: finds the controller, declares the dependencies of its page,
 * calls it for the page, and converts errors to a response.
 *
 * Only this class connects the site to Pagewell: the #[Uses] of a controller are the dependencies
 * of its pages. A controller without declarations works, too, but its page is rendered for each
 * request.
 */

declare(strict_types=1);

namespace News;

use News\Libraries\Database;
use News\Libraries\DatabaseAway;

use function Pagewell\usesOf;

/** The site. */
final class Site
{
    /** @param list<array{string, string, callable(Database): Controller}> $routes method, pattern, controller */
    public function __construct(private readonly array $routes, private readonly Database $database)
    {
    }

    /** Answers a request; never throws. */
    public function answer(Request $request): Response
    {
        try {
            return $this->route($request);
        } catch (DatabaseAway $away) {
            error_log('the database is away: ' . $away->getMessage());
            $page = Response::pageWith(503, 'away', 'The presses have stopped');
            return new Response(503, $page->content, $page->fields + ['Retry-After' => '5']);
        } catch (\Throwable $fault) {
            error_log((string) $fault);
            return Response::pageWith(500, 'fault', 'A fault of ours');
        }
    }

    private function route(Request $request): Response
    {
        $method = $request->method === 'HEAD' ? 'GET' : $request->method;
        $allowed = [];
        foreach ($this->routes as [$routeMethod, $pattern, $make]) {
            if (preg_match("~^$pattern$~D", $request->path, $parts) !== 1) {
                continue;
            }
            if ($routeMethod === $method) {
                return $this->ask($make($this->database), $request->matched($parts));
            }
            $allowed[] = $routeMethod === 'GET' ? 'GET, HEAD' : $routeMethod;
        }
        if ($allowed !== []) {
            return new Response(405, "Not here.\n", ['Content-Type' => 'text/plain; charset=utf-8', 'Allow' => implode(', ', $allowed)]);
        }
        return $this->withSlash($request) ?? Response::notFound();
    }

    private function ask(Controller $controller, Request $request): Response
    {
        usesOf($controller, $request->parameters());
        return $controller->answer($request);
    }

    /** `/news/4` is `/news/4/`, where there is such a page. */
    private function withSlash(Request $request): ?Response
    {
        foreach ($this->routes as [$method, $pattern]) {
            if ($method === 'GET' && preg_match("~^$pattern$~D", $request->path . '/') === 1) {
                return new Response(301, '', ['Location' => $request->path . '/']);
            }
        }
        return null;
    }
}
