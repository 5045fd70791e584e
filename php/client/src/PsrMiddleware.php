<?php

/**
 * PSR-15 middleware: what the application says with uses() and changed() goes onto its response.
 *
 *     $app->pipe(new Pagewell\PsrMiddleware());     // the outermost but for what sets cookies
 *
 * A response that sets a cookie, or was made in a PHP session, is not offered for storing. If the
 * application throws, the changes made until then are told by the control interface. What stands
 * further out may throw as well, when the changes are on a response that nobody gets then, or answer
 * with another one. PHP-FPM is asked in the end what it has sent; in a worker pipe one more as the
 * outermost, which sees to it: the two know of each other.
 */

declare(strict_types=1);

namespace Pagewell;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\MiddlewareInterface;
use Psr\Http\Server\RequestHandlerInterface;

/** Puts declarations and changes onto PSR-7 responses. */
final class PsrMiddleware implements MiddlewareInterface
{
    /** @param Control|false|null $control as Outgoing::begin() takes it */
    public function __construct(private readonly Control|false|null $control = null)
    {
    }

    public function process(ServerRequestInterface $request, RequestHandlerInterface $handler): ResponseInterface
    {
        $wire = $request->getAttribute(self::class);
        if ($wire instanceof ResponseWire) {
            return self::finished($wire, $handler->handle($request));
        }
        $credentials = Credentials::of(implode('; ', $request->getHeader('Cookie')), $request->getCookieParams(), $request->getServerParams(), $request->hasHeader('Authorization'));
        $wire = ResponseWire::begin($request->getMethod(), $this->control, capability: $request->getHeaderLine('Surrogate-Capability'), credentials: $credentials);
        try {
            $response = $handler->handle($request->withAttribute(self::class, $wire));
        } catch (\Throwable $fault) {
            $wire->withdraw();
            throw $fault;
        }
        return self::finished($wire, $response);
    }

    private static function finished(ResponseWire $wire, ResponseInterface $response): ResponseInterface
    {
        $lines = [];
        foreach ($response->getHeaders() as $name => $values) {
            foreach ($values as $value) {
                $lines[] = "$name: $value";
            }
        }
        foreach ($wire->finish($response->getStatusCode(), $lines, session_status() === PHP_SESSION_ACTIVE || isset($_SESSION)) as $line) {
            [$name, $value] = explode(': ', $line, 2);
            $response = $name === 'Surrogate-Control' ? $response->withHeader($name, $value) : $response->withAddedHeader($name, $value);
        }
        return $response;
    }
}
