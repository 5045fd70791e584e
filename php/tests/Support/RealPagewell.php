<?php

/**
 * The real binary with a php-fpm of its own, in front of tests/behind; stopped by its process id.
 *
 * The binary is PAGEWELL_BIN, or the newest that cargo has built. Ports are the system's choice; the
 * control interface is on a socket in a private directory, which goes with it.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Support;

final class RealPagewell
{
    private string $address = '';

    /**
     * @param resource $process
     * @param resource $log
     */
    private function __construct(private $process, private $log, public readonly string $directory)
    {
    }

    /**
     * The counters of an audit that rise only for a wrong page: one that is still wrong is watched. No page of these tests
     * shows the time of day. A short test may end before a comparison, so that nothing has to be compared.
     */
    private const FOUND = ['audit_watched', 'audit_broken_promises', 'audit_leaks', 'audit_leaks_or_aged', 'audit_aged', 'audit_by_the_clock'];

    /** The visitors of a trial (PAGEWELL_TRIAL). */
    private ?TrialVisitors $visitors = null;

    /** Starts it; the scripts of tests/behind find the rest in their environment. Every tenth hit is audited. */
    public static function start(string $root, string ...$arguments): self
    {
        while (true) {
            $self = self::started($root, ...$arguments);
            if (TrialVisitors::config() === '' || ($self->visitors = TrialVisitors::of($self)) !== null) {
                return $self;
            }
            // By chance, the address of the test is not among those that get hits.
            $self->stop();
        }
    }

    private static function started(string $root, string ...$arguments): self
    {
        $directory = sys_get_temp_dir() . '/pagewell-php-' . bin2hex(random_bytes(6));
        mkdir($directory, 0755);
        mkdir("$directory/notes", 0777);
        chmod("$directory/notes", 0777);
        $at = array_search('--config', $arguments, true);
        $config = $at === false ? '' : (string) file_get_contents($arguments[$at + 1]);
        $at === false || array_splice($arguments, $at, 2);
        file_put_contents("$directory/pagewell.toml", TrialVisitors::config() . "audit = \"1 in 10\"\n$config");
        chmod("$directory/pagewell.toml", 0600);
        $command = [
            self::binary(), 'serve', '--config', "$directory/pagewell.toml", '--listen', '127.0.0.1:0', '--admin', "unix:$directory/admin.sock", '--memory', '64M',
            '--php-env', "PAGEWELL_ADMIN=unix:$directory/admin.sock", '--php-env', "NOTES=$directory/notes", ...$arguments, $root,
        ];
        $log = fopen("$directory/log", 'w+');
        $process = proc_open($command, [1 => ['pipe', 'w'], 2 => $log], $pipes);
        if (!is_resource($process) || $log === false) {
            throw new \RuntimeException('pagewell cannot be started');
        }
        $self = new self($process, $log, $directory);
        while (preg_match('~^control on ~', $line = self::line($pipes[1], $directory)) !== 1) {
            if (preg_match('~^listening on (http://\S+)~', $line, $found) === 1) {
                $self->address = $found[1];
            }
        }
        // php-fpm runs as another user where this is root.
        chmod("$directory/admin.sock", 0777);
        return $self;
    }

    /** Ends it. A page that its audit has found to be wrong is a failure of the test. */
    public function stop(): void
    {
        $found = ($this->visitors?->found() ?? '') . $this->found();
        proc_terminate($this->process);
        proc_close($this->process);
        fclose($this->log);
        exec('rm -rf -- ' . escapeshellarg($this->directory));
        $found === '' || throw new \RuntimeException("A trial or the audit found wrong pages: $found");
    }

    /** The findings of the audit so far: counters, and the lines of the log; nothing if all is right. */
    private function found(): string
    {
        // A page that seems to be wrong is watched for a minute; only then the log names it.
        for ($round = 0; $round < 1200 && ($this->control('GET', '/v1/stats')['audit_watched'] ?? 0) > 0; $round++) {
            $round % 20 === 0 && $this->control('POST', '/v1/clock', '{"advance_ms":61000}');
            usleep(50_000);
        }
        $found = array_intersect_key($this->control('GET', '/v1/stats'), array_flip(self::FOUND));
        $missing = array_diff(self::FOUND, array_keys($found));
        if ($missing !== []) {
            return 'no counters ' . implode(', ', $missing);
        }
        $counters = array_filter($found);
        $lines = preg_grep('~audit-found~', explode("\n", $this->log())) ?: [];
        return $counters === [] ? '' : json_encode($counters) . "\n" . implode("\n", $lines);
    }

    /** @return array<string, mixed> the answer of the control interface; nothing if it is no JSON */
    public function control(string $method, string $path, string $content = ''): array
    {
        $socket = stream_socket_client("unix://{$this->directory}/admin.sock", $errno, $error, 60);
        if ($socket === false) {
            throw new \RuntimeException("the control interface does not answer: $error\n" . $this->log());
        }
        $length = strlen($content);
        fwrite($socket, "$method $path HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: $length\r\n\r\n$content");
        return (array) json_decode(explode("\r\n\r\n", (string) stream_get_contents($socket), 2)[1] ?? '', true);
    }

    /** In a trial, other visitors send the same request. */
    public function visit(string $method, string $path, string ...$lines): void
    {
        $this->visitors?->visit($method, $path, ...$lines);
    }

    public function admin(): string
    {
        return "unix:{$this->directory}/admin.sock";
    }

    /** Where it serves, `http://127.0.0.1:…`. */
    public function address(): string
    {
        return $this->address;
    }

    /**
     * @param string ...$lines further fields of the request
     *
     * @return array{int, array<string, list<string>>, string} status, fields by lower-case name, content
     */
    public function ask(string $method, string $path, string $content = '', string ...$lines): array
    {
        $options = stream_context_create(['http' => [
            'method' => $method, 'ignore_errors' => true, 'follow_location' => 0, 'timeout' => 60, 'content' => $content,
            'header' => ['Content-Type: application/x-www-form-urlencoded', ...$lines],
        ]]);
        $content = file_get_contents($this->address . $path, false, $options);
        $fields = [];
        foreach (array_slice($http_response_header, 1) as $line) {
            [$name, $value] = explode(':', $line, 2);
            $fields[strtolower($name)][] = trim($value);
        }
        $this->visit($method, $path, ...$lines);
        return [(int) explode(' ', $http_response_header[0])[1], $fields, (string) $content];
    }

    /** Returns what it has logged, and PHP with it. */
    public function log(): string
    {
        return (string) file_get_contents("{$this->directory}/log");
    }

    /** Whether this page is a hit now, by Pagewell's own word. It is made and stored if it was not. */
    public function hits(string $path): bool
    {
        return str_contains($this->ask('GET', $path)[1]['cache-status'][0] ?? '', 'hit');
    }

    /**
     * Runs a script in a process of its own, as a cron job would.
     *
     * @param array<string, string> $environment
     *
     * @return array{int, string, string} exit code, what it wrote, what it logged
     */
    public static function command(string $script, array $environment): array
    {
        $run = [PHP_BINARY, '-d', 'log_errors=1', '-d', 'error_log=', '-d', 'display_errors=0', '-r', $script];
        $process = proc_open($run, [1 => ['pipe', 'w'], 2 => ['pipe', 'w']], $pipes, null, $environment + getenv());
        if (!is_resource($process)) {
            throw new \RuntimeException('php cannot be started');
        }
        [$written, $logged] = [(string) stream_get_contents($pipes[1]), (string) stream_get_contents($pipes[2])];
        return [proc_close($process), $written, $logged];
    }

    /** PAGEWELL_BIN, or the newest that cargo has built. */
    public static function binary(): string
    {
        $target = getenv('CARGO_TARGET_DIR') ?: __DIR__ . '/../../../target';
        $built = array_filter([getenv('PAGEWELL_BIN') ?: '', "$target/debug/pagewell", "$target/release/pagewell"], 'is_executable');
        if (getenv('PAGEWELL_BIN') === false) {
            usort($built, static fn (string $one, string $other): int => filemtime($other) <=> filemtime($one));
        }
        return $built === [] ? throw new \RuntimeException('There is no pagewell to test against: cargo build -p pagewell, or set PAGEWELL_BIN.') : reset($built);
    }

    /** @param resource $pipe */
    private static function line($pipe, string $directory): string
    {
        [$ready, $none] = [[$pipe], []];
        $line = stream_select($ready, $none, $none, 60) === 1 ? fgets($pipe) : false;
        return is_string($line) ? $line : throw new \RuntimeException('pagewell did not start: ' . file_get_contents("$directory/log"));
    }
}
