<?php

/**
 * A panel of Symfony's profiler: whether Pagewell may cache the page, or why not, its tags, and what the response
 * says that it has changed. The panel is templates/collector.html.twig.
 *
 * The profiler collects before the bundle's listener has finished the response, so this collector waits for the end
 * of the request.
 */

declare(strict_types=1);

namespace Pagewell\Symfony\Profiler;

use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpKernel\DataCollector\DataCollector;
use Symfony\Component\HttpKernel\DataCollector\LateDataCollectorInterface;

/**
 * Collects the page's report for the profiler.
 *
 * @internal
 */
final class PageCollector extends DataCollector implements LateDataCollectorInterface
{
    /** The panel's name in the profiler's URL. */
    public const NAME = 'pagewell';

    private ?Request $request = null;

    public function __construct(private readonly PageReport $report)
    {
    }

    public function collect(Request $request, Response $response, ?\Throwable $exception = null): void
    {
        $this->request = $request;
    }

    public function lateCollect(): void
    {
        $this->data = ($this->request === null ? null : $this->report->of($this->request)) ?? [];
        $this->request = null;
    }

    public function reset(): void
    {
        [$this->data, $this->request] = [[], null];
    }

    public function getName(): string
    {
        return self::NAME;
    }

    /** Whether there is a report. A sub-request has none: it belongs to its page. */
    public function isKnown(): bool
    {
        return $this->data !== [];
    }

    /** Whether Pagewell may cache the page. */
    public function isOffered(): bool
    {
        return $this->isKnown() && $this->data['refusal'] === null;
    }

    /** Returns the name of the reason why the page may not be cached; null if it may be. */
    public function refusal(): ?string
    {
        return $this->data['refusal'] ?? null;
    }

    /** @return list<string> the tags that the page has declared, also if it may not be cached */
    public function tags(): array
    {
        return $this->data['tags'] ?? [];
    }

    /** Returns the maximum TTL of the page, in seconds. */
    public function lifetimeSeconds(): int
    {
        return $this->data['lifetime'] ?? 0;
    }

    /** @return array<string, string> the header fields of the response that are for Pagewell */
    public function fields(): array
    {
        return $this->data['fields'] ?? [];
    }

    /** Returns the tags that the response reports as changed, as it sends them; null: none. */
    public function changes(): ?string
    {
        return $this->fields()['Cache-Group-Invalidation'] ?? null;
    }
}
