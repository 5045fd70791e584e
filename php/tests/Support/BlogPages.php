<?php

/**
 * The pages of a RealWordPress behind Pagewell, as visitors get them, to be compared with each other.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Support;

final class BlogPages
{
    /** @param ?\Closure(string): string $norm removes from a page what differs each time */
    public function __construct(private readonly RealPagewell $pagewell, private readonly ?\Closure $norm = null)
    {
    }

    /** @return array{string, string} status and content; what Pagewell did, and why the plugin did not want it kept */
    public function ask(string $path, string $method = 'GET', string ...$fields): array
    {
        $options = ['method' => $method, 'header' => ['Host: blog.test', ...$fields], 'timeout' => 90, 'ignore_errors' => true, 'follow_location' => 0];
        $content = (string) file_get_contents($this->pagewell->address() . $path, false, stream_context_create(['http' => $options]));
        $this->pagewell->visit($method, $path, 'Host: blog.test', ...$fields);
        $content = $this->norm === null ? $content : ($this->norm)($content);
        return [$http_response_header[0] . "\n" . self::norm($content), implode(preg_grep('/^(cache-status|x-pagewell-refusal):/i', $http_response_header))];
    }

    /** Whether it comes from memory; otherwise it is made, and stored if it may be. */
    public function isKept(string $path): bool
    {
        return str_contains($this->ask($path)[1], 'hit');
    }

    /** Whether the page of this answer was stored. One whose content comes late says nothing of it; then it comes from memory now. */
    public function isStored(string $path, string $how): bool
    {
        return str_contains($how, 'stored') || (str_contains($how, 'in-progress') && $this->isKept($path));
    }

    /** Without what differs each time: numbers that WordPress counts blocks with, from the start of each request, and which server has the avatars. */
    private static function norm(string $content): string
    {
        $content = (string) preg_replace('/((?:wp-block|wp-container|wp-elements|search-form)[a-z_-]*?)-?[0-9]+\b/', '$1', $content);
        // A picture that can be enlarged has a number from the time (uniqid), as the quantities of a shop have.
        $content = (string) preg_replace('/(?<![0-9A-Za-z])[0-9a-f]{13}\b/', 'unique', $content);
        // An embedded post has a random word in two places.
        $content = (string) preg_replace('~(data-secret=\\\\?"|secret=)[A-Za-z0-9]{10}~', '$1', $content);
        return (string) preg_replace('~/(?:[0-9]|www|secure)\.gravatar\.~', '/gravatar.', $content);
    }
}
