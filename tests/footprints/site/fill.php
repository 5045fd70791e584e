<?php

/**
 * Fills an empty database with the blog of the recordings: the same rows each time, but for passwords.
 *
 * 300 posts, one every second day from 2022-01-05; 20 pages; 900 comments; 5 users; 10 categories, 40
 * tags and a menu. Post N has the id 1000 + N, page N the id 2000 + N. Run as a command, in the directory
 * of WordPress. The dates are in the past whenever the blog is recorded.
 */

define('WP_INSTALLING', true);
$_SERVER += ['HTTP_HOST' => 'blog.test', 'REQUEST_URI' => '/', 'SERVER_PROTOCOL' => 'HTTP/1.1', 'REQUEST_METHOD' => 'GET'];
require 'wp-load.php';
require_once ABSPATH . 'wp-admin/includes/admin.php';
require_once ABSPATH . 'wp-admin/includes/upgrade.php';

const WORDS = [
    'beacon', 'cedar', 'cipher', 'copper', 'drift', 'ember', 'engine', 'fable', 'feather', 'glacier', 'harbor', 'horizon',
    'island', 'ivory', 'journey', 'kettle', 'kitchen', 'lantern', 'ledger', 'letter', 'magnet', 'marble', 'market', 'meadow',
    'needle', 'orchard', 'paper', 'pencil', 'quarry', 'river', 'saddle', 'signal', 'tunnel', 'umbrella', 'valley', 'velvet',
    'violet', 'winter', 'yarn', 'zephyr',
];

/** A number below the bound: a linear congruential generator, the same sequence each time. */
function drawn(int $below): int
{
    static $state = 7;
    $state = ($state * 1103515245 + 12345) % 2147483648;
    return intdiv($state, 65536) % $below;
}

function sentence(int $words): string
{
    $drawn = array_map(static fn () => WORDS[drawn(count(WORDS))], range(1, $words));
    return ucfirst(implode(' ', $drawn)) . '.';
}

function paragraphs(int $number): string
{
    return implode("\n\n", array_map(
        static fn () => "<!-- wp:paragraph -->\n<p>" . sentence(12) . ' ' . sentence(9) . "</p>\n<!-- /wp:paragraph -->",
        range(1, $number)
    ));
}

/** Inserts rows with the same columns, in a few statements. */
function insert_rows(string $table, array $rows): void
{
    global $wpdb;
    foreach (array_chunk($rows, 200) as $chunk) {
        $values = array_map(
            static fn (array $row) => '(' . implode(', ', array_map(static fn ($value) => $wpdb->prepare('%s', $value), $row)) . ')',
            $chunk
        );
        $columns = implode(', ', array_keys($chunk[0]));
        $wpdb->query("INSERT INTO $table ($columns) VALUES " . implode(', ', $values)) || exit("$wpdb->last_error\n");
    }
}

function a_post(int $id, string $name, string $type, int $author, string $date, int $parent, int $paragraphs): array
{
    return [
        'ID' => $id, 'post_author' => $author, 'post_date' => $date, 'post_date_gmt' => $date, 'post_title' => ucfirst(strtr($name, '-', ' ')),
        'post_content' => paragraphs($paragraphs), 'post_excerpt' => '', 'post_status' => 'publish', 'comment_status' => 'open',
        'ping_status' => 'open', 'post_name' => $name, 'to_ping' => '', 'pinged' => '', 'post_modified' => $date,
        'post_modified_gmt' => $date, 'post_content_filtered' => '', 'post_parent' => $parent, 'guid' => "http://blog.test/?p=$id",
        'post_type' => $type,
    ];
}

function a_comment(int $post, string $date): array
{
    $name = ['Mallory', 'Oscar', 'Peggy', 'Trent', 'Victor'][drawn(5)];
    return [
        'comment_post_ID' => $post, 'comment_author' => $name, 'comment_author_email' => strtolower($name) . '@visitors.test',
        'comment_author_url' => '', 'comment_author_IP' => '127.0.0.1', 'comment_date' => $date, 'comment_date_gmt' => $date,
        'comment_content' => sentence(8), 'comment_approved' => '1', 'comment_type' => 'comment',
    ];
}

/** @return int[] the term_taxonomy_ids */
function create_terms(string $taxonomy, array $names, int $parent = 0): array
{
    return array_map(
        static fn (string $name) => (int) wp_insert_term(ucfirst($name), $taxonomy, ['parent' => $parent])['term_taxonomy_id'],
        $names
    );
}

/** @param int[] $authors */
function create_posts(array $authors, array $categories, array $tags): void
{
    global $wpdb;
    $posts = $comments = $relations = $meta = [];
    for ($number = 1; $number <= 300; $number++) {
        $id = 1000 + $number;
        $day = strtotime('2022-01-03 08:00:00 UTC') + $number * 2 * DAY_IN_SECONDS;
        $author = $authors[$number % count($authors)];
        $posts[] = a_post($id, "post-$number", 'post', $author, gmdate('Y-m-d H:i:s', $day), 0, $number === 300 ? 12 : 2);
        $terms = [$categories[drawn(count($categories))], $tags[drawn(20)], $tags[20 + drawn(20)]];
        foreach ($terms as $term) {
            $relations[] = ['object_id' => $id, 'term_taxonomy_id' => $term, 'term_order' => 0];
        }
        $meta[] = ['post_id' => $id, 'meta_key' => 'rating', 'meta_value' => 1 + drawn(5)];
        for ($comment = $number > 295 ? 12 : 3; $comment > 0; $comment--) {
            $comments[] = a_comment($id, gmdate('Y-m-d H:i:s', $day + $comment * 3600));
        }
    }
    for ($number = 1; $number <= 20; $number++) {
        $posts[] = a_post(2000 + $number, "page-$number", 'page', 1, '2022-01-02 10:00:00', $number === 15 ? 2001 : 0, 2);
    }
    insert_rows($wpdb->posts, $posts);
    insert_rows($wpdb->comments, $comments);
    insert_rows($wpdb->term_relationships, $relations);
    insert_rows($wpdb->postmeta, $meta);
    $wpdb->query("UPDATE $wpdb->posts SET comment_count = (SELECT COUNT(*) FROM $wpdb->comments WHERE comment_post_ID = ID)");
    $wpdb->query("UPDATE $wpdb->term_taxonomy t SET count = (SELECT COUNT(*) FROM $wpdb->term_relationships r
        WHERE r.term_taxonomy_id = t.term_taxonomy_id)");
}

function create_menu(int $category): void
{
    $menu = wp_create_nav_menu('Main');
    $add = static fn (array $item) => wp_update_nav_menu_item($menu, 0, $item + ['menu-item-status' => 'publish']);
    $add(['menu-item-title' => 'Start', 'menu-item-type' => 'custom', 'menu-item-url' => 'http://blog.test/']);
    $add(['menu-item-type' => 'post_type', 'menu-item-object' => 'page', 'menu-item-object-id' => 2001]);
    $add(['menu-item-type' => 'taxonomy', 'menu-item-object' => 'category', 'menu-item-object-id' => $category]);
    set_theme_mod('nav_menu_locations', ['primary' => $menu]);
}

wp_install('The Lantern', 'admin', 'admin@blog.test', true, '', 'secret-of-admin');
array_map(static fn (int $id) => wp_delete_post($id, true), [1, 2, 3]);
switch_theme('twentytwentyone');
if (getenv('WP_WIDGETS') !== '1') {
    update_option('sidebars_widgets', ['wp_inactive_widgets' => [], 'sidebar-1' => [], 'array_version' => 3]);
}
update_option('permalink_structure', '/%year%/%monthnum%/%postname%/');
update_option('comment_moderation', '1');
$authors = [1];
foreach (['alice', 'bob', 'carol', 'dave'] as $name) {
    $authors[] = wp_insert_user([
        'user_login' => $name, 'user_pass' => "secret-of-$name", 'user_email' => "$name@blog.test",
        'display_name' => ucfirst($name), 'role' => 'author', 'description' => sentence(6),
    ]);
}
$categories = create_terms('category', ['news', 'science', 'travel', 'food', 'music', 'sport', 'books', 'local']);
array_push($categories, ...create_terms('category', ['opinion', 'weather'], get_term_by('slug', 'news', 'category')->term_id));
create_posts($authors, $categories, create_terms('post_tag', WORDS));
create_menu(get_term_by('slug', 'science', 'category')->term_id);
flush_rewrite_rules();
delete_option('theme_switched');
