<?php

/**
 * For the tests of an application: what a response says to Pagewell, and calls of its control
 * interface, which are recorded instead of made.
 *
 *     class NewsTest extends TestCase
 *     {
 *         use InteractsWithPageCache;
 *
 *         public function test_a_comment_purges_its_news(): void
 *         {
 *             $calls = $this->fakePageCache();
 *             $this->assertPageCached($this->get('/news/4'));
 *             $this->assertPageDependsOn($this->get('/news/4'), 'news', 4);
 *             $this->assertChanged($this->post('/news/4/comments', ['text' => 'Well put.']), 'news', 4);
 *             $this->artisan('news:import');
 *             $this->assertChanged($calls, 'news');
 *         }
 *     }
 */

declare(strict_types=1);

namespace Pagewell\Laravel\Testing;

use Illuminate\Testing\TestResponse;
use Pagewell\Configuration;
use Pagewell\Testing\RecordingClient;
use Pagewell\Testing\ResponseTags;
use PHPUnit\Framework\Assert;

/** Assertions about pages and changes. */
trait InteractsWithPageCache
{
    /** Records the calls of the control interface until the application of this test ends. */
    protected function fakePageCache(): RecordingClient
    {
        Configuration::set($calls = new RecordingClient());
        $this->beforeApplicationDestroyed(static fn () => Configuration::reset());
        return $calls;
    }

    /** Fails if the page is not offered for caching. */
    protected function assertPageCached(TestResponse $response): void
    {
        $control = (string) $response->headers->get('Pagewell-Cache-Control', '');
        Assert::assertMatchesRegularExpression('/max-age=[1-9]/', $control, "The page is not offered for caching. Why: RequestScope::current()->refusal() in its controller, before it returns. Its status is {$response->getStatusCode()}.");
    }

    /** Fails if the page is offered for caching. */
    protected function assertPageNotCached(TestResponse $response): void
    {
        Assert::assertDoesNotMatchRegularExpression('/max-age=[1-9]/', (string) $response->headers->get('Pagewell-Cache-Control', ''), 'The page is offered for caching.');
    }

    /** Fails if the page does not depend on these rows; without ids: on the kind as a whole. */
    protected function assertPageDependsOn(TestResponse $response, string $kind, int|string ...$ids): void
    {
        $tags = ResponseTags::of(array_values($response->headers->all('Cache-Groups')));
        Assert::assertTrue(ResponseTags::dependOn($tags, $kind, ...$ids), 'The page depends on ' . ($tags === [] ? 'nothing' : implode(', ', $tags)) . ", not on $kind " . implode(', ', $ids) . '.');
    }

    /** Fails if the response to a write, or the recorded calls, do not report this change. */
    protected function assertChanged(TestResponse|RecordingClient $written, string $kind, int|string|null $id = null): void
    {
        $tags = $written instanceof RecordingClient ? $written->tags() : ResponseTags::of(array_values($written->headers->all('Cache-Group-Invalidation')));
        Assert::assertTrue(ResponseTags::contain($tags, $kind, $id), "changed('$kind'" . ($id === null ? '' : ", $id") . ') was not reported, but ' . ($tags === [] ? 'nothing' : implode(', ', $tags)) . '.');
    }
}
