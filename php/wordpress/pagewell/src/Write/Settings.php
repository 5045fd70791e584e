<?php

/**
 * Decides whether a written option is a setting, on which pages may depend, or a note.
 *
 *     registered by register_setting()                       a setting, always: also by REST
 *     written by a user who may manage options, in a         a setting: a plugin's own page, admin-post,
 *     request of the administration or of REST that writes   admin-ajax or REST route
 *     the same, in a request about content                   a note: posts, terms, comments, users, files
 *     written by `wp option`                                 a setting
 *     anything else                                          a note: plugins write many
 *     of a name like a note's (NOTES)                        a note: transients, cron, locks, times, counters
 *
 * In doubt it is a setting if a user is editing, and a note in a page view or a job. The filter
 * `pagewell_options` adds settings that this misses; `pagewell_ignored_options` removes those it
 * wrongly includes.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Write;

use Pagewell\WordPress\Core\Front;

/**
 * Distinguishes settings from notes.
 *
 * @internal
 */
final class Settings
{
    /** Options that are never settings. */
    private const NEVER = '/^(_|cron$|pagewell_|recently_|recovery_|action_scheduler_|(secure_)?auth_(key|salt)$|(logged_in|nonce)_(key|salt)$)|[._-]lock$/i';

    /** Name patterns of notes of WordPress and plugins. */
    private const NOTES = '/(^|[._-])(locks?|nonce|transient|cache|queue|cron|notices?|dismiss(ed)?|nag|timestamp|last|logs?|stats)([._-]|$)'
        . '|^(auto_updater|auto_update_|fresh_site|can_compress_scripts|db_upgraded|finished_|uninstall_plugins|adminhash|admin_email_lifespan|theme_switched?|customize_stashed|nav_menu_options|delete_blog_hash|dashboard_widget_options|https_detection|wp_force_deactivated)/i';

    /** Administration pages about content, or for settings that other hooks report. */
    private const CONTENT = [
        'post.php', 'post-new.php', 'edit.php', 'upload.php', 'media.php', 'media-new.php', 'async-upload.php', 'edit-comments.php', 'comment.php', 'edit-tags.php', 'term.php', 'nav-menus.php',
        'link.php', 'link-add.php', 'link-manager.php', 'users.php', 'user-new.php', 'user-edit.php', 'profile.php', 'index.php', 'update.php', 'update-core.php', 'plugins.php', 'import.php',
    ];

    /** Whether this option, which is being written, is a setting. */
    public static function isSaved(string $option): bool
    {
        if (preg_match(self::NEVER, $option) === 1 || in_array($option, (array) apply_filters('pagewell_ignored_options', []), true)) {
            return false;
        }
        // WordPress keeps the hierarchy of the terms of a taxonomy there.
        if (str_ends_with($option, '_children') && taxonomy_exists(substr($option, 0, -strlen('_children')))) {
            return false;
        }
        return isset(get_registered_settings()[$option]) || (preg_match(self::NOTES, $option) !== 1 && self::isBySomebody());
    }

    /** Whether this option may be a list by which pages are made. Its name may begin with `_`; a page view fills caches. */
    public static function mayList(string $option): bool
    {
        $isPageView = PHP_SAPI !== 'cli' && !Front::isUnsafe() && !is_admin() && !wp_doing_cron();
        return !$isPageView && preg_match('/transient/', $option) !== 1 && preg_match(self::NOTES, ltrim($option, '_')) !== 1 && !in_array($option, (array) apply_filters('pagewell_ignored_options', []), true);
    }

    private static function isBySomebody(): bool
    {
        if (defined('WP_CLI') && constant('WP_CLI')) {
            $words = preg_grep('/^-/', array_slice((array) ($_SERVER['argv'] ?? []), 1), PREG_GREP_INVERT);
            return reset($words) === 'option';
        }
        $writes = Front::isUnsafe() || isset($_REQUEST['_wpnonce']);
        // Before `init`, WordPress does not know the user.
        return $writes && did_action('init') > 0 && !self::isAboutContent() && current_user_can('manage_options');
    }

    /** Whether the request is about content, or is neither an administration nor a REST request. */
    private static function isAboutContent(): bool
    {
        if (defined('REST_REQUEST') && constant('REST_REQUEST')) {
            $route = (string) ($GLOBALS['wp']->query_vars['rest_route'] ?? '');
            return str_starts_with($route, '/wp/v2/') && !str_starts_with($route, '/wp/v2/settings');
        }
        if (wp_doing_ajax()) {
            $core = [...(array) ($GLOBALS['core_actions_get'] ?? []), ...(array) ($GLOBALS['core_actions_post'] ?? [])];
            return in_array($_REQUEST['action'] ?? '', $core, true);
        }
        // The settings page of a plugin may be below that of a post type.
        return !is_admin() || (!isset($_REQUEST['page']) && in_array($GLOBALS['pagenow'] ?? '', self::CONTENT, true));
    }
}
