<?php

/**
 * The module within Drupal: after each change, every page is the same as Drupal would render it at that moment, and no
 * page of the administrator is given to a stranger.
 *
 * Drupal is in no package of Debian. So a project with its `vendor` and `web` is given by a path; its sites, and modules
 * other than the core's, are not used:
 *
 *     PAGEWELL_DRUPAL=/path/to/project SHOW=1 phpunit --configuration php --filter DrupalSiteTest
 *
 * Without it, the test is skipped, and says so. DrupalTest.php tests the module with stand-ins for Drupal.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Drupal;

use Pagewell\Tests\Support\BlogPages;
use Pagewell\Tests\Support\PageComparison;
use Pagewell\Tests\Support\RealMariaDb;
use Pagewell\Tests\Support\RealPagewell;
use PHPUnit\Framework\TestCase;

final class DrupalSiteTest extends TestCase
{
    /** Purged pages ÷ changed pages: Drupal's own tags decide. */
    private const RATIO_MAX = 1.5;

    private const PAGES = ['/', '/node/1', '/node/2', '/node/3', '/taxonomy/term/1', '/taxonomy/term/1/feed', '/rss.xml', '/user/password', '/contact', '/filter/tips', '/no-such-page'];

    private const CHANGES = [
        'a title' => '$node(1)->setTitle("Late ferries")->save();',
        'a text' => '$n = $node(2); $n->set("body", "It flew."); $n->save();',
        'a new article' => '$s("node")->create(["type" => "article", "title" => "A seal", "uid" => 1, "promote" => 1, "field_tags" => [1]])->save();',
        'it is not published' => '$node(4)->setUnpublished()->save();',
        'it is published' => '$node(4)->setPublished()->save();',
        'it leaves the front page' => '$node(4)->setPromoted(false)->save();',
        'it sticks' => '$node(1)->setSticky(true)->save();',
        'it has another tag' => '$n = $node(2); $n->set("field_tags", [1]); $n->save();',
        'a tag has another name' => '$s("taxonomy_term")->load(1)->setName("Boats")->save();',
        'a tag has a text' => '$s("taxonomy_term")->load(1)->setDescription("All of them.")->save();',
        'a comment' => '$s("comment")->create(["entity_type" => "node", "entity_id" => 1, "field_name" => "comment", "comment_type" => "comment", "subject" => "Good", "comment_body" => "Yes.", "uid" => 1, "status" => 1])->save();',
        'a comment waits' => '$c = $s("comment")->load(1); $c->setUnpublished(); $c->save();',
        'a comment goes' => '$s("comment")->load(1)->delete();',
        'an author has another name' => '$s("user")->load(1)->setUsername("Ada")->save();',
        'an author has another address' => '$s("user")->load(1)->setEmail("ada@blog.test")->save();',
        'a link of the menu' => '$s("menu_link_content")->create(["title" => "Gulls", "link" => ["uri" => "internal:/node/2"], "menu_name" => "main"])->save();',
        'it goes' => '$s("menu_link_content")->load(1)->delete();',
        'another address' => '$s("path_alias")->create(["path" => "/node/2", "alias" => "/gull", "langcode" => "en"])->save();',
        'the site has another name' => '\Drupal::configFactory()->getEditable("system.site")->set("name", "The Harbour")->save();',
        'a block goes' => '$s("block")->load("olivero_powered")->delete();',
        'how many on the front page' => '$v = $s("view")->load("frontpage"); $d = &$v->getDisplay("default"); $d["display_options"]["pager"]["options"]["items_per_page"] = 2; $v->save();',
        'how tags are shown' => '$s("entity_view_display")->load("node.article.default")->removeComponent("field_tags")->save();',
        'a kind of article' => '$s("node_type")->load("article")->set("display_submitted", false)->save();',
        'a file of the theme' => '\Drupal::configFactory()->getEditable("olivero.settings")->set("base_primary_color", "#112233")->save();',
        'visitors may not see articles' => '$s("user_role")->load("anonymous")->revokePermission("access content")->save();',
        'and may' => '$s("user_role")->load("anonymous")->grantPermission("access content")->save();',
        'an article goes' => '$node(3)->delete();',
        'the caches are cleared' => 'drupal_flush_all_caches();',
    ];

    private const FILL = 'foreach (["Ships", "Birds"] as $t) { $s("taxonomy_term")->create(["vid" => "tags", "name" => $t])->save(); } foreach (["The ferry" => 1, "A gull" => 2, "A tug" => 1] as $title => $tag) { $s("node")->create(["type" => "article", "title" => $title, "body" => "All about it.", "uid" => 1, "promote" => 1, "created" => 1770000000 + 100 * $tag, "field_tags" => [$tag]])->save(); }'
        . ' \Drupal::configFactory()->getEditable("system.performance")->set("cache.page.max_age", 3600)->save();';

    private string $directory = '';

    private string $settings = '';

    /** @var array<string, string> */
    private array $environment = [];

    public function testAfterEachChangeAllPagesAreAsDrupalMakesThem(): void
    {
        $project = (string) getenv('PAGEWELL_DRUPAL');
        if (!is_file("$project/web/core/lib/Drupal.php") || !is_file("$project/vendor/autoload.php")) {
            self::markTestSkipped('PAGEWELL_DRUPAL is no project with web/core and vendor');
        }
        $missing = RealMariaDb::missing();
        $missing === null || self::markTestSkipped($missing);
        $password = bin2hex(random_bytes(16));
        $database = new RealMariaDb("CREATE DATABASE drupal; CREATE USER drupal@localhost IDENTIFIED BY '$password'; GRANT ALL ON drupal.* TO drupal@localhost;");
        $this->directory = sys_get_temp_dir() . '/pagewell-drupal-' . bin2hex(random_bytes(6));
        $this->layOut($project, ['database' => 'drupal', 'username' => 'drupal', 'password' => $password, 'host' => 'localhost', 'unix_socket' => $database->socket(), 'driver' => 'mysql', 'prefix' => '']);
        $pagewell = null;
        try {
            $this->install();
            $this->environment = ['PAGEWELL_ADMIN' => '127.0.0.1:1'];
            $this->command(self::FILL);
            $pagewell = RealPagewell::start("{$this->directory}/web");
            $this->environment = ['PAGEWELL_ADMIN' => $pagewell->admin()];
            $pages = new BlogPages($pagewell, self::withoutIds(...));
            array_map($pages->ask(...), self::PAGES);
            $this->compare(new PageComparison($pages, self::PAGES));
            $this->compareAfterAdministrator($pages, $pagewell);
        } finally {
            $pagewell?->stop();
            chmod("{$this->directory}/web/sites/default", 0755);
            exec('rm -rf -- ' . escapeshellarg($this->directory));
        }
    }

    private function compare(PageComparison $all): void
    {
        foreach (self::CHANGES as $name => $script) {
            [$purged, $changed, $old, $unstored] = array_map(count(...), [$all->purged, $all->changed, $all->old, $all->unstored]);
            $this->command($script);
            $all->after($name);
            getenv('SHOW') && fwrite(STDERR, sprintf("%3d purged %3d changed %3d old  %s\n", count($all->purged) - $purged, count($all->changed) - $changed, count($all->old) - $old, $name) . implode("\n", [...array_slice($all->old, $old), ...array_slice($all->unstored, $unstored), '']));
        }
        getenv('SHOW') && fwrite(STDERR, $all->report());
        self::assertSame([], $all->old, 'no page is old');
        self::assertSame([], array_values(preg_grep('/fwd-status=40[34]/', $all->unstored, PREG_GREP_INVERT)), 'all are stored');
        self::assertLessThan(self::RATIO_MAX, $all->ratio(), $all->report());
    }

    private function compareAfterAdministrator(BlogPages $pages, RealPagewell $pagewell): void
    {
        $link = $this->command('echo user_pass_reset_url($s("user")->load(1)) . "/login";');
        [, $fields] = $pagewell->ask('GET', (string) parse_url($link, PHP_URL_PATH), '', 'Host: blog.test');
        $cookie = 'Cookie: ' . explode(';', $fields['set-cookie'][0] ?? '')[0];
        $isOwn = 0;
        foreach (self::PAGES as $path) {
            $pages->ask($path, 'PURGE');
            [$own, $how] = $pages->ask($path, 'GET', $cookie);
            self::assertStringNotContainsString('stored', $how, $path);
            $shown = $pages->ask($path)[0];
            $pages->ask($path, 'PURGE');
            self::assertSame($pages->ask($path)[0], $shown, "$path after the administrator");
            $isOwn += (int) ($own !== $shown);
        }
        self::assertGreaterThan(0, $isOwn, 'the administrator gets pages of their own');
    }

    /** @param array<string, string> $connection */
    private function layOut(string $project, array $connection): void
    {
        $php = (string) realpath(__DIR__ . '/../..');
        $web = "{$this->directory}/web";
        mkdir("$web/sites/default/files", 0777, true);
        chmod("$web/sites/default/files", 0777);
        // Drupal finds its root from the real paths of its files: they are linked, or copied.
        foreach (['vendor', 'web/core', 'web/index.php'] as $part) {
            exec('cp -rl ' . escapeshellarg("$project/$part") . ' ' . escapeshellarg("{$this->directory}/$part") . ' 2>&1 || cp -r ' . escapeshellarg("$project/$part") . ' ' . escapeshellarg(dirname("{$this->directory}/$part")));
        }
        copy("$project/web/core/assets/scaffold/files/default.settings.php", "$web/sites/default/default.settings.php");
        mkdir("$web/modules");
        symlink("$php/drupal/pagewell", "$web/modules/pagewell");
        file_put_contents("$web/autoload.php", "<?php require_once '$php/client/autoload.php'; return require __DIR__ . '/../vendor/autoload.php';");
        $this->settings = '<?php $databases["default"]["default"] = ' . var_export($connection + ['namespace' => 'Drupal\\mysql\\Driver\\Database\\mysql', 'autoload' => 'core/modules/mysql/src/Driver/Database/mysql/'], true) . '; $settings["hash_salt"] = "salt"; $settings["config_sync_directory"] = "sites/default/files/sync"; $settings["skip_permissions_hardening"] = true; $settings["trusted_host_patterns"] = ["^blog\\.test$"];';
        file_put_contents("$web/sites/default/settings.php", $this->settings);
    }

    private function install(): void
    {
        $this->php('require_once "core/includes/install.core.inc"; install_drupal(require "autoload.php", ["interactive" => false, "site_path" => "sites/default", "parameters" => ["profile" => "standard", "langcode" => "en"], "forms" => ["install_configure_form" => ["site_name" => "Harbour", "site_mail" => "a@blog.test", "account" => ["name" => "admin", "mail" => "a@blog.test", "pass" => ["pass1" => "secret", "pass2" => "secret"]], "enable_update_status_module" => null, "enable_update_status_emails" => null]]]);');
        // The installer has written a connection without the socket.
        chmod("{$this->directory}/web/sites/default", 0755);
        chmod("{$this->directory}/web/sites/default/settings.php", 0644);
        file_put_contents("{$this->directory}/web/sites/default/settings.php", $this->settings);
        $this->command('\Drupal::service("module_installer")->install(["pagewell"]);');
        exec('chmod -R a+rwX ' . escapeshellarg("{$this->directory}/web/sites/default/files"));
    }

    /** Runs a script in Drupal, as drush would. */
    private function command(string $script): string
    {
        return $this->php('$autoload = require "autoload.php"; $request = Symfony\Component\HttpFoundation\Request::create("http://blog.test/"); $kernel = Drupal\Core\DrupalKernel::createFromRequest($request, $autoload, "prod"); $kernel->boot(); $kernel->preHandle($request);'
            . ' $s = fn ($type) => \Drupal::entityTypeManager()->getStorage($type); $node = fn ($id) => $s("node")->load($id); ' . $script);
    }

    private function php(string $script): string
    {
        $process = proc_open([PHP_BINARY, '-d', 'memory_limit=512M', '-d', 'display_errors=stderr', '-r', $script], [1 => ['pipe', 'w'], 2 => ['pipe', 'w']], $pipes, "{$this->directory}/web", $this->environment + getenv());
        [$printed, $faults] = is_resource($process) ? [(string) stream_get_contents($pipes[1]), (string) stream_get_contents($pipes[2])] : ['', ''];
        return is_resource($process) && proc_close($process) === 0 ? $printed : throw new \RuntimeException("$script: $printed$faults");
    }

    /** Numbers that Drupal makes up for each page, and for each clearing of its caches. */
    private static function withoutIds(string $content): string
    {
        return (string) preg_replace(['/form-[\w-]{43}/', '/--[\w-]{11}(?=")/', '/[?&](?:amp;)?[a-z0-9]{6}(?=")/', '/\b(?:css|js)_[\w-]{43}\b/', '/js-view-dom-id-[0-9a-f]{64}/'], 'id', $content);
    }
}
