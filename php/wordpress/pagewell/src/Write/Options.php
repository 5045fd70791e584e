<?php

declare(strict_types=1);

/**
 * The effects of a written option on pages.
 *
 *     WordPress's own settings, theme, widgets          site: every page
 *     those of comments, feeds, registration            setting:OPTION: pages that depend on it (Sources)
 *     any other setting (Settings): saved by            setting:OPTION: pages that read it (OptionSources),
 *     REST, on a plugin's own page, by `wp option`      and of all options that are written in the same request
 *     sticky posts                                      these posts, and lists
 *     rewrite rules                                     what Routes finds, if they differ
 *     a list of ids, such as of hidden forums           setting:OPTION, but not by a page view
 *     roles                                             users, roles
 *
 * Options in which plugins store notes have no effect, unless a setting is saved with them: they may be made of it.
 */

namespace Pagewell\WordPress\Write;

use Pagewell\WordPress\Purge\Changes;
use Pagewell\WordPress\Read\Transients;
use Pagewell\WordPress\Routes;
use Pagewell\WordPress\Tags;

/**
 * Handles the hooks for options.
 *
 * @internal
 */
final class Options
{
    /** Options on which few pages depend, by kind. */
    public const FEW = [
        'commenting' => ['comment_registration', 'require_name_email', 'show_comments_cookies_opt_in'],
        'closing' => ['close_comments_for_old_posts', 'close_comments_days_old'],
        'comments' => ['thread_comments', 'thread_comments_depth', 'page_comments', 'default_comments_page', 'comment_order'],
        'feeds' => ['posts_per_rss', 'rss_use_excerpt'],
        'registration' => ['users_can_register'],
        // Read once per request, maybe before the plugin listens: by the hook upload_dir.
        'uploads' => ['upload_path', 'upload_url_path'],
    ];

    /** Options on which pages depend, by their settings page, and those without a settings page. */
    private const SITE = [
        'blogname', 'blogdescription', 'siteurl', 'home', 'admin_email', 'timezone_string', 'gmt_offset', 'date_format', 'time_format', 'start_of_week', 'WPLANG', 'site_icon', 'site_logo',
        'use_smilies', 'default_category', 'blog_charset', 'html_type',
        'show_on_front', 'page_on_front', 'page_for_posts', 'posts_per_page', 'blog_public',
        'comments_per_page', 'show_avatars', 'avatar_rating', 'avatar_default',
        'thumbnail_size_w', 'thumbnail_size_h', 'medium_size_w', 'medium_size_h', 'medium_large_size_w', 'medium_large_size_h', 'large_size_w', 'large_size_h', 'image_default_size', 'image_default_align', 'image_default_link_type',
        'permalink_structure', 'category_base', 'tag_base', 'wp_page_for_privacy_policy',
        'stylesheet', 'stylesheet_root', 'template', 'template_root', 'sidebars_widgets', 'active_plugins',
        'link_manager_enabled', 'links_updated_date_format', 'links_recently_updated_prepend', 'links_recently_updated_append', 'links_recently_updated_time',
        'https_migration_required', 'hack_file', 'db_version',
    ];

    /** Options on WordPress's own settings pages that no page shows. */
    private const UNSHOWN = [
        'new_admin_email', 'default_role', 'default_post_format', 'default_email_category', 'default_link_category', 'ping_sites', 'mailserver_url', 'mailserver_port', 'mailserver_login', 'mailserver_pass',
        'default_pingback_flag', 'default_ping_status', 'default_comment_status', 'comments_notify', 'moderation_notify', 'comment_moderation', 'comment_previously_approved', 'comment_max_links', 'moderation_keys', 'disallowed_keys',
        'uploads_use_yearmonth_folders', 'thumbnail_crop',
    ];

    /** Options without a name: they have others, or no page shows them. */
    private const NAMELESS = '/^(cron$|rewrite_rules$|sticky_posts$|pagewell_|widget_|theme_mods_|_(site_)?transient_timeout_|_transient_wc_product_loop_)|user_roles$/';

    /** Maximum number of options of a request that are remembered. More count as a change of the site. */
    private const WRITTEN_MAX = 500;

    /** @var array<string, true> names of the options that this request has written */
    private static array $written = [];

    /** Whether this request saves a setting. */
    private static bool $saves = false;

    /** The rewrite rules before this process first wrote them; false: it has not. */
    private static mixed $rules = false;

    public static function added(string $option, mixed $after = null): void
    {
        // WordPress notes that there are no widgets of a kind when it first looks for them.
        if (str_starts_with($option, 'widget_') && is_array($after) && array_diff_key($after, ['_multiwidget' => 1]) === []) {
            return;
        }
        self::written($option, null, $after);
    }

    public static function updated(string $option, mixed $before = null, mixed $after = null): void
    {
        self::written($option, $before, $after);
    }

    /** Before a deletion. Transients are deleted all the time, and their values do not matter. */
    public static function deleted(string $option): void
    {
        self::written($option, preg_match('/^_(site_)?transient_/', $option) === 1 ? null : get_option($option, null), null);
    }

    /** A result that a plugin has kept is outdated (Transients). */
    public static function transientDeleted(string $transient): void
    {
        $name = Transients::name($transient);
        $name === null || Changes::add($name);
    }

    /** Returns the name for a change of this option; null if it has none, or others. */
    public static function name(string $option): ?string
    {
        if (preg_match(self::NAMELESS, $option) === 1 || in_array($option, self::SITE, true)) {
            return null;
        }
        return (str_starts_with($option, '_transient_') ? Transients::name(substr($option, strlen('_transient_'))) : null) ?? "setting:$option";
    }

    private static function written(string $option, mixed $before, mixed $after): void
    {
        match (true) {
            in_array($option, array_merge(...array_values(self::FEW)), true) => Changes::add("setting:$option", Tags::SETTINGS),
            $option === 'sticky_posts' => self::stuck((array) $before, (array) $after),
            $option === 'rewrite_rules' => self::routed($before, $after),
            str_ends_with($option, 'user_roles') => Changes::add('users', 'roles'),
            self::isOfSite($option) => Changes::add(Tags::SITE),
            self::isSetting($option) => self::saved($option, true),
            (self::isListOfIds($before) || self::isListOfIds($after)) && Settings::mayList($option) => Changes::add("setting:$option", Tags::SETTINGS),
            default => self::saved($option, false),
        };
    }

    /** Adds a setting, and with one the notes of the same request, because they may be made of it. */
    private static function saved(string $option, bool $isSetting): void
    {
        $name = self::name($option);
        if ($name !== null) {
            self::$written[isset(self::$written[$name]) || count(self::$written) < self::WRITTEN_MAX ? $name : Tags::SITE] = true;
        }
        self::$saves = self::$saves || $isSetting;
        if (self::$saves && ($isSetting || $name !== null)) {
            Changes::add(...array_map('strval', array_keys(self::$written)), ...[...($name === null ? [] : [$name]), Tags::SETTINGS]);
            self::$written = [];
        }
    }

    /** Whether a value names posts, terms or users, which a plugin then treats in another way: hidden, private, popular. */
    private static function isListOfIds(mixed $value): bool
    {
        return is_array($value) && $value !== [] && array_filter($value, static fn (mixed $id): bool => !is_int($id) && !(is_string($id) && ctype_digit($id))) === [];
    }

    private static function isOfSite(string $option): bool
    {
        return in_array($option, self::SITE, true) || str_starts_with($option, 'widget_') || str_starts_with($option, 'theme_mods_')
            || (!str_starts_with($option, 'pagewell_') && in_array($option, (array) apply_filters('pagewell_options', []), true));
    }

    private static function isSetting(string $option): bool
    {
        return match (true) {
            str_starts_with($option, 'pagewell_'), in_array($option, self::UNSHOWN, true) => false,
            // A settings page, of WordPress or a plugin, is being saved.
            ($GLOBALS['pagenow'] ?? '') === 'options.php' && !str_starts_with($option, '_') => true,
            default => Settings::isSaved($option),
        };
    }

    /**
     * @param array<mixed> $before
     * @param array<mixed> $after
     */
    private static function stuck(array $before, array $after): void
    {
        [$before, $after] = [array_map('intval', $before), array_map('intval', $after)];
        array_map(PostEvents::stuck(...), array_filter([...array_diff($after, $before), ...array_diff($before, $after)]));
    }

    /** Plugins clear and rebuild the rules, mostly unchanged; those before another process cleared them are lost. */
    private static function routed(mixed $before, mixed $after): void
    {
        if (self::$rules === false) {
            self::$rules = $before;
        }
        if (!empty($after) && $after !== self::$rules) {
            Changes::add(...Routes::changed(self::$rules, $after));
            self::$rules = $after;
        }
    }
}
