<?php

/**
 * Changes that the WordPress plugin could not send: they are stored, sent with the next ones, and
 * deleted only after that. In Debian's WordPress, in concurrent processes, on a real database.
 */

declare(strict_types=1);

namespace Pagewell\Tests\WordPress;

use Pagewell\Tests\Support\HasBlog;
use Pagewell\Tests\Support\RealPagewell;
use Pagewell\Tests\Support\RealWordPress;
use PHPUnit\Framework\TestCase;

final class WordPressTest extends TestCase
{
    use HasBlog;

    private const JOURNAL = RealWordPress::JOURNAL;

    public function testWhatAnotherProcessKeepsMeanwhileStays(): void
    {
        $this->change('post:1');
        // A write carries post:1; while it runs a job cannot tell of post:2; then the write ends.
        [$left, $carried] = self::$blog->post(
            "get_option('pagewell_pending'); do_action('pagewell_changed', 'post:9');"
            . $this->beside('post:2') . self::JOURNAL . "do_action('shutdown'); echo implode(' ', Journal::pending()->tags);",
        );
        self::assertSame('"post:9", "post:1"', $carried);
        self::assertSame('post:2', $left);
        self::assertSame('"post:10", "post:2"', self::$blog->post("do_action('pagewell_changed', 'post:10');")[1]);
        self::assertSame([], self::$blog->pending());
    }

    public function testViaThatAnybodyCanWriteIsNotEnough(): void
    {
        $this->change('post:1');
        // Nobody may have read this answer: it is kept, and what was kept before stays.
        self::assertSame('"post:2", "post:1"', self::$blog->post("do_action('pagewell_changed', 'post:2');", fromItself: false)[1]);
        self::assertSame(['post:1', 'post:2'], self::$blog->pending());
        $pagewell = RealPagewell::start(__DIR__ . '/../../tests/behind');
        try {
            self::$blog->control($pagewell->admin());
            self::$blog->post("do_action('pagewell_changed', 'post:3');", fromItself: false);
            self::assertSame([], self::$blog->pending());
            self::assertSame('control 3', self::$blog->command(self::JOURNAL . '$last = Journal::recent()[0]; echo "$last[way] $last[count]";'));
        } finally {
            $pagewell->stop();
        }
    }

    public function testWhereNoControlInterfaceIsNamedTheAnswerHasToDo(): void
    {
        self::$blog->control('');
        self::assertSame('"post:2"', self::$blog->post("do_action('pagewell_changed', 'post:2');", fromItself: false)[1]);
        self::assertSame([], self::$blog->pending());
    }

    public function testWhereTheControlInterfaceIsSwitchedOffTheNextAnswerCarriesEverything(): void
    {
        self::$blog->control('off');
        $this->change('post:1');
        self::assertSame('false', self::$blog->command("echo json_encode(wp_next_scheduled('pagewell_retry'));"), 'nothing to try');
        self::assertSame(['written', '"post:2", "post:1"'], self::$blog->post("do_action('pagewell_changed', 'post:2'); echo 'written';", fromItself: false));
        self::assertSame([], self::$blog->pending());
    }

    public function testTwoThatKeepAtOnceKeepBoth(): void
    {
        // Both have loaded their options before either keeps.
        self::$blog->command(self::JOURNAL . "get_option('pagewell_pending'); " . $this->beside('post:2') . "Journal::keep(['post:1']);");
        self::assertSame(['post:1', 'post:2'], self::$blog->pending());
    }

    public function testWhatChangesAgainWhileItIsToldIsToldAgain(): void
    {
        $this->change('post:1');
        self::$blog->command(self::JOURNAL . '$read = Journal::pending(); ' . $this->beside('post:1') . "Journal::sent('control', ['post:1'], \$read);");
        self::assertSame(['post:1'], self::$blog->pending());
    }

    public function testAnAnswerThatCarriesMoreAsTheRequestEndsStillSaysWhatItSaidBefore(): void
    {
        $later = "add_action('shutdown', fn () => do_action('pagewell_changed', 'post:2'), 0); ob_start(); do_action('pagewell_changed', 'post:1');";
        self::assertSame('"post:1", "post:2"', self::$blog->post($later)[1]);
    }

    public function testWhatAnEarlierVersionKeptIsToldUnlessItIsWrittenAnewMeanwhile(): void
    {
        self::$blog->command("update_option('pagewell_pending', ['at' => 1, 'tags' => ['post:1']], true);");
        $again = "update_option('pagewell_pending', ['at' => 2, 'tags' => ['post:1', 'post:2']], true);";
        self::$blog->command(self::JOURNAL . "\$read = Journal::pending(); $again Journal::sent('control', ['post:1'], \$read);");
        self::assertSame(['post:1', 'post:2'], self::$blog->pending());
        self::assertSame('"post:9", "post:1", "post:2"', self::$blog->post("do_action('pagewell_changed', 'post:9');")[1]);
        self::assertSame('false', self::$blog->command("echo json_encode(get_option('pagewell_pending'));"));
    }

    public function testManyRowsBecomeOneThatSaysEverything(): void
    {
        self::$blog->command(self::JOURNAL . 'for ($id = 1; $id <= 100; $id++) { Journal::keep(["post:$id"]); }');
        self::assertCount(100, self::$blog->pending());
        $this->change('post:101');
        self::assertSame(['site'], self::$blog->pending());
        $this->change('post:102');
        self::assertSame(['post:102', 'site'], self::$blog->pending());
    }

    public function testARowThatCannotBeReadSaysEverything(): void
    {
        self::$blog->rows("INSERT INTO wp_options (option_name, option_value, autoload) VALUES ('pagewell_pending_broken', 'a:2:{broken', 'no')");
        self::assertSame(['site'], self::$blog->pending());
        self::$blog->post("do_action('pagewell_changed', 'post:1');");
        self::assertSame([], self::$blog->pending());
    }

    public function testNoRowIsLoadedWithEachPage(): void
    {
        $this->change('post:1');
        self::assertSame([], self::$blog->rows("SELECT option_name FROM wp_options WHERE option_name LIKE 'pagewell%' AND autoload NOT IN ('no', 'off')"));
    }

    public function testWhatIsTooLongForAHeaderSectionIsEverything(): void
    {
        [, $value] = self::$blog->post("for (\$n = 0; \$n < 900; \$n++) { do_action('pagewell_changed', str_repeat('x', 300) . \$n); }");
        self::assertStringContainsString('"site"', $value);
        self::assertLessThan(70_000, strlen($value));
    }

    public function testAJobTellsItAgainAndTriesAnewForAsLongAsNobodyAnswers(): void
    {
        $this->change('post:1');
        $retry = "wp_clear_scheduled_hook('pagewell_retry'); wp_schedule_single_event(time() - 1, 'pagewell_retry'); define('DOING_CRON', true);"
            . "foreach (wp_get_ready_cron_jobs() as \$at => \$hooks) { if (isset(\$hooks['pagewell_retry'])) { wp_unschedule_event(\$at, 'pagewell_retry'); do_action_ref_array('pagewell_retry', []); } }";
        self::$blog->command($retry);
        self::assertSame(['post:1'], self::$blog->pending());
        self::assertSame('1', self::$blog->command("echo (int) (bool) wp_next_scheduled('pagewell_retry');"));
        $pagewell = RealPagewell::start(__DIR__ . '/../../tests/behind');
        try {
            self::$blog->control($pagewell->admin());
            self::$blog->command($retry);
            self::assertSame([], self::$blog->pending());
            self::assertSame('control', self::$blog->command(self::JOURNAL . 'echo Journal::recent()[0]["way"];'));
        } finally {
            $pagewell->stop();
        }
    }

    public function testAnAddressThatDoesNotAnswerIsNotTriedWithEachPageOfTheAdministration(): void
    {
        $this->change('post:1');
        $tried = "SELECT option_value FROM wp_options WHERE option_name = 'pagewell_tried'";
        self::$blog->rows("UPDATE wp_options SET option_value = option_value - 30 WHERE option_name = 'pagewell_tried'");
        $before = self::$blog->rows($tried);
        self::$blog->command("do_action('admin_init');");
        self::assertSame($before, self::$blog->rows($tried));
        self::$blog->rows("UPDATE wp_options SET option_value = option_value - 30 WHERE option_name = 'pagewell_tried'");
        self::$blog->command("do_action('admin_init');");
        self::assertGreaterThan($before, self::$blog->rows($tried));
    }

    public function testNothingIsLeftWhenThePluginIsDeleted(): void
    {
        self::$blog->command("update_option('pagewell_pending', ['at' => 1, 'tags' => ['post:1']], true);");
        $this->change('post:2');
        self::$blog->post("do_action('pagewell_changed', 'post:3');");
        $this->change('post:4');
        self::assertCount(3, self::$blog->rows("SELECT option_name FROM wp_options WHERE option_name LIKE 'pagewell%'"));
        self::$blog->command("define('WP_UNINSTALL_PLUGIN', 'pagewell/pagewell.php'); require WP_PLUGIN_DIR . '/pagewell/uninstall.php';");
        self::assertSame([], self::$blog->rows("SELECT option_name FROM wp_options WHERE option_name LIKE 'pagewell%'"));
        self::assertSame('false', self::$blog->command("echo json_encode(wp_next_scheduled('pagewell_retry'));"));
    }

    public function testADatabaseThatCannotBeWrittenToHoldsNothingUp(): void
    {
        self::$blog->rows("INSERT INTO wp_options (option_name, option_value, autoload) SELECT CONCAT('pagewell_pending_', seq), 'a:1:{s:4:\"tags\";a:1:{i:0;s:6:\"post:1\";}}', 'no' FROM (WITH RECURSIVE numbers (seq) AS (SELECT 1 UNION ALL SELECT seq + 1 FROM numbers WHERE seq < 250) SELECT seq FROM numbers) AS numbers");
        $readOnly = "set_time_limit(10); global \$wpdb; \$wpdb->show_errors(); \$wpdb->query('SET SESSION TRANSACTION READ ONLY'); ";
        $removed = self::$blog->command($readOnly . self::JOURNAL . "\$wpdb->show_errors(); ob_start(); Journal::remove(); \$printed = ob_get_clean(); echo str_contains(\$printed, 'pagewell_pending') ? \$printed : 'removed';");
        self::assertSame('removed', $removed);
        $kept = self::$blog->command($readOnly . self::JOURNAL . "\$read = Journal::pending(); ob_start(); Journal::keep(['post:2']); Journal::sent('control', ['post:1'], \$read); \$printed = ob_get_clean(); echo str_contains(\$printed, 'pagewell_pending') ? \$printed : 'kept';");
        self::assertSame('kept', $kept);
        self::assertSame(['post:1'], self::$blog->pending());
        // More than one request takes: what is left is not forgotten about.
        self::$blog->post("do_action('pagewell_changed', 'post:9');");
        self::assertSame('1', self::$blog->command("echo (int) (bool) wp_next_scheduled('pagewell_retry');"));
        self::$blog->command(self::JOURNAL . 'Journal::remove();');
        self::assertSame([], self::$blog->pending());
    }

    public function testATableThatIsNotThereBreaksNoWrite(): void
    {
        $gone = "global \$wpdb; \$wpdb->show_errors(); \$table = \$wpdb->options; \$wpdb->options = 'nowhere'; do_action('pagewell_changed', 'post:1');";
        [$content, $carried] = self::$blog->post($gone . " \$wpdb->options = \$table; echo 'written';");
        self::assertSame(['written', '"post:1"'], [$content, $carried]);
    }

    public function testLinesThatAreTakenOffLateAreSetAgainOrToldOtherwise(): void
    {
        $takes = "do_action('pagewell_changed', 'post:1'); add_action('shutdown', function () { header_remove('Cache-Group-Invalidation'); %s }, 10);";
        self::assertSame('"post:1"', self::$blog->post(sprintf($takes, ''))[1]);
        self::assertSame([], self::$blog->pending());
        self::assertSame('', self::$blog->post(sprintf($takes, "echo 'x'; flush();"))[1]);
        self::assertSame(['post:1'], self::$blog->pending());
    }

    public function testSomeOfTheLinesAreNotAllOfThem(): void
    {
        $many = "for (\$n = 0; \$n < 900; \$n++) { do_action('pagewell_changed', \"post:1000\$n\"); } add_action('shutdown', function () { header('Cache-Group-Invalidation: \"post:10000\"'); echo 'x'; flush(); }, 10);";
        self::$blog->post($many);
        self::assertCount(900, self::$blog->pending());
    }

    public function testNoCopyOfWhatAnEarlierVersionKeptIsLeftInACache(): void
    {
        $left = self::$blog->command(self::JOURNAL . "update_option('pagewell_pending', ['at' => 1, 'tags' => ['post:1']], false); get_option('pagewell_pending');"
            . " Journal::sent('control', ['post:1'], Journal::pending()); echo json_encode(get_option('pagewell_pending'));");
        self::assertSame('false', $left);
    }

    public function testAClockThatWasSetBackHoldsNothingUp(): void
    {
        self::assertSame('1', self::$blog->command(self::JOURNAL . "update_option('pagewell_tried', time() + 3600, false); echo (int) (Journal::failedSecondsAgo() > 60);"));
    }

    public function testANameThatCouldNotBeSentSaysEverything(): void
    {
        self::$blog->rows("INSERT INTO wp_options (option_name, option_value, autoload) VALUES ('pagewell_pending_odd', 'a:1:{s:4:\"tags\";a:1:{i:0;s:7:\"post\r\nx\";}}', 'no')");
        self::assertSame('"post:1", "site"', self::$blog->post("do_action('pagewell_changed', 'post:1');")[1]);
    }

    public function testANameMayBeANumber(): void
    {
        $this->change('2011');
        self::assertSame(['2011'], self::$blog->pending());
    }

    /** A command that cannot tell of a change. */
    private function change(string $tag): void
    {
        self::$blog->command("do_action('pagewell_changed', '$tag');");
    }

    /** PHP that has another process, at this point, fail to tell of a change. */
    private function beside(string $tag): string
    {
        $script = "\$_SERVER += ['HTTP_HOST' => 'blog.test', 'REQUEST_URI' => '/', 'REQUEST_METHOD' => 'GET']; require 'wp-load.php'; do_action('pagewell_changed', '$tag');";
        return 'chdir(ABSPATH); exec(' . var_export(escapeshellarg(PHP_BINARY) . ' -d error_log=/dev/null -r ' . escapeshellarg($script), true) . '); ';
    }
}
