<?php

/**
 * Debian's MediaWiki with the extension, in a private directory, on SQLite.
 *
 * MediaWiki finds its settings beside the script that runs, so the scripts are copied and the large
 * directories linked. Commands run in processes of their own.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Support;

use PHPUnit\Framework\Assert;

final class RealMediaWiki
{
    public const HOST = 'wiki.test';

    private const INSTALLED = '/usr/share/mediawiki';

    private const LINKED = ['includes', 'languages', 'vendor', 'resources', 'maintenance', 'skins', 'extensions-core'];

    private function __construct(private readonly string $directory)
    {
    }

    /** One that is installed. The test is skipped if there is no MediaWiki. */
    public static function start(): self
    {
        if (!is_file(self::INSTALLED . '/index.php') || !extension_loaded('pdo_sqlite')) {
            Assert::markTestSkipped('MediaWiki is not in ' . self::INSTALLED . ', or PHP has no pdo_sqlite');
        }
        $self = new self(sys_get_temp_dir() . '/pagewell-mw-' . bin2hex(random_bytes(6)));
        $self->layOut();
        $self->maintain('install.php', '', '--dbtype=sqlite', "--dbpath={$self->directory}/db", '--server=http://' . self::HOST, '--scriptpath=', "--confpath={$self->root()}", '--pass=secret-of-admin-1', 'A wiki', 'Admin');
        // MediaWiki notes in its temporary directory which jobs wait.
        $settings = "\$wgJobRunRate = 0;\n\$wgTmpDirectory = '{$self->directory}/tmp';\n\$wgCacheDirectory = '{$self->root()}/cache';\nwfLoadExtension( 'Pagewell', " . var_export("{$self->root()}/extensions/Pagewell/extension.json", true) . " );\n"
            // Not a script: PHP may keep what it has compiled.
            . "eval( file_get_contents( '{$self->directory}/settings' ) );\n";
        file_put_contents("{$self->root()}/LocalSettings.php", $settings, FILE_APPEND);
        $self->set('');
        // php-fpm may run as another user, and needs the wiki's files.
        $self->execute(['chmod', '-R', 'a+rwX', $self->directory]);
        return $self;
    }

    public function stop(): void
    {
        $this->execute(['rm', '-rf', '--', $this->directory]);
    }

    /** Replaces the settings of the test, which are PHP. */
    public function set(string $settings): void
    {
        file_put_contents("{$this->directory}/settings", $settings);
    }

    /** Starts Pagewell in front of it. */
    public function behind(): RealPagewell
    {
        return RealPagewell::start($this->root(), '--php-env', "MW_INSTALL_PATH={$this->root()}");
    }

    /**
     * Requests a page past Pagewell, from another web server.
     *
     * @return array{string, array<string, list<string>>, int} as PlainServer::ask()
     */
    public function plain(string $path, string ...$lines): array
    {
        return PlainServer::ask($this->root(), ['MW_INSTALL_PATH' => $this->root()], 'GET', $path, 'Host: ' . self::HOST, ...$lines);
    }

    /** Writes a page, by a command. */
    public function edit(string $title, string $text): void
    {
        $this->maintain('edit.php', $text, '-u', 'Admin', $title);
    }

    /** Runs a script in MediaWiki, as a command; returns what it prints. */
    public function command(string $script): string
    {
        file_put_contents("{$this->root()}/command.php", "<?php require __DIR__ . '/maintenance/Maintenance.php'; class OfTheTest extends Maintenance { public function execute() { $script } } \$maintClass = OfTheTest::class; require RUN_MAINTENANCE_IF_MAIN;");
        return $this->execute([...$this->php(), "{$this->root()}/command.php"]);
    }

    /** Runs a script of MediaWiki with an input; returns what it prints, with its errors. */
    public function maintain(string $script, string $input, string ...$arguments): string
    {
        return $this->execute([...$this->php(), "{$this->root()}/maintenance/$script", ...array_values($arguments)], $input);
    }

    /** Ends the pauses between jobs. */
    public function forgetPauses(): void
    {
        array_map('unlink', glob("{$this->directory}/tmp/*.json") ?: []);
    }

    /** @return list<array<string, mixed>> the parameters of the jobs that nobody has claimed */
    public function jobs(): array
    {
        $database = new \PDO("sqlite:{$this->directory}/db/my_wiki_jobqueue.sqlite");
        $rows = $database->query("SELECT job_params FROM job WHERE job_cmd = 'pagewellInvalidate' AND job_token = ''")->fetchAll(\PDO::FETCH_COLUMN);
        return array_map(static fn (string $row): array => unserialize($row), $rows);
    }

    /** How many jobs a process has claimed, and not finished. */
    public function claimed(): int
    {
        $database = new \PDO("sqlite:{$this->directory}/db/my_wiki_jobqueue.sqlite");
        return (int) $database->query("SELECT COUNT(*) FROM job WHERE job_cmd = 'pagewellInvalidate' AND job_token != ''")->fetchColumn();
    }

    private function root(): string
    {
        return "{$this->directory}/root";
    }

    /** @return list<string> PHP for commands, with what one has compiled for the next; errors are printed as in a log */
    private function php(): array
    {
        return [PHP_BINARY, '-d', 'error_log=', '-d', 'log_errors=1', '-d', 'display_errors=0', '-d', 'opcache.enable_cli=1', '-d', 'opcache.file_cache_only=1', '-d', "opcache.file_cache={$this->directory}/compiled"];
    }

    private function layOut(): void
    {
        foreach (['', '/db', '/tmp', '/compiled', '/root', '/root/extensions', '/root/images', '/root/cache'] as $part) {
            mkdir("{$this->directory}$part", 0755);
        }
        foreach (array_diff(glob(self::INSTALLED . '/*.php') ?: [], [self::INSTALLED . '/LocalSettings.php']) as $program) {
            copy($program, $this->root() . '/' . basename($program));
        }
        foreach (self::LINKED as $name) {
            symlink(self::INSTALLED . "/$name", "{$this->root()}/$name");
        }
        foreach (glob(self::INSTALLED . '/extensions-core/*') ?: [] as $extension) {
            symlink($extension, $this->root() . '/extensions/' . basename($extension));
        }
        BuiltPlugin::install('mediawiki', "{$this->root()}/extensions");
    }

    /** @param list<string> $command */
    private function execute(array $command, string $input = ''): string
    {
        $files = [tmpfile(), tmpfile()];
        fwrite($files[0], $input);
        rewind($files[0]);
        $process = proc_open($command, [0 => $files[0], 1 => $files[1], 2 => $files[1]], $pipes, null, ['MW_INSTALL_PATH' => $this->root()] + getenv());
        $code = is_resource($process) ? proc_close($process) : 1;
        rewind($files[1]);
        $printed = (string) stream_get_contents($files[1]);
        return $code === 0 ? $printed : throw new \RuntimeException("{$command[0]}: $printed");
    }
}
