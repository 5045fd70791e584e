<?php

/**
 * A theme that keeps what it has made, as many themes do:
 *
 *     the markup of a menu           a transient of 12 hours, deleted when the menu is written
 *     the ids of the latest posts    a transient of a day, deleted when a post is written
 *     the markup of a sidebar        a transient of 5 minutes, which nothing deletes
 *     the authors                    wp_cache_set(), of the request or of a persistent object cache, deleted by its group's version
 */

add_action('after_setup_theme', static function (): void {
    add_theme_support('title-tag');
    register_nav_menus(['footer' => 'Footer']);
});

function cached_menu(): string
{
    $menu = get_transient('cached_menu');
    if (!is_string($menu)) {
        $menu = (string) wp_nav_menu(['theme_location' => 'footer', 'echo' => false, 'container' => false]);
        set_transient('cached_menu', $menu, 12 * HOUR_IN_SECONDS);
    }
    return $menu;
}

/** @return list<int> */
function cached_latest(): array
{
    $ids = get_transient('cached_latest');
    if (!is_array($ids)) {
        $ids = get_posts(['numberposts' => 3, 'fields' => 'ids']);
        set_transient('cached_latest', $ids, DAY_IN_SECONDS);
    }
    return $ids;
}

function cached_sidebar(): string
{
    $sidebar = get_transient('cached_sidebar');
    if (!is_string($sidebar)) {
        $counts = array_map(static fn (WP_Term $term): string => "<li>$term->name: $term->count</li>", get_categories());
        $sidebar = '<ul>' . implode($counts) . '</ul>';
        set_transient('cached_sidebar', $sidebar, 5 * MINUTE_IN_SECONDS);
    }
    return $sidebar;
}

function cached_authors(): string
{
    $key = 'authors:' . wp_cache_get_last_changed('users');
    $authors = wp_cache_get($key, 'cached');
    if (!is_string($authors)) {
        $authors = implode(', ', wp_list_pluck(get_users(['has_published_posts' => true]), 'display_name'));
        wp_cache_set($key, $authors, 'cached');
    }
    return $authors;
}

foreach (['wp_update_nav_menu', 'wp_delete_nav_menu'] as $hook) {
    add_action($hook, static fn (): bool => delete_transient('cached_menu'));
}
foreach (['save_post', 'deleted_post', 'trashed_post'] as $hook) {
    add_action($hook, static fn (): bool => delete_transient('cached_latest'));
}
