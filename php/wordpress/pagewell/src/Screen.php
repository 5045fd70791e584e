<?php

/**
 * The page Settings → Pagewell: whether Pagewell is there, what it was told lately, and a button
 * that drops everything. There is nothing to set.
 *
 * For those who may manage options; the button besides asks for its nonce.
 */

declare(strict_types=1);

namespace Pagewell\WordPress;

/** The plugin's only page. */
final class Screen
{
    private const CAPABILITY = 'manage_options';
    private const DROP = 'pagewell_drop';

    /** Puts it into the menu, and the button's action where WordPress looks for it. */
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
        Changes::add(Tags::SITE);
        wp_safe_redirect(add_query_arg('dropped', '1', menu_page_url('pagewell', false) ?: admin_url('options-general.php?page=pagewell')));
        exit;
    }

    private static function show(): void
    {
        $fault = Control::health();
        $control = $fault === null ? 'It answers at ' . Control::address() . '.' : $fault;
        $front = Changes::isInFront() ? 'Yes: this page came through it.' : 'No: this page did not come through it.';
        $pending = count(Journal::pending()->tags);
        echo '<div class="wrap"><h1>Pagewell</h1>';
        if (isset($_GET['dropped'])) {
            echo '<div class="notice notice-success"><p>All pages of this site were dropped.</p></div>';
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
