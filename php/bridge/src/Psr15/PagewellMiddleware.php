<?php

/**
 * PSR-15 middleware: adds the declarations of uses() and changed() to the application's response.
 *
 *     $app->pipe(new Pagewell\Bridge\Psr15\PagewellMiddleware());     // the outermost, except for those that set cookies
 *
 * A response that sets a cookie, or was created in a PHP session, is not offered for storing. If
 * the application throws, the changes until then are sent over the control interface. Outer
 * middleware may also throw, or replace the response that carries the changes. With PHP-FPM the
 * sent response is checked at the end. In a worker, add a second instance as the outermost
 * middleware for that check.
 */

declare(strict_types=1);

namespace Pagewell\Bridge\Psr15;

use Pagewell\CollectingChannel;
use Pagewell\Core\Credentials;
use Pagewell\Core\InvalidationClient;
use Pagewell\RequestScope;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\MiddlewareInterface;
use Psr\Http\Server\RequestHandlerInterface;

/** Adds declarations and changes to PSR-7 responses. */
final class PagewellMiddleware implements MiddlewareInterface
{
    /** @param InvalidationClient|false|null $client as RequestScope::begin() takes it */
    public function __construct(private readonly InvalidationClient|false|null $client = null)
    {
    }

    public function process(ServerRequestInterface $request, RequestHandlerInterface $handler): ResponseInterface
    {
        $channel = $request->getAttribute(self::class);
        if ($channel instanceof CollectingChannel) {
            return self::finished($channel, $handler->handle($request));
        }
        $credentials = Credentials::of(implode('; ', $request->getHeader('Cookie')), $request->getCookieParams(), $request->getServerParams(), $request->hasHeader('Authorization'));
        $channel = CollectingChannel::begin($request->getMethod(), $this->client, capability: $request->getHeaderLine('Surrogate-Capability'), credentials: $credentials);
        try {
            $response = $handler->handle($request->withAttribute(self::class, $channel));
        } catch (\Throwable $fault) {
            $channel->withdraw();
            throw $fault;
        }
        return self::finished($channel, $response);
    }

    private static function finished(CollectingChannel $channel, ResponseInterface $response): ResponseInterface
    {
        $lines = [];
        foreach ($response->getHeaders() as $name => $values) {
            foreach ($values as $value) {
                $lines[] = "$name: $value";
            }
        }
        foreach ($channel->finish($response->getStatusCode(), $lines, session_status() === PHP_SESSION_ACTIVE || isset($_SESSION)) as $line) {
            [$name, $value] = explode(': ', $line, 2);
            $response = $name === 'Surrogate-Control' ? $response->withHeader($name, $value) : $response->withAddedHeader($name, $value);
        }
        return $response;
    }
}
