<?php

/**
 * The destination of the running request's field lines.
 *
 * Three implementations: PhpChannel uses PHP itself, CollectingChannel collects lines for a framework's
 * response object, RecordingChannel records them, for tests.
 */

declare(strict_types=1);

namespace Pagewell\Core;

/** The response to the running request, to be written to. */
interface ResponseChannel
{
    /** The method of the request, upper case; null where there is no request (a command). */
    public function method(): ?string;

    /** Returns Surrogate-Capability of the request, by which a server in front announces ESI; empty without one. */
    public function capability(): string;

    /** Whether the header section has been sent. */
    public function isSent(): bool;

    /** Returns the current state of the response. */
    public function response(): Response;

    /**
     * Sets field lines.
     *
     * @param list<string> $lines   `Name: value`
     * @param string|null  $replace name of a field whose earlier lines are removed
     */
    public function set(array $lines, ?string $replace = null): void;

    /**
     * Registers a function that is called once, right before the header section is sent.
     *
     * @param callable(): void $then
     */
    public function beforeSending(callable $then): void;

    /**
     * Registers a function that is called once, when the request or the command ends.
     *
     * @param callable(): void $then
     */
    public function atEnd(callable $then): void;
}
