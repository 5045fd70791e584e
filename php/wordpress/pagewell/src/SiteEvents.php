<?php

/**
 * What is shown beside the posts: users, menus, and what every page is made with (options, theme,
 * widgets, plugins), which is the one name `site`.
 *
 * Of the options those count that WordPress's own settings are, those of the theme and of
 * widgets, and whatever is saved on a page of settings; the many that plugins keep notes in do not.
 */

declare(strict_types=1);

namespace Pagewell\WordPress;

/** Listens to everything that is no post, term or comment. */
final class SiteEvents
{
    /** Options that pages are made with, by the page of settings that they are on. */
    private const OPTIONS = [
        'blogname', 'blogdescription', 'siteurl', 'home', 'timezone_string', 'gmt_offset', 'date_format', 'time_format', 'start_of_week', 'WPLANG', 'users_can_register', 'site_icon', 'site_logo',
        'use_smilies', 'default_post_format', 'blog_charset', 'html_type',
        'show_on_front', 'page_on_front', 'page_for_posts', 'posts_per_page', 'posts_per_rss', 'rss_use_excerpt', 'blog_public',
        'require_name_email', 'comment_registration', 'close_comments_for_old_posts', 'close_comments_days_old', 'show_comments_cookies_opt_in', 'thread_comments', 'thread_comments_depth', 'page_comments', 'comments_per_page', 'default_comments_page', 'comment_order', 'show_avatars', 'avatar_rating', 'avatar_default',
        'thumbnail_size_w', 'thumbnail_size_h', 'medium_size_w', 'medium_size_h', 'medium_large_size_w', 'medium_large_size_h', 'large_size_w', 'large_size_h', 'image_default_size',
        'permalink_structure', 'category_base', 'tag_base', 'wp_page_for_privacy_policy',
        'stylesheet', 'template', 'sidebars_widgets', 'nav_menu_options', 'active_plugins', 'link_manager_enabled',
    ];

    /** Meta of users that pages show. */
    private const USER_META = ['first_name', 'last_name', 'nickname', 'description'];

    /** Options of a network that pages of its blogs are made with. */
    private const NETWORK_OPTIONS = ['site_name', 'registration', 'WPLANG', 'active_sitewide_plugins'];

    /** What of a blog of a network decides whether, where and how it is shown. */
    private const BLOG_FIELDS = ['domain', 'path', 'public', 'archived', 'mature', 'spam', 'deleted', 'lang_id'];

    public static function siteChanged(): void
    {
        Changes::add(Tags::SITE);
    }

    /** What all blogs of a network share; without a network, the site. */
    public static function networkChanged(): void
    {
        Changes::add(is_multisite() ? Tags::NETWORK : Tags::SITE);
    }

    public static function pluginTurned(mixed $plugin, mixed $everywhere = false): void
    {
        $everywhere ? self::networkChanged() : self::siteChanged();
    }

    public static function networkOptionWritten(string $option): void
    {
        if (is_multisite() && in_array($option, [...self::NETWORK_OPTIONS, ...(array) apply_filters('pagewell_options', [])], true)) {
            self::networkChanged();
        }
    }

    /** A blog is archived, moved, deleted …; each post that is published writes it, too, and changes nothing of this. */
    public static function blogWritten(\WP_Site $after, ?\WP_Site $before = null): void
    {
        foreach (self::BLOG_FIELDS as $field) {
            if ($before === null || (string) $after->$field !== (string) $before->$field) {
                switch_to_blog((int) $after->id);
                self::siteChanged();
                restore_current_blog();
                return;
            }
        }
    }

    /** The editor for files of themes and plugins writes without a hook, and ends the request itself. */
    public static function administrationBegins(): void
    {
        $edits = ($_REQUEST['action'] ?? '') === 'edit-theme-plugin-file' || in_array($GLOBALS['pagenow'] ?? '', ['theme-editor.php', 'plugin-editor.php'], true);
        if ($edits && ($_SERVER['REQUEST_METHOD'] ?? '') === 'POST' && (current_user_can('edit_themes') || current_user_can('edit_plugins'))) {
            self::networkChanged();
        }
    }

    public static function optionWritten(string $option): void
    {
        if (str_starts_with($option, 'pagewell_')) {
            return;
        }
        $counts = in_array($option, self::OPTIONS, true)
            || str_starts_with($option, 'widget_')
            || str_starts_with($option, 'theme_mods_')
            // A page of settings, of WordPress or a plugin, is being saved.
            || ($GLOBALS['pagenow'] ?? '') === 'options.php' && !str_starts_with($option, '_')
            || in_array($option, (array) apply_filters('pagewell_options', []), true);
        if ($counts) {
            Changes::add(Tags::SITE);
        }
    }

    public static function menuWritten(mixed $menu): void
    {
        Changes::add('menu:' . (int) $menu, 'menus');
    }

    /** An item goes as a post, without a word about its menus; it is still in them. */
    public static function menuItemTurned(int $item): void
    {
        $menus = wp_get_object_terms($item, 'nav_menu', ['fields' => 'ids']);
        array_map(self::menuWritten(...), is_array($menus) ? $menus : []);
    }

    public static function userWritten(int $user): void
    {
        Changes::add("user:$user", 'users', Tags::NOWHERE);
    }

    public static function profileUpdated(int $user, \WP_User $before): void
    {
        $after = get_userdata($user);
        foreach (['display_name', 'user_nicename', 'user_url', 'user_email'] as $shown) {
            if ($after === false || $after->$shown !== $before->$shown) {
                self::userWritten($user);
                return;
            }
        }
    }

    public static function userMetaWritten(mixed $ids, int $user, string $key): void
    {
        if (in_array($key, [...self::USER_META, ...array_keys(wp_get_user_contact_methods())], true)) {
            self::userWritten($user);
        }
    }

    /** From one blog of a network, to which WordPress has switched; his posts there go to somebody else, or to nobody. */
    public static function userRemoved(int $user, mixed $blog, mixed $heir): void
    {
        self::userDeleted($user, (int) $heir > 0 ? $heir : null);
    }

    /** About to be deleted; the posts may go to somebody else, without further hooks. */
    public static function userDeleted(int $user, mixed $heir): void
    {
        self::userWritten($user);
        Changes::add("by:$user", ...($heir === null ? [] : ['by:' . (int) $heir]));
    }
}
