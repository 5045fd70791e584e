<?php

/**
 * Fills an empty database with a small blog: what the tests ask for by name is made here.
 *
 * Five posts a day apart in two categories and by two authors, a page, a menu, comments, and the
 * classic theme without widgets, so that the pages show different data. Run as a command, in the
 * directory of WordPress.
 */

define('WP_INSTALLING', true);
$_SERVER += ['HTTP_HOST' => 'blog.test', 'REQUEST_URI' => '/', 'SERVER_PROTOCOL' => 'HTTP/1.1', 'REQUEST_METHOD' => 'GET'];
require 'wp-load.php';
require_once ABSPATH . 'wp-admin/includes/admin.php';
require_once ABSPATH . 'wp-admin/includes/upgrade.php';

wp_install('The Harbour Blog', 'admin', 'admin@blog.test', true, '', 'secret-of-admin');
wp_delete_post(1, true);
wp_delete_post(2, true);
update_option('sidebars_widgets', ['wp_inactive_widgets' => [], 'sidebar-1' => [], 'array_version' => 3]);
update_option('permalink_structure', '/%postname%/');
update_option('comment_moderation', '1');
update_option('timezone_string', '');
update_option('active_plugins', is_dir(WP_CONTENT_DIR . '/plugins/pagewell') ? ['pagewell/pagewell.php'] : []);
switch_theme('twentytwentyone');

$ada = wp_insert_user(['user_login' => 'ada', 'user_pass' => 'secret-of-ada', 'user_email' => 'ada@blog.test', 'display_name' => 'Ada L.', 'role' => 'author']);
$ships = wp_insert_term('Ships', 'category')['term_id'];
$birds = wp_insert_term('Birds', 'category')['term_id'];
$stories = [
    ['ferry', 'The ferry is late', $ships, 1], ['gull', 'A gull was seen', $birds, $ada], ['tug', 'A tug for the port', $ships, 1],
    ['tern', 'Terns are back', $birds, $ada], ['buoy', 'A new buoy', $ships, 1],
];
foreach ($stories as $day => [$slug, $title, $category, $author]) {
    wp_insert_post([
        'post_title' => $title, 'post_name' => $slug, 'post_content' => "All about: $title.", 'post_status' => 'publish',
        'post_author' => $author, 'post_category' => [$category], 'post_date' => sprintf('2026-03-%02d 12:00:00', $day + 1),
    ]);
}
$about = wp_insert_post(['post_title' => 'About us', 'post_name' => 'about', 'post_content' => 'Who we are.', 'post_status' => 'publish', 'post_type' => 'page', 'post_author' => 1]);
$menu = wp_create_nav_menu('Main');
wp_update_nav_menu_item($menu, 0, ['menu-item-title' => 'Of us', 'menu-item-object' => 'page', 'menu-item-object-id' => $about, 'menu-item-type' => 'post_type', 'menu-item-status' => 'publish']);
set_theme_mod('nav_menu_locations', ['footer' => $menu]);
flush_rewrite_rules();
delete_option('theme_switched');
