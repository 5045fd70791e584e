<?php

/**
 * Data other than posts: users, menus, and the data on which every page depends (theme, plugins),
 * which has the single name `site`. Options are in Options.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Write;

use Pagewell\WordPress\Purge\Changes;
use Pagewell\WordPress\Read\QueryParent;
use Pagewell\WordPress\Tags;

/**
 * Handles the hooks that are not about posts, terms or comments.
 *
 * @internal
 */
final class SiteEvents
{
    /** User meta that no page shows: bookkeeping of WordPress and of its administration, and of visits. */
    private const UNSHOWN_USER_META = '/^(session_tokens|_application_passwords|default_password_nag|_new_email|use_ssl|rich_editing|syntax_highlighting|comment_shortcuts|admin_color|locale'
        . '|show_admin_bar_front|show_welcome_panel|dismissed_wp_pointers|community-events-location|nav_menu_recently_edited|primary_blog|source_domain|enable_custom_fields'
        . '|(closedpostboxes|metaboxhidden|meta-box-order|screen_layout)_.*|manage.*columnshidden|.*_per_page'
        . '|.*_?(user-settings|user-settings-time|user_level|dashboard_quick_press_last_post_id|media_library_mode|persisted_preferences)'
        . '|_woocommerce_(persistent_cart.*|load_saved_cart_after_login)|.*last[_-]?(login|active|activity|seen|update)s?)$/i';

    /** Options of a network on which pages of its blogs depend. */
    private const NETWORK_OPTIONS = ['site_name', 'registration', 'WPLANG', 'active_sitewide_plugins'];

    /** Fields of a network's blog that determine whether, where and how it is shown. */
    private const BLOG_FIELDS = ['domain', 'path', 'public', 'archived', 'mature', 'spam', 'deleted', 'lang_id'];

    /** Maximum number of posts with another author that are named individually; above it, everything changes. */
    private const INHERITED_MAX = 300;

    public static function siteChanged(): void
    {
        Changes::add(Tags::SITE);
    }

    /** Changes the data that all blogs of a network share; without a network, the site. */
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

    /** A blog is archived, moved, deleted …; publishing a post also writes it, without changing these fields. */
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

    /** The editor for theme and plugin files writes without a hook, and ends the request itself. */
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

    /** A menu item is deleted as a post, without its menus; it is still in them at that time. */
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

    /** Any user data that a theme may show. Roles have a name of their own, because few pages depend on them. */
    public static function userMetaWritten(mixed $ids, int $user, string $key): void
    {
        // In a network, a role also says that a user belongs to the blog.
        if (Tags::isOfRoles($key) && !is_multisite()) {
            Changes::add("role:$user", 'roles');
        } elseif (!preg_match(self::UNSHOWN_USER_META, $key) && !in_array($key, (array) apply_filters('pagewell_ignored_meta', []), true)) {
            self::userWritten($user);
        }
    }

    /**
     * Users have more or fewer published posts of this type: maybe the first, or not even one. A post of a
     * command or an import may have no author.
     *
     * Of posts that are published at the same time, the one with the smallest id finds no other before it. Of
     * those that go, the last one to look finds none at all.
     */
    public static function writtenBy(string $type, ?\WP_Post $comes, ?\WP_Post $goes): void
    {
        global $wpdb;
        foreach (['<' => $comes, '<>' => $goes] as $which => $post) {
            if ((int) $post?->post_author > 0) {
                $other = $wpdb->prepare("SELECT 1 FROM $wpdb->posts WHERE post_author = %d AND post_type = %s AND post_status = 'publish' AND ID $which %d LIMIT 1", $post->post_author, $post->post_type, $post->ID);
                Changes::add("written:$type", ...($wpdb->get_var($other) === null ? ['authors'] : []));
            }
        }
    }

    /** A user is removed from the network's current blog; the posts there get another author, or none. */
    public static function userRemoved(int $user, mixed $blog, mixed $heir): void
    {
        self::userDeleted($user, (int) $heir > 0 ? $heir : null);
    }

    /** Before a user is deleted; the posts may get another author without further hooks. */
    public static function userDeleted(int $user, mixed $heir): void
    {
        self::userWritten($user);
        Changes::add("by:$user", 'authors', 'modified');
        if ($heir !== null) {
            Changes::add('by:' . (int) $heir, 'every', ...((int) $heir === 0 ? array_map(static fn (string $type): string => "by:0/$type", array_values(get_post_types())) : []));
            self::inherited($user);
        }
    }

    /** The posts of a user get another author. */
    private static function inherited(int $user): void
    {
        global $wpdb;
        $posts = $wpdb->get_results($wpdb->prepare("SELECT ID, post_type, post_parent FROM $wpdb->posts WHERE post_author = %d LIMIT %d", $user, self::INHERITED_MAX + 1));
        $isInUrl = str_contains((string) get_option('permalink_structure'), '%author%');
        foreach (count($posts) > self::INHERITED_MAX ? [] : $posts as $post) {
            if (Tags::isData($post->post_type)) {
                Changes::add("post:$post->ID", "text:$post->ID", "every:$post->post_type", "written:$post->post_type", ...QueryParent::below($post), ...($isInUrl ? ["name:$post->ID", "names:$post->post_type"] : []));
            }
        }
        if (count($posts) > self::INHERITED_MAX) {
            Changes::add(Tags::SITE);
        }
    }
}
