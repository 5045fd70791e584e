<?php

/**
 * Whether an option that is written is a setting, which pages may be made with, or a note.
 *
 *     registered by register_setting()                       a setting, whoever writes it: also by REST
 *     written by somebody who may manage options, in a        a setting: a plugin's own page, admin-post,
 *     request of the administration or of REST that writes   admin-ajax or REST route
 *     the same, in a request about content                   a note: posts, terms, comments, users, files
 *     written by `wp option`                                 a setting
 *     whatever else                                          a note: plugins write many
 *     of a name like a note's (NOTES)                        a note: transients, cron, locks, times, counters
 *
 * In doubt it is a setting while somebody is at work, and a note where nobody is: a page view, a
 * job. What that misses the filter `pagewell_options` names; what it takes for too much,
 * `pagewell_ignored_options`.
 */

declare(strict_types=1);

namespace Pagewell\WordPress;

/** Tells settings from notes. */
final class Settings
{
    /** Never a setting, whoever writes it. */
    private const NEVER = '/^(_|cron$|pagewell_|recently_|recovery_|action_scheduler_|(secure_)?auth_(key|salt)$|(logged_in|nonce)_(key|salt)$)|[._-]lock$/i';

    /** Names that WordPress and plugins keep notes under. */
    private const NOTES = '/(^|[._-])(locks?|nonce|transient|cache|queue|cron|notices?|dismiss(ed)?|nag|timestamp|last|logs?|stats)([._-]|$)'
        . '|^(auto_updater|auto_update_|fresh_site|can_compress_scripts|db_upgraded|finished_|uninstall_plugins|adminhash|admin_email_lifespan|theme_switched?|customize_stashed|nav_menu_options|delete_blog_hash|dashboard_widget_options|https_detection|wp_force_deactivated)/i';

    /** Pages of the administration that are about content, or write settings of which other hooks speak. */
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
        return isset(get_registered_settings()[$option]) || (preg_match(self::NOTES, $option) !== 1 && self::isBySomebody());
    }

    private static function isBySomebody(): bool
    {
        if (defined('WP_CLI') && constant('WP_CLI')) {
            $words = preg_grep('/^-/', array_slice((array) ($_SERVER['argv'] ?? []), 1), PREG_GREP_INVERT);
            return reset($words) === 'option';
        }
        $writes = Front::isUnsafe() || isset($_REQUEST['_wpnonce']);
        // Before that WordPress does not know who asks.
        return $writes && did_action('init') > 0 && !self::isAboutContent() && current_user_can('manage_options');
    }

    /** Whether the request is about content, or about nothing that the administration or REST serve. */
    private static function isAboutContent(): bool
    {
        if (defined('REST_REQUEST') && constant('REST_REQUEST')) {
            $route = (string) ($GLOBALS['wp']->query_vars['rest_route'] ?? '');
            return str_starts_with($route, '/wp/v2/') && !str_starts_with($route, '/wp/v2/settings');
        }
        if (wp_doing_ajax()) {
            $core = [...(array) ($GLOBALS['core_actions_get'] ?? []), ...(array) ($GLOBALS['core_actions_post'] ?? [])];
            return in_array((string) ($_REQUEST['action'] ?? ''), $core, true);
        }
        // A plugin's page of settings may stand under that of a type of posts.
        return !is_admin() || (!isset($_REQUEST['page']) && in_array($GLOBALS['pagenow'] ?? '', self::CONTENT, true));
    }
}
