<?php

/**
 * The page Settings → Pagewell: whether Pagewell is reachable, the changes recently sent, and a
 * button that purges everything. There are no settings. The result of the button is shown once.
 *
 * For those who may manage options; the button also asks for its nonce.
 */

declare(strict_types=1);

namespace Pagewell\WordPress;

/** The plugin's only page. */
final class Screen
{
    private const CAPABILITY = 'manage_options';
    private const DROP = 'pagewell_drop';
    private const DROPPED = 'All pages of this site were dropped.';

    /** Adds it to the menu, and registers the button's action. */
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
            wp_die('You may not do this.', '', ['response' => 403]);
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
            return ['success', self::DROPPED];
        }
        $fault = Control::invalidate([Tags::full(Tags::SITE)]);
        if ($fault === null) {
            Journal::told('control', [Tags::full(Tags::SITE)], new Pending());
            return ['success', self::DROPPED];
        }
        if (Front::canCarry()) {
            Changes::add(Tags::SITE);
            return ['warning', "The response to your request tells Pagewell to drop all pages. Whether it did is not known, because its control interface could not be called: $fault"];
        }
        Changes::postpone([Tags::full(Tags::SITE)], $fault);
        return ['error', "The pages were not dropped: $fault. This is tried again with the next change, or within a minute."];
    }

    private static function outcome(): string
    {
        return 'pagewell_dropped_' . get_current_user_id();
    }

    private static function show(): void
    {
        $fault = Control::health();
        $control = $fault === null ? 'It answers at ' . Control::address() . '.' : $fault;
        $front = Front::isInFront() ? 'Yes: this page came through it.' : 'No: this page did not come through it.';
        $pending = count(Journal::pending()->tags);
        echo '<div class="wrap"><h1>Pagewell</h1>';
        $outcome = get_transient(self::outcome());
        if (is_array($outcome)) {
            delete_transient(self::outcome());
            printf('<div class="notice notice-%s"><p>%s</p></div>', esc_attr($outcome[0]), esc_html($outcome[1]));
        }
        echo '<table class="widefat striped" style="max-width:60em"><tbody>';
        self::row('Is it in front?', $front);
        self::row('Its control interface', $control);
        self::row('Changes that could not be told yet', $pending === 0 ? 'None.' : "$pending. They are told with the next change, or within a minute.");
        echo '</tbody></table>';
        self::showLately();
        echo '<h2>Everything</h2><form method="post" action="' . esc_url(admin_url('admin-post.php')) . '">';
        wp_nonce_field(self::DROP);
        echo '<input type="hidden" name="action" value="' . esc_attr(self::DROP) . '">';
        submit_button('Drop all pages', 'secondary', 'submit', false);
        echo '</form></div>';
    }

    private static function showLately(): void
    {
        echo '<h2>Last changes</h2><table class="widefat striped" style="max-width:60em"><tbody>';
        foreach (Journal::lately() as $entry) {
            $more = $entry['count'] - count($entry['tags']);
            $way = $entry['way'] === 'answer' ? 'on the answer to the write' : 'over the control interface';
            self::row(wp_date('Y-m-d H:i:s', $entry['at']) . " $way", implode(', ', $entry['tags']) . ($more > 0 ? " and $more more" : ''));
        }
        echo '</tbody></table>';
    }

    private static function row(string $what, string $text): void
    {
        echo '<tr><td>' . esc_html($what) . '</td><td>' . esc_html($text) . '</td></tr>';
    }
}
