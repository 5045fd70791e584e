<?php

/**
 * The page of a request, reported for the profiler. Listener writes the report with the response; PageCollector reads
 * it when the request has ended. It holds the last main request only, and no object of it.
 */

declare(strict_types=1);

namespace Pagewell\Symfony\Profiler;

use Pagewell\Core\Declaration;
use Pagewell\Core\Refusal;
use Pagewell\Core\Response;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response as FoundationResponse;

/**
 * The report of the last main request.
 *
 * @internal
 */
final class PageReport
{
    /** The fields of a response that are for Pagewell. */
    private const FIELDS = ['Cache-Groups', 'Pagewell-Cache-Control', 'Cache-Control', 'Cache-Group-Invalidation', 'Surrogate-Control'];

    /** @var \WeakReference<Request>|null */
    private ?\WeakReference $request = null;

    /** @var array{refusal: ?string, tags: list<string>, lifetime: int, fields: array<string, string>} */
    private array $report = ['refusal' => null, 'tags' => [], 'lifetime' => 0, 'fields' => []];

    /** Remembers a page with its response, after the header fields were added. */
    public function remember(Request $request, Declaration $page, Response $response, FoundationResponse $sent): void
    {
        $this->request = \WeakReference::create($request);
        $fields = [];
        foreach (self::FIELDS as $name) {
            if ($sent->headers->has($name)) {
                $fields[$name] = implode(', ', $sent->headers->all($name));
            }
        }
        $refusal = $page->refusal($response);
        // The attributes of a controller are not read for a write.
        if ($refusal === Refusal::Nothing && !in_array($response->method, ['GET', 'HEAD'], true)) {
            $refusal = Refusal::Method;
        }
        $this->report = ['refusal' => $refusal?->value, 'tags' => $page->tags(), 'lifetime' => $page->lifetimeSeconds(), 'fields' => $fields];
    }

    /** @return array{refusal: ?string, tags: list<string>, lifetime: int, fields: array<string, string>}|null null: a sub-request, or a request without a report */
    public function of(Request $request): ?array
    {
        return $this->request?->get() === $request ? $this->report : null;
    }
}
