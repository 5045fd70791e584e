<?php

/**
 * The response of a framework that makes it as a value: lines wait until there is one.
 *
 *     $wire = ResponseWire::begin($request->getMethod(), credentials: Credentials::of($cookieField));
 *     …the application makes its response…
 *     foreach ($wire->finish($status, $lines, $session) as $line) { … add it … }
 *
 * Begins the request's state, so it serves processes that answer many requests. What is said after
 * finish() takes the control interface: at once, for nobody knows when such a process hears of its next
 * request; or together, where the framework says when the request is over. Where the response never comes,
 * lose(), or withdraw() once it was finished, sees to it that what has changed is told all the same.
 */

declare(strict_types=1);

namespace Pagewell;

/** Lines for a response to come. */
final class ResponseWire implements Wire
{
    private Response $response;

    /** @var list<string> */
    private array $lines = [];

    /** @var (callable(): void)|null */
    private $then = null;

    private bool $sent = false;

    private function __construct(
        private readonly string $method,
        private readonly bool $isEnded,
        private readonly string $capability,
        private readonly Credentials $credentials,
    ) {
        $this->response = new Response($method, credentials: $credentials);
    }

    /**
     * Begins a request of this method.
     *
     * @param Control|false|null $control as Outgoing::begin() takes it
     * @param bool               $isEnded whether Outgoing's end() or flush() is called when the request is over
     * @param string             $capability Surrogate-Capability of the request, for fragment()
     * @param Credentials|null   $credentials what the request carries; null: as PHP itself knows. A worker has to say it, or no page is offered
     * @param bool               $isChecked whether a wrong value of the environment is refused here; false: logged by changed()
     *
     * @throws InvalidControl as Configuration::check()
     */
    public static function begin(
        string $method,
        Control|false|null $control = null,
        bool $isEnded = false,
        string $capability = '',
        ?Credentials $credentials = null,
        bool $isChecked = true,
    ): self {
        $wire = new self(strtoupper($method), $isEnded, $capability, $credentials ?? Credentials::ofPhp());
        Outgoing::begin($wire, $control, $isChecked);
        return $wire;
    }

    /**
     * The response is there. What the control interface has to be told is told now, before it is sent.
     * Another one in its place, of a fault in what came afterwards, says what has changed, and nothing else.
     *
     * @param list<string> $lines   its fields, `Name: value`
     * @param bool         $session whether it was made in a session
     *
     * @return list<string> the lines to add; Surrogate-Control in the place of what there is
     */
    public function finish(int $status, array $lines, bool $session = false): array
    {
        if ($this->sent) {
            Outgoing::current()->flush();
            return Carried::isSaid($this->changes(), new Response(lines: $lines)) ? [] : $this->changes();
        }
        $this->response = new Response($this->method, $status, $lines, $session, credentials: $this->credentials);
        if ($this->then !== null) {
            ($this->then)();
        }
        $this->sent = true;
        Outgoing::current()->flush();
        $this->watch();
        return $this->lines;
    }

    /** There will be no response of this request that could carry anything. */
    public function lose(): void
    {
        if (!$this->sent) {
            $this->withdraw();
        }
    }

    /** As lose(), even of a response that was finished: what stood further out has failed, and it goes to nobody. */
    public function withdraw(): void
    {
        $this->sent = true;
        Outgoing::current()->responseLost();
    }

    /**
     * Where PHP itself sends the response it is looked at in the end: what stood further out may have failed, or
     * answered with another one. Workers send theirs in a way of their own.
     */
    private function watch(): void
    {
        [$php, $changes] = [new PhpWire(), $this->changes()];
        if ($changes !== [] && $php->method() !== null) {
            AtEnd::call(function () use ($php, $changes): void {
                if (!Carried::isSaid($changes, $php->response())) {
                    $php->isSent() ? $this->withdraw() : $php->set($changes);
                }
            }, toResponse: true);
        }
    }

    /** @return list<string> the lines that say what has changed */
    private function changes(): array
    {
        return array_values(preg_grep('/^Cache-Group-Invalidation:/i', $this->lines));
    }

    public function method(): ?string
    {
        return $this->method;
    }

    public function capability(): string
    {
        return $this->capability;
    }

    public function isSent(): bool
    {
        return $this->sent;
    }

    /** Whether nobody will ask again for what is said from here on. */
    public function isLeft(): bool
    {
        return $this->sent && !$this->isEnded;
    }

    public function response(): Response
    {
        return $this->response;
    }

    public function set(array $lines, ?string $replace = null): void
    {
        $other = static fn (string $line): bool => $replace === null || strcasecmp(explode(':', $line, 2)[0], $replace) !== 0;
        $this->lines = [...array_values(array_filter($this->lines, $other)), ...$lines];
    }

    public function beforeSending(callable $then): void
    {
        $this->then = $then;
    }

    public function atEnd(callable $then): void
    {
        AtEnd::call($then);
    }
}
