<?php

/**
 * A control interface that is never called: for the tests of an application.
 *
 *     $channel = RecordingChannel::install(method: null);            // a command
 *     $import->run();                                           // calls changed('news', 4)
 *     $channel->end();
 *     self::assertSame(['news', 'news:4'], $channel->client->tags());
 */

declare(strict_types=1);

namespace Pagewell\Testing;

use Pagewell\Core\Exception\PagewellException;
use Pagewell\Core\Invalidation;
use Pagewell\Core\InvalidationClient;
use Pagewell\Core\InvalidationResult;

/** Records the calls. */
final class RecordingClient implements InvalidationClient
{
    /** @var list<Invalidation> */
    private array $calls = [];

    private ?PagewellException $failure = null;

    /** Makes every further call throw this; null ends it. The calls are recorded in either case. */
    public function fail(?PagewellException $failure): void
    {
        $this->failure = $failure;
    }

    public function invalidate(Invalidation $invalidation): InvalidationResult
    {
        $this->calls[] = $invalidation;
        if ($this->failure !== null) {
            throw $this->failure;
        }
        return new InvalidationResult(0, count($this->calls));
    }

    /** @return list<Invalidation> the calls so far */
    public function calls(): array
    {
        return $this->calls;
    }

    /** @return list<string> the tags of all calls so far, each once */
    public function tags(): array
    {
        $tags = array_map(static fn (Invalidation $call): array => $call->tags, $this->calls);
        return array_values(array_unique(array_merge(...$tags)));
    }
}
