<?php

/**
 * The administrator of a RealWordPress, signed in through Pagewell, as a browser would: REST API,
 * heartbeat, and pages of the administration.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Support;

final class WordPressEditor
{
    private string $cookie = '';

    private string $nonce;

    private string $heartbeat;

    public function __construct(private readonly RealPagewell $pagewell)
    {
        [$status, $fields, $content] = $this->ask('POST', '/wp-login.php', 'log=admin&pwd=secret-of-admin&testcookie=1', 'Cookie: wordpress_test_cookie=WP%20Cookie%20check');
        $status === 302 || throw new \RuntimeException("wp-login.php: $status $content");
        $this->cookie = implode('; ', array_map(static fn (string $line): string => explode(';', $line)[0], $fields['set-cookie']));
        $this->nonce = $this->ask('GET', '/wp-admin/admin-ajax.php?action=rest-nonce')[2];
        preg_match('/heartbeatSettings = \{.*?"nonce":"(\w+)"/', $this->ask('GET', '/wp-admin/index.php')[2], $found);
        $this->heartbeat = $found[1] ?? throw new \RuntimeException('the dashboard has no nonce for heartbeats');
    }

    /**
     * Calls a route of the REST API.
     *
     * @param array<string, mixed> $what
     *
     * @return array<mixed>
     */
    public function rest(string $method, string $route, array $what = []): array
    {
        [$status, , $content] = $this->ask($method, "/wp-json/$route", $what === [] ? '' : json_encode($what), "X-WP-Nonce: {$this->nonce}", 'Content-Type: application/json');
        return $status < 300 ? (array) json_decode($content, true) : throw new \RuntimeException("$route: $status $content");
    }

    /**
     * Sends a heartbeat, which refreshes locks.
     *
     * @param array<string, mixed> $data
     *
     * @return array<mixed>
     */
    public function heartbeat(array $data): array
    {
        $form = http_build_query(['action' => 'heartbeat', '_nonce' => $this->heartbeat, 'screen_id' => 'post', 'data' => $data]);
        return (array) json_decode($this->ask('POST', '/wp-admin/admin-ajax.php', $form)[2], true);
    }

    /** Returns a page of the administration. */
    public function page(string $path): string
    {
        return $this->ask('GET', $path)[2];
    }

    /** @return array{int, array<string, list<string>>, string} */
    private function ask(string $method, string $path, string $content = '', string ...$lines): array
    {
        $type = preg_grep('/^content-type:/i', $lines) ? [] : ['Content-Type: application/x-www-form-urlencoded'];
        $cookie = $this->cookie === '' ? [] : ["Cookie: {$this->cookie}"];
        $options = ['method' => $method, 'ignore_errors' => true, 'follow_location' => 0, 'timeout' => 60, 'content' => $content, 'header' => ['Host: blog.test', ...$type, ...$cookie, ...$lines]];
        $content = (string) file_get_contents($this->pagewell->address() . $path, false, stream_context_create(['http' => $options]));
        $fields = [];
        foreach (array_slice($http_response_header, 1) as $line) {
            [$name, $value] = explode(':', $line, 2) + ['', ''];
            $fields[strtolower($name)][] = trim($value);
        }
        return [(int) explode(' ', $http_response_header[0])[1], $fields, $content];
    }
}
