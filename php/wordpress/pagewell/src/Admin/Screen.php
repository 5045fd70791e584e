<?php

/**
 * The page Settings → Pagewell: whether Pagewell is reachable, the changes recently sent, cookies that prevent
 * caching with the line that helps, and a button that purges everything. There are no settings: which cookies count
 * is decided where Pagewell is configured, or in code. The result of the button is shown once.
 *
 * Requires the capability manage_options; the button also requires its nonce.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Admin;

use Pagewell\WordPress\Core\Front;
use Pagewell\WordPress\Purge\Changes;
use Pagewell\WordPress\Purge\ControlClient;
use Pagewell\WordPress\Purge\Journal;
use Pagewell\WordPress\Purge\Pending;
use Pagewell\WordPress\Read\PageCookies;
use Pagewell\WordPress\Tags;

/**
 * The settings page of the plugin.
 *
 * @internal
 */
final class Screen
{
    private const CAPABILITY = 'manage_options';
    private const DROP = 'pagewell_drop';
    private const COOKIES_MAX = 10;

    /** Adds the page to the menu, and registers the action of the button. */
    public static function register(): void
    {
        add_action('admin_menu', static function (): void {
            add_options_page('Pagewell', 'Pagewell', self::CAPABILITY, 'pagewell', self::show(...));
        });
        add_action('admin_post_' . self::DROP, self::drop(...));
    }

    private static function drop(): void
    {
        if (!current_user_can(self::CAPABILITY)) {
            wp_die(esc_html__('Sorry, you are not allowed to do this.', 'pagewell'), '', ['response' => 403]);
        }
        check_admin_referer(self::DROP);
        set_transient(self::outcome(), self::dropAll(), 300);
        wp_safe_redirect(menu_page_url('pagewell', false) ?: admin_url('options-general.php?page=pagewell'));
        exit;
    }

    /** @return array{string, string} a kind of notice, and its text */
    private static function dropAll(): array
    {
        if (Front::canCarry() && Front::isGivenByIt()) {
            // Pagewell purges them before it forwards the response, so before the notice is shown.
            Changes::add(Tags::SITE);
            return ['success', __('All pages of this site were purged.', 'pagewell')];
        }
        $fault = ControlClient::invalidate([Tags::full(Tags::SITE)]);
        if ($fault === null) {
            Journal::sent('control', [Tags::full(Tags::SITE)], new Pending());
            return ['success', __('All pages of this site were purged.', 'pagewell')];
        }
        if (Front::canCarry()) {
            Changes::add(Tags::SITE);
            /* translators: %s: why the call failed */
            return ['warning', sprintf(__('The response to your request told Pagewell to purge all pages. This could not be confirmed, because the control interface could not be called: %s', 'pagewell'), $fault)];
        }
        Changes::postpone([Tags::full(Tags::SITE)], $fault);
        /* translators: %s: why the call failed */
        return ['error', sprintf(__('The pages were not purged: %s. The plugin tries again with the next change, or within a minute.', 'pagewell'), $fault)];
    }

    private static function outcome(): string
    {
        return 'pagewell_dropped_' . get_current_user_id();
    }

    private static function show(): void
    {
        $fault = ControlClient::health();
        /* translators: %s: an address */
        $control = $fault === null ? sprintf(__('It answers at %s.', 'pagewell'), ControlClient::address()) : $fault;
        $front = Front::isInFront() ? __('Yes: this page came through it.', 'pagewell') : __('No: this page did not come through it.', 'pagewell');
        $pending = count(Journal::pending()->tags);
        /* translators: %s: a number of tags */
        $waiting = sprintf(__('Tags that wait: %s. They are sent with the next change, or within a minute.', 'pagewell'), (string) $pending);
        echo '<div class="wrap"><h1>Pagewell</h1>';
        $outcome = get_transient(self::outcome());
        if (is_array($outcome)) {
            delete_transient(self::outcome());
            printf('<div class="notice notice-%s"><p>%s</p></div>', esc_attr($outcome[0]), esc_html($outcome[1]));
        }
        echo '<table class="widefat striped" style="max-width:60em"><tbody>';
        self::row(__('Is Pagewell in front of this site?', 'pagewell'), $front);
        self::row(__('Control interface', 'pagewell'), $control);
        self::row(__('Changes not sent yet', 'pagewell'), $pending === 0 ? __('None.', 'pagewell') : $waiting);
        echo '</tbody></table>';
        self::showLately();
        self::showCookies();
        echo '<h2>' . esc_html__('Purge', 'pagewell') . '</h2><form method="post" action="' . esc_url(admin_url('admin-post.php')) . '">';
        wp_nonce_field(self::DROP);
        echo '<input type="hidden" name="action" value="' . esc_attr(self::DROP) . '">';
        submit_button(__('Purge all pages', 'pagewell'), 'secondary', 'submit', false);
        echo '</form></div>';
    }

    private static function showLately(): void
    {
        echo '<h2>' . esc_html__('Recent changes', 'pagewell') . '</h2><table class="widefat striped" style="max-width:60em"><thead><tr><th scope="col">'
            . esc_html__('Time, and how it was sent', 'pagewell') . '</th><th scope="col">' . esc_html__('Purged tags', 'pagewell') . '</th></tr></thead><tbody>';
        foreach (Journal::recent() as $entry) {
            $more = $entry['count'] - count($entry['tags']);
            $way = $entry['way'] === 'answer' ? __('on the response to the write', 'pagewell') : __('over the control interface', 'pagewell');
            /* translators: %s: a number of tags */
            $rest = $more > 0 ? ' ' . sprintf(__('and %s more', 'pagewell'), (string) $more) : '';
            self::row(wp_date('Y-m-d H:i:s', $entry['at']) . " $way", implode(', ', $entry['tags']) . $rest);
        }
        echo '</tbody></table>';
    }

    /** Those of logins are none of them: their visitors get pages of their own. */
    private static function showCookies(): void
    {
        $cookies = ControlClient::cookies();
        $shown = array_filter(is_array($cookies) ? $cookies : [], static fn (array $cookie): bool => in_array($cookie['effect'], ['set', 'bypass', 'own'], true) && !PageCookies::mayBeLogin([$cookie['name']]));
        if ($shown === []) {
            return;
        }
        echo '<h2>' . esc_html__('Cookies that prevent caching', 'pagewell') . '</h2><p><strong>' . esc_html__('Never name the cookie of a login, a session or a cart: the page of one visitor would be shown to others.', 'pagewell') . '</strong></p><table class="widefat striped" style="max-width:60em"><tbody>';
        foreach (array_slice($shown, 0, self::COOKIES_MAX) as ['name' => $name, 'effect' => $effect, 'url' => $url]) {
            /* translators: 1: a URL, 2: a line of code */
            $set = __('Pages set it, such as %1$s. If its value is the same for every visitor, or if only scripts in the browser read it, this helps in a plugin: %2$s', 'pagewell');
            /* translators: 1: a URL, 2: a line of configuration */
            $bypass = __('Visitors who have it get pages from PHP, such as %1$s. If only scripts in the browser read it, this line helps in pagewell.toml, in [cookies]: %2$s', 'pagewell');
            $line = $effect === 'set' ? "add_filter('pagewell_shared_cookies', fn (\$names) => [...\$names, " . var_export($name, true) . ']);' : 'ignore = [' . wp_json_encode($name, JSON_UNESCAPED_SLASHES) . ']';
            self::row($name, sprintf($effect === 'set' ? $set : $bypass, $url, $line));
        }
        echo '</tbody></table>';
    }

    private static function row(string $what, string $text): void
    {
        echo '<tr><td>' . esc_html($what) . '</td><td>' . esc_html($text) . '</td></tr>';
    }
}
