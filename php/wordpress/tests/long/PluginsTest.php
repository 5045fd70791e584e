<?php

/**
 * A forum, a community, languages, forms, memberships, custom fields, SEO: after each change of such a plugin, every page
 * is the same as WordPress would render it at that moment, and no page of a member is given to a stranger.
 *
 * These plugins are in no package of Debian. So the directory that holds theirs is given, with that of a WordPress:
 *
 *     PAGEWELL_PLUGINS=/path/to/plugins PAGEWELL_WORDPRESS=/path/to/wordpress SHOW=1 \
 *         phpunit --configuration php/wordpress --filter 'PluginsTest.*bbpress'
 *
 * PAGEWELL_ARRANGEMENT=automatic compares the same without the plugin, and `both` with it and automatic dependencies.
 * Without PAGEWELL_PLUGINS, the tests are skipped, and say so. php/wordpress/tests/WordPressVisitorsTest.php has the mechanisms.
 */

declare(strict_types=1);

namespace Pagewell\Tests\WordPress;

use Pagewell\Tests\Support\BlogPages;
use Pagewell\Tests\Support\PageComparison;
use Pagewell\Tests\Support\PluginChanges;
use Pagewell\Tests\Support\RealWordPress;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

final class PluginsTest extends TestCase
{
    private const NAMES = 'ini_set("error_log", "php://stderr"); require_once ABSPATH . "wp-admin/includes/admin.php"; $ada = get_user_by("login", "ada")->ID; $id = fn ($slug, $type = "post") => (int) ($wpdb->get_var($wpdb->prepare("SELECT ID FROM wp_posts WHERE post_name = %s AND post_type = %s", $slug, $type)) ?: exit(4));'
        . ' $page = fn ($slug, $content) => wp_insert_post(["post_title" => ucfirst($slug), "post_name" => $slug, "post_content" => $content, "post_type" => "page", "post_status" => "publish", "post_date" => "2026-02-01 10:00:00"]);'
        . ' $saves = function ($page) { wp_set_current_user(1); $_REQUEST["_wpnonce"] = "x"; $GLOBALS["pagenow"] = "admin.php"; $_REQUEST["page"] = $page; set_current_screen("toplevel_page_$page"); };';

    /** @return iterable<string, array{0: string, 1: string, 2: list<string>, 3: array<string, string>, 4?: string}> the plugin's file; how it is set up; pages; changes; pages that may not be stored */
    public static function plugins(): iterable
    {
        yield 'bbpress' => ['bbpress/bbpress.php', self::FORUM, self::FORUM_PAGES, self::FORUM_CHANGES];
        yield 'buddypress' => ['buddypress/bp-loader.php', self::COMMUNITY, self::COMMUNITY_PAGES, self::COMMUNITY_CHANGES];
        yield 'polylang' => ['polylang/polylang.php', self::LANGUAGES, self::LANGUAGES_PAGES, self::LANGUAGES_CHANGES];
        yield 'contact-form-7' => ['contact-form-7/wp-contact-form-7.php', self::FORM, self::FORM_PAGES, self::FORM_CHANGES];
        yield 'paid-memberships-pro' => ['paid-memberships-pro/paid-memberships-pro.php', self::MEMBERS, self::MEMBERS_PAGES, self::MEMBERS_CHANGES];
        yield 'acf' => ['acf/acf.php', PluginChanges::FIELDS, PluginChanges::FIELDS_PAGES, PluginChanges::FIELDS_CHANGES];
        yield 'autodescription' => ['autodescription/autodescription.php', PluginChanges::SEO, PluginChanges::SEO_PAGES, PluginChanges::SEO_CHANGES];
    }

    private const FORUM = 'bbp_add_caps(); update_option("_bbp_default_role", "bbp_participant"); $at = ["post_date" => "2026-02-01 10:00:00"]; foreach (["sailing", "rowing"] as $f) { $forum[$f] = bbp_insert_forum(["post_title" => ucfirst($f), "post_name" => $f, "post_author" => 1] + $at); }'
        . ' foreach (["knots" => "sailing", "sails" => "sailing", "oars" => "rowing"] as $t => $f) { $topic[$t] = bbp_insert_topic(["post_parent" => $forum[$f], "post_title" => ucfirst($t), "post_name" => $t, "post_content" => "Of $t.", "post_author" => $ada, "post_date" => "2026-02-01 10:00:0" . count($topic ?? [])], ["forum_id" => $forum[$f]]); }'
        . ' $r = bbp_insert_reply(["post_parent" => $topic["knots"], "post_name" => "first", "post_content" => "The bowline.", "post_author" => 1] + $at, ["forum_id" => $forum["sailing"], "topic_id" => $topic["knots"]]); wp_set_object_terms($topic["knots"], ["rope"], "topic-tag");';
    private const FORUM_PAGES = [
        '/', '/forums/', '/forums/forum/sailing/', '/forums/forum/rowing/', '/forums/topic/knots/', '/forums/topic/sails/', '/forums/topic/oars/', '/forums/users/ada/', '/forums/users/ada/topics/', '/forums/users/ada/replies/',
        '/forums/topics/', '/forums/topic-tag/rope/', '/forums/view/popular/', '/forums/view/no-replies/', '/forums/search/knot/', '/latest/', '/ferry/',
    ];
    private const IN_FORUM = '$f = fn ($s) => $id($s, "forum"); $t = fn ($s) => $id($s, "topic"); $r = fn ($s) => $id($s, "reply");';
    private const FORUM_CHANGES = [
        'a reply' => self::IN_FORUM . 'bbp_insert_reply(["post_parent" => $t("sails"), "post_name" => "second", "post_content" => "Of hemp.", "post_author" => $ada], ["forum_id" => $f("sailing"), "topic_id" => $t("sails")]);',
        'a reply is edited' => self::IN_FORUM . 'wp_update_post(["ID" => $r("second"), "post_content" => "Of flax."]);',
        'a reply is spam' => self::IN_FORUM . 'bbp_spam_reply($r("second"));',
        'a reply is none' => self::IN_FORUM . 'bbp_unspam_reply($r("second"));',
        'a topic' => self::IN_FORUM . 'bbp_insert_topic(["post_parent" => $f("rowing"), "post_title" => "Boats", "post_name" => "boats", "post_content" => "Of boats and knots.", "post_author" => 1], ["forum_id" => $f("rowing")]);',
        'a topic is closed' => self::IN_FORUM . 'bbp_close_topic($t("knots"));',
        'a topic is open' => self::IN_FORUM . 'bbp_open_topic($t("knots"));',
        'a topic sticks' => self::IN_FORUM . 'bbp_stick_topic($t("sails"));',
        'a topic moves' => self::IN_FORUM . '$old = $f("rowing"); wp_update_post(["ID" => $t("oars"), "post_parent" => $f("sailing")]); bbp_update_topic($t("oars"), $f("sailing"), [], $ada, true); bbp_move_topic_handler($t("oars"), $old, $f("sailing"));',
        'a tag' => self::IN_FORUM . 'wp_set_object_terms($t("sails"), ["rope"], "topic-tag");',
        'a favourite' => self::IN_FORUM . 'bbp_add_user_favorite($ada, $t("oars"));',
        'a name of a member' => 'wp_update_user(["ID" => $ada, "display_name" => "Countess Ada"]);',
        'a forum has a text' => self::IN_FORUM . 'wp_update_post(["ID" => $f("rowing"), "post_content" => "With oars."]);',
        'a forum is hidden' => self::IN_FORUM . 'bbp_hide_forum($f("sailing"));',
        'a forum is shown' => self::IN_FORUM . 'bbp_publicize_forum($f("sailing"), bbp_get_hidden_status_id());',
        'a topic is thrown away' => self::IN_FORUM . 'wp_trash_post($t("knots"));',
        'how many on a page' => '$saves("bbpress"); update_option("_bbp_topics_per_page", "1");',
    ];

    private const COMMUNITY = 'require_once ABSPATH . "wp-admin/includes/upgrade.php"; require_once WP_PLUGIN_DIR . "/buddypress/bp-core/admin/bp-core-admin-schema.php"; update_option("_bp_theme_package_id", "legacy"); $all = array_fill_keys(["xprofile", "settings", "friends", "activity", "groups", "members"], 1); update_option("bp-active-components", $all); bp_core_install($all); bp_core_add_page_mappings($all, "delete"); update_option("users_can_register", 0);'
        . ' foreach ([1, $ada] as $user) { bp_update_user_last_activity($user, "2026-02-01 10:00:0$user"); }';
    private const COMMUNITY_FILL = '$g = groups_create_group(["creator_id" => 1, "name" => "Pilots", "slug" => "pilots", "description" => "We pilot.", "status" => "public", "date_created" => "2026-02-01 10:00:00"]); groups_update_groupmeta($g, "last_activity", "2026-02-01 10:00:00"); groups_update_groupmeta($g, "total_member_count", 1);'
        . ' bp_activity_add(["user_id" => $ada, "type" => "activity_update", "component" => "activity", "content" => "The tide is high.", "recorded_time" => "2026-02-01 10:00:00"]);';
    private const COMMUNITY_PAGES = [
        '/', '/activity/', '/members/', '/members/ada/', '/members/ada/profile/', '/members/ada/groups/', '/members/ada/friends/', '/members/admin/', '/groups/', '/groups/pilots/', '/groups/pilots/members/', '/members/?s=ada', '/ferry/',
    ];
    private const COMMUNITY_CHANGES = [
        'an update' => 'bp_activity_add(["user_id" => $ada, "type" => "activity_update", "component" => "activity", "content" => "The tide is low."]);',
        'a comment to it' => '$a = $wpdb->get_var("SELECT MAX(id) FROM wp_bp_activity WHERE type = \'activity_update\'"); bp_activity_new_comment(["activity_id" => $a, "content" => "How low?", "user_id" => 1]);',
        'a favourite' => 'wp_set_current_user($ada); bp_activity_add_user_favorite($wpdb->get_var("SELECT MIN(id) FROM wp_bp_activity WHERE type = \'activity_update\'"), $ada);',
        'an update goes' => 'bp_activity_delete(["id" => $wpdb->get_var("SELECT MAX(id) FROM wp_bp_activity WHERE type = \'activity_update\'")]);',
        'a group' => '$g = groups_create_group(["creator_id" => $ada, "name" => "Stokers", "slug" => "stokers", "description" => "We stoke.", "status" => "public"]); groups_update_groupmeta($g, "last_activity", "2026-02-01 10:00:00"); groups_update_groupmeta($g, "total_member_count", 1);',
        'a member joins' => 'groups_join_group(groups_get_id("pilots"), $ada);',
        'a member is promoted' => 'wp_set_current_user(1); groups_promote_member($ada, groups_get_id("pilots"), "admin");',
        'a text of a group' => 'groups_edit_base_group_details(["group_id" => groups_get_id("pilots"), "name" => "Pilots", "description" => "We pilot ships."]);',
        'a group is hidden' => 'groups_edit_group_settings(groups_get_id("pilots"), 0, "hidden");',
        'a group is private' => 'groups_edit_group_settings(groups_get_id("pilots"), 0, "private");',
        'a group is public' => 'groups_edit_group_settings(groups_get_id("pilots"), 0, "public");',
        'a member leaves' => 'groups_leave_group(groups_get_id("stokers"), $ada); groups_leave_group(groups_get_id("pilots"), $ada);',
        'a friend' => 'friends_add_friend(1, $ada, true);',
        'a field of a profile' => 'xprofile_set_field_data(1, $ada, "Lady Ada");',
        'a new field' => 'xprofile_insert_field(["field_group_id" => 1, "type" => "textbox", "name" => "Ship"]); xprofile_set_field_data("Ship", $ada, "Argo");',
        'a member' => '$u = wp_insert_user(["user_login" => "eve", "user_pass" => "secret-of-eve", "user_email" => "eve@blog.test", "display_name" => "Eve"]); bp_update_user_last_activity($u, "2026-02-02 10:00:00");',
        'a member is there again' => 'bp_update_user_last_activity($ada, "2026-02-03 10:00:00");',
    ];

    private const LANGUAGES = '$l = PLL()->model->languages; foreach ([["English", "en_US", "en"], ["Deutsch", "de_DE", "de"]] as [$name, $locale, $slug]) { $l->add(["name" => $name, "locale" => $locale, "slug" => $slug, "rtl" => 0, "term_group" => 0]); } $o = PLL()->options; $o["browser"] = false; $o["hide_default"] = true; $o->save_all(); wp_cache_flush();';
    private const LANGUAGES_FILL = 'foreach (get_posts(["numberposts" => -1, "post_type" => ["post", "page"], "lang" => ""]) as $p) { pll_set_post_language($p->ID, "en"); } foreach (get_terms(["taxonomy" => "category", "hide_empty" => false, "lang" => ""]) as $t) { pll_set_term_language($t->term_id, "en"); }'
        . ' $s = get_term_by("slug", "ships", "category")->term_id; $d = wp_insert_term("Schiffe", "category", ["slug" => "schiffe"])["term_id"]; pll_set_term_language($d, "de"); pll_save_term_translations(["en" => $s, "de" => $d]);'
        . ' $f = wp_insert_post(["post_title" => "Die Fähre", "post_name" => "faehre", "post_content" => "Alles.", "post_status" => "publish", "post_category" => [$d], "post_date" => "2026-03-01 12:00:00"]); pll_set_post_language($f, "de"); pll_save_post_translations(["en" => $id("ferry"), "de" => $f]);';
    private const LANGUAGES_PAGES = ['/', '/de/', '/ferry/', '/de/faehre/', '/tug/', '/gull/', '/about/', '/category/ships/', '/de/category/schiffe/', '/category/birds/', '/feed/', '/de/feed/', '/?s=ferry', '/de/?s=f', '/wp-sitemap.xml', '/wp-sitemap-posts-post-1.xml', '/author/ada/'];
    private const LANGUAGES_CHANGES = [
        'a post is translated' => '$p = wp_insert_post(["post_title" => "Ein Schlepper", "post_name" => "schlepper", "post_content" => "Neu.", "post_status" => "publish", "post_date" => "2026-03-03 12:00:00"]); pll_set_post_language($p, "de"); pll_save_post_translations(["en" => $id("tug"), "de" => $p]);',
        'a translation is edited' => 'wp_update_post(["ID" => $id("schlepper"), "post_title" => "Der Schlepper"]);',
        'a translation has another URL' => 'wp_update_post(["ID" => $id("schlepper"), "post_name" => "der-schlepper"]);',
        'a translation is a draft' => 'wp_update_post(["ID" => $id("der-schlepper"), "post_status" => "draft"]);',
        'a translation is none' => '$f = $id("faehre"); pll_save_post_translations(["de" => $f]); PLL()->model->post->delete_translation($id("ferry"));',
        'a translation again' => 'pll_save_post_translations(["en" => $id("ferry"), "de" => $id("faehre")]);',
        'a category is translated' => '$b = get_term_by("slug", "birds", "category")->term_id; $v = wp_insert_term("Vögel", "category", ["slug" => "voegel"])["term_id"]; pll_set_term_language($v, "de"); pll_save_term_translations(["en" => $b, "de" => $v]);',
        'a post goes to it' => 'wp_set_post_categories($id("faehre"), [get_term_by("slug", "voegel", "category")->term_id]);',
        'a text of the site' => '$saves("mlang_strings"); $mo = new PLL_MO(); $mo->import_from_db(PLL()->model->get_language("de")); $mo->add_entry($mo->make_entry("The Harbour Blog", "Der Hafen")); $mo->export_to_db(PLL()->model->get_language("de"));',
        'a language has another name' => '$saves("mlang"); $l = PLL()->model->get_language("de"); PLL()->model->languages->update(["lang_id" => $l->term_id, "name" => "German", "slug" => "de", "locale" => "de_DE", "rtl" => 0, "term_group" => 0]);',
        'a post changes its language' => 'pll_set_post_language($id("gull"), "de");',
        'and back' => 'pll_set_post_language($id("gull"), "en");',
        'a language' => '$saves("mlang"); PLL()->model->languages->add(["name" => "Français", "locale" => "fr_FR", "slug" => "fr", "rtl" => 0, "term_group" => 0]); flush_rewrite_rules();',
        'a setting of it' => '$saves("mlang_settings"); $o = PLL()->options; $o["hide_default"] = false; $o->save_all(); flush_rewrite_rules();',
    ];

    private const FORM = '$f = WPCF7_ContactForm::get_template(["title" => "Ask"]); $f->save(); update_option("form", $f->id()); $page("contact", "[contact-form-7 id=\"" . $f->id() . "\"]"); $page("plain", "Nothing.");';
    private const FORM_PAGES = ['/', '/contact/', '/plain/', '/ferry/'];
    private const FORM_CHANGES = [
        'a form' => '$f = wpcf7_contact_form(get_option("form")); $f->set_properties(["form" => "[text* your-name] [submit \"Go\"]"]); $f->save();',
        'its messages' => '$f = wpcf7_contact_form(get_option("form")); $f->set_properties(["messages" => ["mail_sent_ok" => "Fine."]]); $f->save();',
        'its title' => '$f = wpcf7_contact_form(get_option("form")); $f->set_title("Tell"); $f->save();',
        'a second one' => '$f = WPCF7_ContactForm::get_template(["title" => "Two"]); $f->save();',
        'a form in a post' => 'wp_update_post(["ID" => $id("ferry"), "post_content" => "[contact-form-7 id=\"" . get_option("form") . "\"]"]);',
        'a key of a service' => '$saves("wpcf7-integration"); WPCF7::update_option("recaptcha", ["key" => "secret"]);',
        'no service' => '$saves("wpcf7-integration"); WPCF7::update_option("recaptcha", null);',
        'a form goes' => '$f = wpcf7_contact_form(get_option("form")); $f->delete();',
    ];

    private const MEMBERS = 'require_once WP_PLUGIN_DIR . "/paid-memberships-pro/includes/upgradecheck.php"; pmpro_db_delta(); update_option("pmpro_db_version", "9.9"); foreach (["Gold" => 9, "Silver" => 3] as $name => $price) { $wpdb->insert("wp_pmpro_membership_levels", ["name" => $name, "description" => "", "confirmation" => "", "initial_payment" => $price, "billing_amount" => 0, "cycle_number" => 0, "cycle_period" => "Month", "billing_limit" => 0, "trial_amount" => 0, "trial_limit" => 0, "allow_signups" => 1, "expiration_number" => 0, "expiration_period" => "Day"]); }'
        . ' $page("levels", "[pmpro_levels]"); $page("account", "[pmpro_account]"); update_option("pmpro_account_page_id", $id("account", "page")); update_option("pmpro_levels_page_id", $id("levels", "page")); pmpro_update_post_level_restrictions($id("ferry"), [1]); pmpro_changeMembershipLevel(1, $ada); $page("box", "[membership levels=\"1\"]For members: the key is under the mat.[/membership]"); update_option("pmpro_filterqueries", "1");';
    private const MEMBERS_PAGES = ['/', '/ferry/', '/tug/', '/gull/', '/levels/', '/box/', '/category/ships/', '/feed/', '/?s=ferry', '/about/'];
    private const MEMBERS_CHANGES = [
        'a price' => '$wpdb->update("wp_pmpro_membership_levels", ["initial_payment" => 11], ["id" => 1]);',
        'a level' => '$wpdb->insert("wp_pmpro_membership_levels", ["name" => "Bronze", "description" => "", "confirmation" => "", "initial_payment" => 1, "billing_amount" => 0, "cycle_number" => 0, "cycle_period" => "Month", "billing_limit" => 0, "trial_amount" => 0, "trial_limit" => 0, "allow_signups" => 1, "expiration_number" => 0, "expiration_period" => "Day"]);',
        'a post is for members' => 'pmpro_update_post_level_restrictions($id("tug"), [1, 2]);',
        'a post is for all' => 'pmpro_update_post_level_restrictions($id("tug"), []);',
        'a category is for members' => '$wpdb->insert("wp_pmpro_memberships_categories", ["membership_id" => 1, "category_id" => get_term_by("slug", "birds", "category")->term_id]);',
        'a category is for all' => '$wpdb->query("DELETE FROM wp_pmpro_memberships_categories");',
        'a member has another level' => 'pmpro_changeMembershipLevel(2, $ada);',
        'and the first again' => 'pmpro_changeMembershipLevel(1, $ada);',
        'a level takes nobody' => '$wpdb->update("wp_pmpro_membership_levels", ["allow_signups" => 0], ["id" => 2]);',
        'the currency' => '$saves("pmpro-paymentsettings"); pmpro_setOption("currency", "EUR");',
        'a message' => '$saves("pmpro-advancedsettings"); pmpro_setOption("nonmembertext", "Only for members.");',
        'excerpts' => '$saves("pmpro-advancedsettings"); pmpro_setOption("showexcerpts", "1");',
        'a code' => '$wpdb->insert("wp_pmpro_discount_codes", ["code" => "TEN", "starts" => "2026-01-01", "expires" => "2027-01-01", "uses" => 1]);',
    ];

    /**
     * @dataProvider plugins
     *
     * @param list<string>          $paths
     * @param array<string, string> $changes
     */
    public function testAfterEachChangeAllPagesAreAsWordPressMakesThem(string $file, string $setUp, array $paths, array $changes): void
    {
        $directory = getenv('PAGEWELL_PLUGINS') . '/' . dirname($file);
        if (!is_file(dirname($directory) . "/$file")) {
            self::markTestSkipped("PAGEWELL_PLUGINS is no directory with $file");
        }
        putenv('WP_DEBUG=0');
        $blog = RealWordPress::settled();
        $blog->add($directory);
        $blog->command("update_option('active_plugins', ['$file', 'pagewell/pagewell.php']);");
        $blog->plugin('add_shortcode("none", fn () => "");' . (str_starts_with($file, 'acf') ? PluginChanges::FIELDS_SHOWN : '') . (str_starts_with($file, 'polylang') ? 'PHP_SAPI === "cli" && define("PLL_ADMIN", true); add_action("wp_footer", fn () => print("<ul>" . pll_the_languages(["echo" => 0, "hide_if_empty" => 0]) . "</ul>"));' : ''));
        $blog->command(self::NAMES . $setUp . ' flush_rewrite_rules();');
        match (dirname($file)) {
            'buddypress' => $blog->command(self::NAMES . self::COMMUNITY_FILL . ' flush_rewrite_rules();'),
            'polylang' => $blog->command(self::NAMES . self::LANGUAGES_FILL . ' flush_rewrite_rules();'),
            'bbpress' => $blog->command(self::NAMES . '$page("latest", "[bbp-topic-index]"); flush_rewrite_rules();'),
            default => null,
        };
        $pagewell = $blog->behind();
        try {
            $pages = new BlogPages($pagewell, self::withoutAges(...));
            array_map($pages->ask(...), $paths);
            $blog->command('');
            $this->compare($blog, new PageComparison($pages, $paths), $changes);
            $this->compareAfterMember($blog, $pages, $paths);
        } finally {
            $pagewell->stop();
            $blog->stop();
        }
    }

    /** @param array<string, string> $changes */
    private function compare(RealWordPress $blog, PageComparison $all, array $changes): void
    {
        foreach ($changes as $name => $script) {
            [$purged, $changed, $old, $unstored] = array_map(count(...), [$all->purged, $all->changed, $all->old, $all->unstored]);
            $blog->command(self::NAMES . $script);
            $all->after($name);
            getenv('SHOW') && fwrite(STDERR, sprintf("%3d purged %3d changed %3d old  %s\n", count($all->purged) - $purged, count($all->changed) - $changed, count($all->old) - $old, $name) . implode("\n", [...array_slice($all->old, $old), ...array_slice($all->unstored, $unstored), '']));
        }
        getenv('SHOW') && fwrite(STDERR, $all->report());
        $unstored = preg_grep('/changed-since|in-progress|fwd-status=302/', $all->unstored, PREG_GREP_INVERT);
        self::assertSame([[], []], [$all->old, $unstored], 'no page is old, and all are stored');
    }

    /** @param list<string> $paths */
    private function compareAfterMember(RealWordPress $blog, BlogPages $pages, array $paths): void
    {
        $cookie = 'Cookie: ' . $blog->command('$u = get_user_by("login", "ada")->ID; echo LOGGED_IN_COOKIE . "=" . wp_generate_auth_cookie($u, time() + 9999, "logged_in");');
        $isOwn = 0;
        foreach ($paths as $path) {
            $pages->ask($path, 'PURGE');
            [$own, $how] = $pages->ask($path, 'GET', $cookie);
            self::assertStringNotContainsString('stored', $how, "$path of a member");
            $shown = $pages->ask($path)[0];
            $pages->ask($path, 'PURGE');
            self::assertSame($pages->ask($path)[0], $shown, "$path after a member");
            $isOwn += (int) ($own !== $shown);
        }
        self::assertGreaterThan(0, $isOwn, 'a member gets pages of their own');
    }

    /** How long ago something was changes by itself. */
    private static function withoutAges(string $content): string
    {
        return (string) preg_replace(['/\b\d+ (?:second|minute)s?(?:, \d+ seconds?)? ago\b|\bright now\b|\ba moment ago\b/', '/_wpnonce=\w+|name="_wpnonce[^>]+>/', '/\b\d+\.\d+ms\b/'], ['long ago', 'nonce', 'ms'], $content);
    }
}
