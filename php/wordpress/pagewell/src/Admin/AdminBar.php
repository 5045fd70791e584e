<?php

/**
 * The entry of the admin bar on pages of the site: whether visitors get the page from the cache, why
 * not, and a link that purges it.
 *
 * For users with manage_options. The link has a nonce, purges only URLs of this site, and returns to
 * the page, whose bar shows the result once.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Admin;

use Pagewell\WordPress\Core\Explanation;
use Pagewell\WordPress\Observer;

/**
 * The admin bar.
 *
 * @internal
 */
final class AdminBar
{
    private const CAPABILITY = 'manage_options';
    private const PURGE = 'pagewell_purge_page';

    /** Registers the entry, and the action of its link. */
    public static function register(): void
    {
        add_action('admin_bar_menu', Observer::of('admin_bar_menu', self::show(...)), 90);
        add_action('admin_post_' . self::PURGE, self::purge(...));
    }

    private static function show(\WP_Admin_Bar $bar): void
    {
        if (is_admin() || !current_user_can(self::CAPABILITY)) {
            return;
        }
        $url = PageState::url();
        $found = PageState::quickly($url);
        $state = PageState::sentence($found);
        $outcome = get_transient(self::outcome());
        if (is_string($outcome)) {
            delete_transient(self::outcome());
            $state = $outcome;
        }
        $bar->add_node(['id' => 'pagewell', 'title' => 'Pagewell', 'href' => admin_url('options-general.php?page=pagewell'), 'meta' => ['title' => $state]]);
        $bar->add_node(['id' => 'pagewell-state', 'parent' => 'pagewell', 'title' => esc_html($state)]);
        if ($found instanceof Explanation && $found->remedy !== null && !$found->isHit()) {
            $bar->add_node(['id' => 'pagewell-remedy', 'parent' => 'pagewell', 'title' => esc_html($found->remedy)]);
        }
        $purge = add_query_arg(['action' => self::PURGE, 'url' => rawurlencode($url)], admin_url('admin-post.php'));
        $bar->add_node(['id' => 'pagewell-purge', 'parent' => 'pagewell', 'title' => esc_html__('Purge this page', 'pagewell'), 'href' => wp_nonce_url($purge, self::PURGE)]);
    }

    private static function purge(): void
    {
        if (!current_user_can(self::CAPABILITY)) {
            wp_die(esc_html__('Sorry, you are not allowed to do this.', 'pagewell'), '', ['response' => 403]);
        }
        check_admin_referer(self::PURGE);
        $url = $_GET['url'] ?? null;
        $url = is_string($url) ? esc_url_raw(wp_unslash($url)) : '';
        if (!PageState::isOurs($url)) {
            wp_die(esc_html__('This is not a page of this site.', 'pagewell'), '', ['response' => 400]);
        }
        $purged = PageState::purge($url);
        /* translators: %s: why the call failed */
        $text = is_string($purged) ? sprintf(__('The page was not purged: %s', 'pagewell'), $purged) : ($purged === 0 ? __('The page was not cached.', 'pagewell') : __('The page was purged.', 'pagewell'));
        set_transient(self::outcome(), $text, 300);
        wp_safe_redirect($url);
        exit;
    }

    private static function outcome(): string
    {
        return 'pagewell_purged_' . get_current_user_id();
    }
}
