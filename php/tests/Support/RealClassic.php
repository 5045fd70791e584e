<?php

/**
 * nginx in front with the configuration that Pagewell prints, a php-fpm of its own behind it, and the
 * real binary in memcached's place: nobody's answers pass through Pagewell.
 *
 * Everything listens on sockets in a private directory, and is stopped by its process id. Visitors
 * come to nginx's socket.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Support;

final class RealClassic
{
    /** @var list<resource> in the order of their start */
    private array $processes = [];

    private function __construct(public readonly string $directory, private readonly RealPagewell $pagewell)
    {
    }

    /** Starts all three; the scripts of tests/classic find the rest in their parameters. */
    public static function start(string $root): self
    {
        $directory = sys_get_temp_dir() . '/pagewell-classic-' . bin2hex(random_bytes(6));
        mkdir($directory, 0755);
        mkdir("$directory/notes", 0777);
        chmod("$directory/notes", 0777);
        file_put_contents("$directory/pagewell.toml", "[memcached]\nlisten = \"unix:$directory/memcached.sock\"\n");
        $pagewell = RealPagewell::start($root, '--php', "unix:$directory/fpm.sock", '--config', "$directory/pagewell.toml");
        $self = new self($directory, $pagewell);
        $self->startPhp();
        $self->startNginx($root);
        return $self;
    }

    public function stop(): void
    {
        foreach (array_reverse($this->processes) as $process) {
            proc_terminate($process);
            proc_close($process);
        }
        $this->pagewell->stop();
        $left = new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator($this->directory, \FilesystemIterator::SKIP_DOTS), \RecursiveIteratorIterator::CHILD_FIRST);
        foreach ($left as $file) {
            $file->isDir() ? rmdir((string) $file) : unlink((string) $file);
        }
        rmdir($this->directory);
    }

    public function admin(): string
    {
        return $this->pagewell->admin();
    }

    /** What PHP has logged so far. */
    public function log(): string
    {
        return (string) @file_get_contents("{$this->directory}/notes/php.log");
    }

    /** Lets go a script that waits for it: it reads from this pipe. */
    public function release(string $pipe): void
    {
        file_put_contents("{$this->directory}/notes/$pipe", 'go');
    }

    /**
     * @param list<string> $fields
     *
     * @return resource a connection to nginx, the request sent
     */
    public function send(string $method, string $path, array $fields = [])
    {
        $socket = stream_socket_client("unix://{$this->directory}/nginx.sock", timeout: 60);
        if ($socket === false) {
            throw new \RuntimeException('nginx is not there');
        }
        stream_set_timeout($socket, 60);
        fwrite($socket, implode("\r\n", ["$method $path HTTP/1.0", 'Host: localhost', 'Content-Length: 0', ...$fields, '', '']));
        return $socket;
    }

    /**
     * @param list<string> $fields
     *
     * @return array{int, array<string, string>, string} status, fields by lower-case name, content
     */
    public function ask(string $method, string $path, array $fields = []): array
    {
        [$head, $content] = explode("\r\n\r\n", (string) stream_get_contents($this->send($method, $path, $fields)), 2) + ['', ''];
        $lines = explode("\r\n", $head);
        $got = [];
        foreach (array_slice($lines, 1) as $line) {
            [$name, $value] = explode(':', $line, 2);
            $got[strtolower($name)] = trim($value);
        }
        return [(int) explode(' ', $lines[0] . ' 0')[1], $got, $content];
    }

    /** Returns the answer of the memcached port to a line. */
    public function say(string $line): string
    {
        $socket = stream_socket_client("unix://{$this->directory}/memcached.sock", timeout: 60);
        if ($socket === false) {
            throw new \RuntimeException('the memcached port is not there');
        }
        fwrite($socket, "$line\r\n");
        return trim((string) fgets($socket));
    }

    /** Seconds from when a page was stored over the memcached port until it expires; null if it does not. */
    public function lifetime(string $path): ?int
    {
        $socket = stream_socket_client(str_replace('unix:', 'unix://', $this->admin()), timeout: 60);
        if ($socket === false) {
            throw new \RuntimeException('the control interface is not there');
        }
        $asked = json_encode(['url' => $path]);
        fwrite($socket, implode("\r\n", ['POST /v1/explain HTTP/1.0', 'Host: localhost', 'Content-Type: application/json', 'Content-Length: ' . strlen($asked), '', $asked]));
        [, $content] = explode("\r\n\r\n", (string) stream_get_contents($socket), 2) + ['', ''];
        $item = json_decode($content, true, flags: JSON_THROW_ON_ERROR)['memcached'][0];
        return $item['ends_at_ms'] === null ? null : intdiv($item['ends_at_ms'] - $item['stored_at_ms'], 1_000);
    }

    /** @return list<string> the examples of the manual in this language */
    public static function examples(string $language): array
    {
        preg_match_all("~^```$language\n(.*?)^```~ms", (string) file_get_contents(__DIR__ . '/../../../docs/guide/classic-nginx.md'), $found);
        return $found[1];
    }

    private function startPhp(): void
    {
        $users = posix_geteuid() === 0 ? "user = www-data\ngroup = www-data" : '';
        file_put_contents("{$this->directory}/fpm.conf", <<<CONF
            [global]
            error_log = {$this->directory}/fpm.log
            daemonize = no
            [www]
            $users
            listen = {$this->directory}/fpm.sock
            listen.mode = 0666
            pm = static
            pm.max_children = 4
            php_admin_value[error_log] = {$this->directory}/notes/php.log
            php_admin_flag[log_errors] = on
            CONF);
        $binary = self::found('php-fpm' . PHP_MAJOR_VERSION . '.' . PHP_MINOR_VERSION, 'php-fpm');
        $this->run([$binary, '--nodaemonize', '--allow-to-run-as-root', '--fpm-config', "{$this->directory}/fpm.conf"], 'fpm.sock');
    }

    /** The printed configuration, with the lines of the manual that say how changes are published; `?changes=…` says another way, or none (`unset`). */
    private function startNginx(string $root): void
    {
        $print = [RealPagewell::binary(), 'nginx-config', '--server-name', 'localhost', '--memcached', "unix:{$this->directory}/memcached.sock", '--php', "unix:{$this->directory}/fpm.sock", '--root', $root];
        $printed = (string) shell_exec(implode(' ', array_map('escapeshellarg', $print)));
        $manual = strtr(self::examples('nginx')[0], ['CHANGES control' => 'CHANGES $changes', '127.0.0.1:8081' => $this->admin()]);
        $lines = "{$manual}fastcgi_param NOTES {$this->directory}/notes;\nfastcgi_param STORE {$this->directory}/memcached.sock;\n";
        $http = strtr($printed, ['listen 80;' => "listen unix:{$this->directory}/nginx.sock;", 'fastcgi_pass' => "{$lines}fastcgi_pass"]);
        $places = "map \$arg_changes \$changes { '' control; unset ''; default \$arg_changes; }\n";
        foreach (['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'] as $kind) {
            $places .= "{$kind}_temp_path {$this->directory}/$kind;\n";
        }
        $conf = "daemon off;\nmaster_process off;\npid {$this->directory}/nginx.pid;\nerror_log {$this->directory}/nginx.log;\nevents {}\nhttp {\naccess_log off;\n$places$http}\n";
        file_put_contents("{$this->directory}/nginx.conf", $conf);
        $this->run([self::found('nginx'), '-c', "{$this->directory}/nginx.conf"], 'nginx.sock');
    }

    /** @param list<string> $command */
    private function run(array $command, string $socket): void
    {
        $log = fopen("{$this->directory}/started.log", 'a+');
        $process = proc_open($command, [1 => $log, 2 => $log], $pipes);
        if (!is_resource($process)) {
            throw new \RuntimeException("{$command[0]} cannot be started");
        }
        $this->processes[] = $process;
        for ($until = hrtime(true) + 60_000_000_000; @stream_socket_client("unix://{$this->directory}/$socket") === false;) {
            if (hrtime(true) > $until || !proc_get_status($process)['running']) {
                throw new \RuntimeException("{$command[0]} did not start: " . file_get_contents("{$this->directory}/started.log"));
            }
            usleep(1000);
        }
    }

    private static function found(string ...$names): string
    {
        foreach ($names as $name) {
            foreach ([...explode(':', (string) getenv('PATH')), '/usr/sbin', '/usr/local/sbin'] as $directory) {
                if (is_executable("$directory/$name")) {
                    return "$directory/$name";
                }
            }
        }
        throw new \RuntimeException("There is no $names[0] to test with.");
    }
}
