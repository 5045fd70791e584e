<?php

/**
 * What is shown beside the posts: users, menus, and what every page is made with (theme, plugins),
 * which is the one name `site`. Options are in Options.
 */

declare(strict_types=1);

namespace Pagewell\WordPress;

/** Listens to everything that is no post, term or comment. */
final class SiteEvents
{
    /** Meta of users that no page shows: bookkeeping of WordPress and of its administration, and of who was here when. */
    private const SILENT_USER_META = '/^(session_tokens|_application_passwords|default_password_nag|_new_email|use_ssl|rich_editing|syntax_highlighting|comment_shortcuts|admin_color|locale'
        . '|show_admin_bar_front|show_welcome_panel|dismissed_wp_pointers|community-events-location|nav_menu_recently_edited|primary_blog|source_domain|enable_custom_fields'
        . '|(closedpostboxes|metaboxhidden|meta-box-order|screen_layout)_.*|manage.*columnshidden|.*_per_page'
        . '|.*_?(user-settings|user-settings-time|user_level|dashboard_quick_press_last_post_id|media_library_mode|persisted_preferences)'
        . '|_woocommerce_(persistent_cart.*|load_saved_cart_after_login)|.*last[_-]?(login|active|activity|seen|update)s?)$/i';

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
        $isNamed = in_array($option, [...self::NETWORK_OPTIONS, ...(array) apply_filters('pagewell_options', [])], true);
        if (is_multisite() && ($isNamed || (is_network_admin() && Settings::isSaved($option)))) {
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
        Changes::add("user:$user", 'users');
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

    /** Whatever a theme shows of a user besides his name, and his roles, by which lists of users ask. */
    public static function userMetaWritten(mixed $ids, int $user, string $key): void
    {
        if (!preg_match(self::SILENT_USER_META, $key) && !in_array($key, (array) apply_filters('pagewell_ignored_meta', []), true)) {
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
        Changes::add("by:$user", ...($heir === null ? [] : ['by:' . (int) $heir, 'list', 'texts', 'every']));
        foreach ($heir === null ? [] : array_filter(get_post_types(), Tags::isData(...)) as $type) {
            Changes::add("list:$type", "texts:$type", "every:$type");
        }
    }
}
