<?php

/**
 * The effects of a change on the pages of a blog, found by comparing each cached page with one that is
 * rendered at that moment.
 *
 *     old        a cached page differs from the page that WordPress renders now: a fault
 *     purged     the page was cached before the change, and is not any more
 *     changed    the page differs from the one before the change
 *     unstored   a page that has to be cached is not
 *
 * It does not list which pages a change affects: an outdated page is found whatever it shows.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Support;

final class PageComparison
{
    /** @var list<string> */
    public array $old = [];

    /** @var list<string> */
    public array $purged = [];

    /** @var list<string> */
    public array $changed = [];

    /** @var list<string> */
    public array $unstored = [];

    /** @var array<string, string> the content of each page, by path */
    private array $before = [];

    /** @var array<string, bool> whether it is cached */
    private array $isKept = [];

    /** @param list<string> $paths */
    public function __construct(private readonly BlogPages $pages, array $paths)
    {
        foreach ($paths as $path) {
            // Changes that WordPress writes with its first page end the first one.
            $pages->ask($path);
            $this->before[$path] = $pages->ask($path)[0];
            $this->isKept[$path] = $pages->isKept($path);
        }
    }

    /** Compares all pages after a change. */
    public function after(string $happens): void
    {
        // A write that is answered after the changes so far are applied.
        RealWordPress::isFollowed() && $this->pages->ask('/?s=nothing', 'POST');
        foreach ($this->before as $path => $before) {
            [$anew, $made] = [$shown, $how] = $this->pages->ask($path);
            // A page rendered now is up to date.
            if (str_contains($how, 'hit')) {
                $this->pages->ask($path, 'PURGE');
                [$anew, $made] = $this->pages->ask($path);
                $anew === $shown || $this->old[] = "$path after: $happens: " . self::difference($shown, $anew);
            } elseif ($this->isKept[$path]) {
                $this->purged[] = "$path after: $happens";
            }
            $this->isKept[$path] = $this->pages->isStored($path, $made);
            // The way from an old address is not kept, nor is an error of the REST API.
            $exceptions = str_contains($path, 'wp-json') ? '40[134]' : '301';
            $this->isKept[$path] || preg_match("/fwd-status=$exceptions/", $made) === 1 || $this->unstored[] = "$path after: $happens: $made";
            $anew === $before || $this->changed[] = "$path after: $happens";
            $this->before[$path] = $anew;
        }
    }

    /** Returns the text around the first byte in which two contents differ: of the old one, then of the new one. */
    private static function difference(string $old, string $new): string
    {
        $start = max(0, strspn($old ^ $new, "\0") - 80);
        return var_export(substr($old, $start, 240), true) . ' is ' . var_export(substr($new, $start, 240), true);
    }

    /** Returns purged ÷ changed. */
    public function ratio(): float
    {
        return count($this->purged) / max(1, count($this->changed));
    }

    /** Returns the figures and, for each page that was purged without need, a line. */
    public function report(): string
    {
        $needless = array_diff($this->purged, $this->changed);
        return sprintf("%d purged, %d changed: %.2f\n", count($this->purged), count($this->changed), $this->ratio()) . implode("\n", $needless) . "\n";
    }
}
