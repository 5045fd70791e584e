<?php

/**
 * A plugin that WordPress always loads: the tests' WordPress sends no mail, and lets one address
 * write several comments within a moment.
 */

add_filter('comment_flood_filter', '__return_false', PHP_INT_MAX);

add_shortcode('authors', static fn () => wp_list_authors(['echo' => false, 'optioncount' => true, 'exclude_admin' => false]));

add_shortcode('editors', static fn () => implode(', ', wp_list_pluck(get_users(['role' => 'editor']), 'display_name')));

add_shortcode('trade', static fn () => 'Ada: ' . get_user_meta(get_user_by('login', 'ada')->ID ?? 0, 'trade', true));

add_shortcode('depth', static fn () => 'Depth: ' . get_post_meta(get_the_ID(), 'depth', true));

add_shortcode('register', static fn () => 'Join us: ' . wp_register('', '', false));

add_shortcode('taste', static function () {
    $taste = $_COOKIE['taste'] ?? 'nothing';
    unset($_COOKIE['taste']);
    return "You like $taste";
});

add_shortcode('as-admin', static function () {
    wp_set_current_user(1);
    $shown = 'Hello, ' . wp_get_current_user()->display_name;
    wp_set_current_user(0);
    return $shown;
});

add_action('init', static function (): void {
    get_option('with_harbour') && add_rewrite_rule('^harbour/?$', 'index.php?pagename=about', 'top');
});

function wp_mail(): bool
{
    return true;
}
