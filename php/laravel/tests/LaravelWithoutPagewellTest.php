<?php

/**
 * Laravel on a machine without Pagewell, and with the control interface switched off: saving a model never fails.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Laravel;

use Illuminate\Contracts\Console\Kernel as ConsoleContract;
use Illuminate\Support\Facades\Route;
use Pagewell\Configuration;
use Pagewell\Core\Exception\ChangeOutsideRequest;
use Pagewell\Core\FileOutbox;
use Pagewell\Core\Invalidation;
use Pagewell\Laravel\Facades\PageCache;
use Pagewell\RequestScope;
use Pagewell\Testing\RecordingChannel;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;

use function Pagewell\changed;

final class LaravelWithoutPagewellTest extends TestCase
{
    private ?LaravelApplication $site = null;

    private string $errors;

    protected function setUp(): void
    {
        if (!LaravelDatabase::isInstalled()) {
            self::markTestSkipped('Illuminate/autoload.php is not installed');
        }
        require_once __DIR__ . '/LaravelApplication.php';
        $this->errors = (string) tempnam(sys_get_temp_dir(), 'pagewell-log');
        RequestScope::begin();
    }

    protected function tearDown(): void
    {
        RequestScope::begin(client: false);
        $this->site?->stop();
        ini_restore('error_log');
        isset($this->errors) && array_map(unlink(...), glob("$this->errors*") ?: []);
        Configuration::reset();
        Configuration::ofFramework('', []);
        RequestScope::begin();
    }

    /** @testWith [null]
     *           ["off"]
     */
    #[TestWith([null]), TestWith(['off'])]
    public function testOneSettingSaysThatThereIsNoPagewell(?string $admin): void
    {
        $this->start(['enabled' => false, 'admin' => $admin, 'outbox' => "$this->errors.outbox"]);
        RequestScope::begin(new RecordingChannel(null));
        Article::query()->create(['title' => 'by a seeder']);
        Article::query()->find(4)->increment('views', 1, ['title' => 'counted']);
        changed('news', 4);
        self::assertSame(0, \Pagewell\changedNow('news', 4));
        PageCache::invalidate(all: true);
        self::assertSame(0, PageCache::flush());
        $this->site->app->make('queue')->push(new LaravelJob());
        $outbox = new FileOutbox("$this->errors.waiting", pauseSeconds: 0);
        $outbox->store(new Invalidation(['news:4']));
        Configuration::set(outbox: $outbox);
        self::assertSame(0, PageCache::flush());
        self::assertSame(0, $this->site->app->make(ConsoleContract::class)->call('pagewell:invalidate', ['--all' => true]));
        RequestScope::current()->end();
        self::assertSame([200, 200], [$this->site->get('/counted')->getStatusCode(), $this->site->post('/news/4')->getStatusCode()]);
        self::assertSame(['', false], [file_get_contents($this->errors), file_exists("$this->errors.outbox")]);
        self::assertSame([3, true], [Article::query()->count(), $outbox->isDue()], 'the outbox of another environment is left alone');
    }

    public function testWithoutTheControlInterfaceModelsAreSavedAndTheLogSaysSo(): void
    {
        $this->start(['admin' => 'off', 'models' => [LaravelNews::class => 'news']]);
        RequestScope::begin(new RecordingChannel(null));
        foreach (['first', 'second'] as $title) {
            Article::query()->create(['title' => $title]);
            LaravelNews::query()->create(['title' => $title]);
            LaravelNews::query()->whereKey(4)->increment('views');
        }
        self::assertSame(6, Article::query()->count());
        self::assertSame(1, substr_count($log = (string) file_get_contents($this->errors), 'pagewell: '));
        self::assertStringContainsString("Run: pagewell purge --tag 'news' --tag 'news:6' Further changes of models are not logged.", $log);
        self::assertSame(200, $this->site->get('/counted')->getStatusCode());
        self::assertSame(2, substr_count((string) file_get_contents($this->errors), 'pagewell: '));
        self::assertSame('"news", "news:4"', $this->site->post('/news/4')->headers->get('Cache-Group-Invalidation'));
        RequestScope::begin(new RecordingChannel(null));
        $this->expectException(ChangeOutsideRequest::class);
        changed('news', 4);
    }

    /** @param array<string, mixed> $settings */
    private function start(array $settings): void
    {
        // Here, because newer PHPUnit sets it for itself after setUp().
        ini_set('error_log', $this->errors);
        $this->site = new LaravelApplication($settings);
        Route::middleware('cached')->get('/counted', static fn (): string => Article::query()->whereKey(4)->increment('views', 1, ['title' => 'counted']) . ' counted');
    }
}
