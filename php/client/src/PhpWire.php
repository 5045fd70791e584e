<?php

/**
 * The response that PHP itself sends: header(), http_response_code(), the session.
 *
 * PHP has room for one function to be called before the header section is sent, and the application
 * may want it (HeaderCallback). Where it has it, a page that is sent before its script ends goes
 * undeclared and is not stored, unless the application calls beforeHeaders(). Changes do not depend on
 * it: they are set at once, or sent to the control interface at once.
 *
 * A response without content (a redirect) has its header section sent when PHP has already
 * put away the session and the class loader. So what is to be done
 * before sending is done as the script ends, if it has not been done by then.
 */

declare(strict_types=1);

namespace Pagewell;

/** Speaks to PHP. */
final class PhpWire implements Wire
{
    /** Another request begins that PHP serves. */
    public static function begin(): self
    {
        HeaderCallback::claim();
        return new self();
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
            credentials: Credentials::ofPhp(),
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
        AtEnd::call($once, toResponse: true);
    }

    /** Whether nobody says when the header section will go out: the application has the place for that function. */
    public function isUnannounced(): bool
    {
        return $this->method() !== null && !headers_sent() && !HeaderCallback::isOurs();
    }

    /** Runs also after exit() and a fatal error; a signal that kills PHP leaves no time for it. */
    public function atEnd(callable $then): void
    {
        AtEnd::call($then);
    }

    /** Also true after session_write_close(): the page was made with it all the same. */
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
