<?php

/**
 * Debian's WordPress with the plugin, in a private directory, on a MariaDB of its own.
 *
 * Each script runs in a process of its own, as requests and jobs do, with its own copy of the options.
 * One that runs as a request gets to say what came before it (`Via`) and which method it has; its
 * address is the system's choice.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Support;

use PHPUnit\Framework\Assert;

final class RealWordPress
{
    use Execution;

    /** Where nobody listens. */
    public const AWAY = '127.0.0.1:1';

    /** For scripts that look into what the plugin remembers. */
    public const JOURNAL = 'use Pagewell\WordPress\Read\Page; use Pagewell\WordPress\Tags; use Pagewell\WordPress\Purge\{Changes, ControlClient, Journal, Pending}; ';

    private const INSTALLED = '/usr/share/wordpress';

    private const REQUEST = "\$_SERVER += ['HTTP_HOST' => 'blog.test', 'REQUEST_URI' => '/', 'SERVER_PROTOCOL' => 'HTTP/1.1', 'REQUEST_METHOD' => 'GET']; require 'wp-load.php'; ";

    /** @param array<string, string> $environment */
    private function __construct(private readonly string $directory, private ?RealMariaDb $database, private array $environment)
    {
    }

    /**
     * One whose first requests are over: what WordPress itself writes with them has changed the site. The test
     * is skipped where there is none.
     *
     * @param list<string> $hosts      of further blogs of a network; none: it is a blog alone
     * @param bool         $isFollowed whether Pagewell reads the changes of its database, and its statements
     */
    public static function settled(array $hosts = [], bool $isFollowed = false): self
    {
        $missing = self::missing();
        if ($missing !== null) {
            Assert::markTestSkipped($missing);
        }
        $blog = self::start(self::AWAY, $isFollowed || self::isFollowed());
        $hosts === [] || $blog->becomeNetwork($hosts);
        $blog->command('');
        $blog->post('');
        return $blog;
    }

    /** Whether PAGEWELL_ARRANGEMENT is `both` or `automatic`, for figures by hand; by default the plugin is alone. */
    public static function isFollowed(): bool
    {
        return in_array(getenv('PAGEWELL_ARRANGEMENT'), ['both', 'automatic'], true);
    }

    /** The programs of WordPress: Debian's, or those in the directory PAGEWELL_WORDPRESS. */
    private static function installed(): string
    {
        return getenv('PAGEWELL_WORDPRESS') ?: self::INSTALLED;
    }

    private static function missing(): ?string
    {
        return match (true) {
            !is_file(self::installed() . '/wp-settings.php') => 'WordPress is not in ' . self::installed(),
            !extension_loaded('mysqli') => 'PHP has no mysqli',
            default => RealMariaDb::missing(),
        };
    }

    /** @param string $control where the plugin looks for the control interface */
    private static function start(string $control, bool $isFollowed): self
    {
        $directory = sys_get_temp_dir() . '/pagewell-wp-' . bin2hex(random_bytes(6));
        mkdir($directory, 0700);
        $password = bin2hex(random_bytes(16));
        $database = new RealMariaDb("CREATE DATABASE wordpress; CREATE USER wordpress@localhost IDENTIFIED BY '$password'; GRANT ALL ON wordpress.* TO wordpress@localhost;"
            . ($isFollowed ? "CREATE USER pagewell@localhost IDENTIFIED BY '$password'; GRANT REPLICATION SLAVE ON *.* TO pagewell@localhost; GRANT SELECT ON wordpress.* TO pagewell@localhost;" : ''), $isFollowed);
        $self = new self($directory, $database, [
            'WP_DB_SOCKET' => $database->socket(), 'WP_DB_PASSWORD' => $password, 'PAGEWELL_ADMIN' => $control,
        ]);
        $isFollowed && file_put_contents("$directory/pagewell.toml", "[[database]]\nurl = \"mysql://pagewell:$password@localhost/wordpress?socket={$database->socket()}\"\n[automatic]\nenabled = true\napplication = \"wordpress\"\n");
        $isFollowed && chmod("$directory/pagewell.toml", 0600);
        $self->layOut(__DIR__ . '/../../wordpress');
        $self->run([...$self->php(), __DIR__ . '/../../wordpress/tests/site/install.php']);
        return $self;
    }

    public function stop(): void
    {
        $this->database = null;
        self::execute(['rm', '-rf', '--', $this->directory]);
    }

    /**
     * Runs a script in WordPress, as a command.
     *
     * @return string what it prints
     */
    public function command(string $script): string
    {
        return $this->run([...$this->php(), '-d', 'error_log=/dev/null', '-r', self::REQUEST . $script]);
    }

    /**
     * Runs a script in WordPress as the answer to a POST that came through Pagewell: from Pagewell itself, or
     * from a web server that passes on what the request says of that.
     *
     * @return array{string, string} its content, and the value of Cache-Group-Invalidation
     */
    public function post(string $script, bool $fromItself = true): array
    {
        $given = $fromItself ? "\$_SERVER['SERVER_SOFTWARE'] = 'pagewell/0.1.0'; " : '';
        file_put_contents("{$this->directory}/site/ask.php", "<?php $given" . self::REQUEST . $script);
        [$content, $fields] = PlainServer::ask("{$this->directory}/site", $this->environment, 'POST', '/ask.php', 'Host: blog.test', 'Via: 1.1 pagewell');
        return [$content, implode(', ', $fields['cache-group-invalidation'] ?? [])];
    }

    /** @return array{string, array<string, list<string>>, int} a page that is requested past Pagewell, as of PlainServer::ask() */
    public function plain(string $path, string ...$lines): array
    {
        return PlainServer::ask("{$this->directory}/site", $this->environment, 'GET', $path, 'Host: blog.test', ...$lines);
    }

    /** @return list<string> the first column of a query past everything that WordPress may remember */
    public function rows(string $query): array
    {
        $mysqli = new \mysqli('localhost', 'wordpress', $this->environment['WP_DB_PASSWORD'], 'wordpress', 0, $this->environment['WP_DB_SOCKET']);
        $result = $mysqli->query($query);
        return $result instanceof \mysqli_result ? array_column($result->fetch_all(), 0) : [];
    }

    /**
     * Converts it to a network, with this blog as the first one.
     *
     * @param list<string> $hosts of further blogs: numbers 2, 3 …
     */
    private function becomeNetwork(array $hosts): void
    {
        $this->command("require ABSPATH . 'wp-admin/includes/upgrade.php'; foreach (\$wpdb->tables('ms_global') as \$name => \$table) { \$wpdb->\$name = \$table; }"
            . " install_network(); populate_network(1, 'blog.test', 'admin@blog.test', 'Harbours', '/', true);");
        $this->environment['WP_NETWORK'] = '1';
        foreach ($hosts as $host) {
            $this->command("\$made = wp_insert_site(['domain' => '$host', 'path' => '/', 'network_id' => 1, 'user_id' => 1]); is_int(\$made) || exit(1);");
        }
    }

    /** @return list<string> what the plugin could not tell yet, in order */
    public function pending(): array
    {
        $tags = json_decode($this->command(self::JOURNAL . 'echo json_encode(Journal::pending()->tags);'), true);
        sort($tags);
        return $tags;
    }

    /** The plugin remembers nothing, and nobody listens where it looks. */
    public function forget(): void
    {
        $this->control(self::AWAY);
        $this->command("wp_clear_scheduled_hook('pagewell_retry');");
        $this->rows("DELETE FROM wp_options WHERE option_name LIKE 'pagewell%'");
    }

    /**
     * Starts Pagewell in front of it, with a php-fpm that may run as another user. Changes are sent
     * from now on.
     */
    public function behind(): RealPagewell
    {
        chmod($this->directory, 0755);
        $environment = [];
        foreach (array_diff_key($this->environment, ['PAGEWELL_ADMIN' => true]) as $name => $value) {
            array_push($environment, '--php-env', "$name=$value");
        }
        is_file("{$this->directory}/pagewell.toml") && array_push($environment, '--config', "{$this->directory}/pagewell.toml");
        $pagewell = RealPagewell::start("{$this->directory}/site", ...$environment);
        $this->control($pagewell->admin());
        return $pagewell;
    }

    /** Where the plugin looks from here on; without a word about it if it is empty. */
    public function control(string $address): void
    {
        $this->environment['PAGEWELL_ADMIN'] = $address;
    }

    /** A plugin of the site, always on, as the only one beside Pagewell's; none, if it is empty. */
    public function plugin(string $code): void
    {
        $plugins = "{$this->directory}/site/wp-content/mu-plugins";
        array_map('unlink', glob("$plugins/tested-*.php") ?: []);
        // Another name each time: PHP may keep what it has compiled.
        file_put_contents("$plugins/tested-" . bin2hex(random_bytes(6)) . '.php', "<?php $code");
    }

    /** Lays a plugin or a theme of others beside Pagewell's, from its directory; it is not active yet. */
    public function add(string $directory, string $kind = 'plugins'): void
    {
        self::execute(['cp', '-r', $directory, "{$this->directory}/site/wp-content/$kind/"]);
    }

    /** From here on its object cache is outside of the process. */
    public function cacheOutside(RealMemcached|RealRedis $server): void
    {
        $this->environment[$server instanceof RealRedis ? 'WP_REDIS' : 'WP_MEMCACHED'] = $server->socket();
        copy(__DIR__ . '/../../wordpress/tests/site/object-cache.php', "{$this->directory}/site/wp-content/object-cache.php");
    }

    private function layOut(string $plugin): void
    {
        $site = "{$this->directory}/site";
        mkdir("{$this->directory}/compiled");
        foreach (['', '/wp-content', '/wp-content/plugins', '/wp-content/mu-plugins'] as $part) {
            mkdir("$site$part");
        }
        // WordPress looks for its configuration beside its programs: they are copied.
        foreach (array_diff(glob(self::installed() . '/*.php') ?: [], [self::installed() . '/wp-config.php']) as $program) {
            copy($program, $site . '/' . basename($program));
        }
        self::execute(['cp', '-r', self::installed() . '/wp-admin', "$site/wp-admin"]);
        symlink(self::installed() . '/wp-includes', "$site/wp-includes");
        symlink(self::installed() . '/wp-content/themes', "$site/wp-content/themes");
        getenv('PAGEWELL_ARRANGEMENT') === 'automatic' || BuiltPlugin::install('wordpress', "$site/wp-content/plugins");
        copy("$plugin/tests/site/wp-config.php", "$site/wp-config.php");
        copy("$plugin/tests/site/quiet.php", "$site/wp-content/mu-plugins/quiet.php");
    }

    /** @return list<string> PHP for commands: what one has compiled, the next need not. Without OPcache the options have no effect. */
    private function php(): array
    {
        return [PHP_BINARY, '-d', 'opcache.enable_cli=1', '-d', 'opcache.file_cache_only=1', '-d', "opcache.file_cache={$this->directory}/compiled"];
    }

    /** @param list<string> $command */
    private function run(array $command): string
    {
        return self::execute($command, "{$this->directory}/site", $this->environment);
    }
}
