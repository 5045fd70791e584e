<?php

/**
 * The response that PHP itself sends: header(), http_response_code(), the session.
 *
 * PHP calls only one function before it sends the header section, and the application may register
 * its own (HeaderCallback). Then a page that is sent before its script ends is not declared and not
 * stored, unless the application calls beforeHeaders(). Changes do not depend on this: they are set
 * at once, or sent to the control interface at once.
 *
 * PHP sends the header section of a response without content (a redirect) after it has closed the
 * session and the class loader. So the work before sending is done when the script ends, at the
 * latest.
 */

declare(strict_types=1);

namespace Pagewell;

use Pagewell\Core\Credentials;
use Pagewell\Core\Front;
use Pagewell\Core\Response;
use Pagewell\Core\ResponseChannel;

/**
 * Writes to PHP's own response.
 *
 * @internal
 */
final class PhpChannel implements ResponseChannel
{
    /** Begins another request that PHP serves. */
    public static function begin(): self
    {
        HeaderCallback::claim();
        return new self();
    }

    /** Returns the credentials of the request that PHP itself serves. In a worker they are unknown. */
    public static function credentials(): Credentials
    {
        if ((new self())->method() === null) {
            return new Credentials(isKnown: false);
        }
        // Apache omits Authorization from the variables, but an application can read it from the fields.
        $fields = function_exists('getallheaders') ? array_change_key_case(getallheaders()) : [];
        return Credentials::of((string) ($_SERVER['HTTP_COOKIE'] ?? ''), $_COOKIE, $_SERVER, isset($fields['authorization']));
    }

    /** Whether Pagewell is in front of the request that PHP itself serves. In a worker it may be. */
    public static function isFronted(): bool
    {
        return (new self())->method() === null || Front::isInFront();
    }

    public function method(): ?string
    {
        $method = $_SERVER['REQUEST_METHOD'] ?? null;
        return in_array(PHP_SAPI, ['cli', 'phpdbg', 'embed'], true) || !is_string($method) ? null : strtoupper($method);
    }

    public function capability(): string
    {
        $said = $_SERVER['HTTP_SURROGATE_CAPABILITY'] ?? '';
        return $this->method() !== null && is_string($said) ? $said : '';
    }

    public function isSent(): bool
    {
        return $this->method() !== null && headers_sent();
    }

    public function response(): Response
    {
        return new Response(
            method: $this->method() ?? 'GET',
            status: http_response_code() ?: 200,
            lines: headers_list(),
            session: $this->sessionWasOpen(),
            failed: $this->hasFailed(),
            credentials: self::credentials(),
            isFronted: self::isFronted(),
        );
    }

    public function set(array $lines, ?string $replace = null): void
    {
        if ($replace !== null) {
            header_remove($replace);
        }
        foreach ($lines as $line) {
            header($line, false);
        }
    }

    public function beforeSending(callable $then): void
    {
        $called = false;
        $once = static function () use ($then, &$called): void {
            if (!$called) {
                $called = true;
                $then();
            }
        };
        HeaderCallback::call($once);
        RequestEnd::call($once, toResponse: true);
    }

    /**
     * Whether the sending of the header section is not reported, because the application has
     * registered its own function.
     */
    public function isUnannounced(): bool
    {
        return $this->method() !== null && !headers_sent() && !HeaderCallback::isOurs();
    }

    /** Also runs after exit() and a fatal error, but not if a signal kills PHP. */
    public function atEnd(callable $then): void
    {
        RequestEnd::call($then);
    }

    /** Also true after session_write_close(), because the page may contain data of the session. */
    private function sessionWasOpen(): bool
    {
        return isset($_SESSION) || (function_exists('session_id') && session_id() !== '');
    }

    /** With display_errors on, PHP sends its message with status 200. */
    private function hasFailed(): bool
    {
        $fatal = E_ERROR | E_PARSE | E_CORE_ERROR | E_COMPILE_ERROR | E_USER_ERROR | E_RECOVERABLE_ERROR;
        return ((error_get_last()['type'] ?? 0) & $fatal) !== 0;
    }
}
