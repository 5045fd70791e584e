<?php

/**
 * Dependencies on the data that WordPress reads while it renders.
 *
 * One table: the hook, the number of its arguments, and the function that adds dependencies.
 * Titles, URLs and pictures pass through hooks wherever they are shown, so a post in a menu, a
 * widget or a block is detected like one in the loop. Each function returns its first argument,
 * because most of these hooks are filters.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Read;

use Pagewell\WordPress\Observer;
use Pagewell\WordPress\Routes;
use Pagewell\WordPress\SitemapPages;
use Pagewell\WordPress\Tables;
use Pagewell\WordPress\Tags;
use Pagewell\WordPress\Write\Options;

/**
 * Listens while a page is rendered.
 *
 * @internal
 */
final class Sources
{
    /** Hook → number of arguments, function. */
    private const TABLE = [
        // Posts, in the order: queries, the loop, titles, URLs, pictures, neighbours, archives.
        'posts_pre_query' => [2, [Queries::class, 'remember']],
        'the_posts' => [2, [Queries::class, 'found']],
        'the_post' => [1, [self::class, 'post']],
        'wp_list_pages_excludes' => [1, [BlockSources::class, 'titlesFollow']],
        'register_block_type_args' => [2, [BlockSources::class, 'registered']],
        'get_pages_query_args' => [1, [Queries::class, 'pagesFollow']],
        'get_pages' => [2, [BlockSources::class, 'pages']],
        'the_title' => [2, [self::class, 'title']],
        'post_link' => [2, [self::class, 'link']],
        'page_link' => [2, [self::class, 'link']],
        'post_type_link' => [2, [self::class, 'link']],
        'attachment_link' => [2, [self::class, 'link']],
        'post_thumbnail_id' => [2, [self::class, 'postSecond']],
        'get_the_excerpt' => [2, [self::class, 'postSecond']],
        'post_content' => [2, [self::class, 'postSecond']],
        'post_excerpt' => [2, [self::class, 'postSecond']],
        'get_post_metadata' => [3, [self::class, 'meta']],
        'wp_get_attachment_url' => [2, [self::class, 'postSecond']],
        'wp_get_attachment_image_src' => [2, [self::class, 'postSecond']],
        'wp_get_attachment_metadata' => [2, [self::class, 'postSecond']],
        'upload_dir' => [1, [self::class, 'uploads']],
        'url_to_postid' => [1, [self::class, 'urls']],
        'query' => [1, [self::class, 'tables']],
        'pre_option' => [2, [OptionSources::class, 'asked']],
        'alloptions' => [1, [OptionSources::class, 'loaded']],
        'is_sticky' => [2, [Queries::class, 'isSticky']],
        'pre_option_sticky_posts' => [1, [Queries::class, 'stickies']],
        'get_next_post_where' => [5, [self::class, 'neighbour']],
        'get_previous_post_where' => [5, [self::class, 'neighbour']],
        'getarchives_where' => [2, [self::class, 'archives']],
        'woocommerce_product_get_stock_quantity' => [2, [ProductSources::class, 'shown']],
        'woocommerce_product_variation_get_stock_quantity' => [2, [ProductSources::class, 'shown']],
        'woocommerce_product_get_total_sales' => [2, [ProductSources::class, 'shown']],
        'woocommerce_product_variation_get_total_sales' => [2, [ProductSources::class, 'shown']],
        'woocommerce_product_get_date_modified' => [2, [ProductSources::class, 'shown']],
        'woocommerce_product_variation_get_date_modified' => [2, [ProductSources::class, 'shown']],
        'get_the_modified_date' => [3, [ProductSources::class, 'time']],
        'get_the_modified_time' => [3, [ProductSources::class, 'time']],
        'get_post_modified_time' => [2, [ProductSources::class, 'time']],
        'get_feed_build_date' => [1, [self::class, 'feedDate']],
        'human_time_diff' => [4, [Moments::class, 'difference']],
        'bbp_get_time_since' => [3, [Moments::class, 'age']],
        'bp_core_time_since' => [3, [Moments::class, 'age']],
        'bp_core_get_last_activity' => [1, [Moments::class, 'activity']],
        'get_calendar' => [1, [self::class, 'calendar']],
        'render_block' => [2, [BlockSources::class, 'block']],
        'widget_display_callback' => [3, [Frames::class, 'widget']],
        // Terms, users, comments, menus.
        'get_term' => [1, [TermSources::class, 'term']],
        'get_terms' => [3, [TermSources::class, 'terms']],
        'pre_get_terms' => [1, [TermSources::class, 'termsAsked']],
        'get_user_metadata' => [3, [UserSources::class, 'meta']],
        'get_the_author_display_name' => [2, [UserSources::class, 'user']],
        'get_the_author_nickname' => [2, [UserSources::class, 'user']],
        'get_the_author_description' => [2, [UserSources::class, 'user']],
        'get_the_author_user_url' => [2, [UserSources::class, 'user']],
        'author_link' => [2, [UserSources::class, 'user']],
        'pre_user_query' => [1, [UserSources::class, 'users']],
        'wp_list_authors_args' => [1, [UserSources::class, 'authors']],
        'pre_get_comments' => [1, [CommentSources::class, 'comments']],
        'get_comments_number' => [2, [CommentSources::class, 'commentsSecond']],
        'wp_get_nav_menu_items' => [2, [self::class, 'menu']],
        'wp_nav_menu_args' => [1, [self::class, 'menus']],
        'wp_sitemaps_index_entry' => [4, [SitemapPages::class, 'entry']],
    ];

    /**
     * Registers the table, the filters for options that few pages read, and the action by which
     * themes and plugins declare other data.
     */
    public static function listen(): void
    {
        foreach (self::TABLE as $hook => [$arguments, $function]) {
            add_filter($hook, Observer::of($hook, $function), PHP_INT_MAX, $arguments);
        }
        foreach (Options::FEW as $kind => $options) {
            foreach ($options as $option) {
                add_filter("pre_option_$option", Observer::of("pre_option_$option", static fn (mixed $value): mixed => self::setting($value, $kind, $option)), PHP_INT_MAX);
            }
        }
        add_action('wp_loaded', Observer::of('wp_loaded', TermSources::listenToTrees(...)), PHP_INT_MAX);
        add_action('pagewell_uses', Observer::of('pagewell_uses', Page::uses(...)), 10, 100);
    }

    /** A statement is about to run; most are for WordPress's own tables. */
    public static function tables(mixed $query): mixed
    {
        if (is_string($query)) {
            Page::uses(...Tables::read($query));
            OptionSources::queried($query);
        }
        return $query;
    }

    /** A post in a loop is shown with its author, but in a list of titles. */
    public static function post(mixed $post): mixed
    {
        if (Frames::isLoopOfTitles()) {
            return $post;
        }
        Page::usesText((int) ($post->ID ?? 0));
        Page::uses('user:' . (int) ($post->post_author ?? 0));
        return $post;
    }

    public static function title(mixed $title, mixed $post = 0): mixed
    {
        Page::usesName((int) (is_object($post) ? $post->ID ?? 0 : $post));
        return $title;
    }

    public static function postSecond(mixed $shown, mixed $post = 0): mixed
    {
        Page::usesText((int) (is_object($post) ? $post->ID ?? 0 : $post));
        return $shown;
    }

    /** Without a key, all meta is read. */
    public static function meta(mixed $shown, mixed $post, mixed $key = ''): mixed
    {
        Tags::isShownMeta((string) $key) ? Page::usesText((int) $post) : Page::usesPost((int) $post);
        ProductSources::meta((int) $post, (string) $key);
        return $shown;
    }

    public static function uploads(mixed $directory): mixed
    {
        Page::uses('settings:uploads', ...array_map(static fn (string $option): string => "setting:$option", Options::FEW['uploads']));
        return $directory;
    }

    /** The post of another URL is looked up. */
    public static function urls(mixed $url): mixed
    {
        Page::uses(Routes::ALL);
        return $url;
    }

    private static function setting(mixed $value, string $kind, string $option): mixed
    {
        Page::uses("settings:$kind", "setting:$option");
        return $value;
    }

    /** A URL also contains the names of all parent pages. */
    public static function link(mixed $link, mixed $post): mixed
    {
        $id = (int) (is_object($post) ? $post->ID ?? 0 : $post);
        Page::usesName($id);
        foreach ((array) get_post_ancestors($id) as $above) {
            Page::usesName((int) $above);
        }
        return $link;
    }

    /** The previous or next post: of its type, or (rarely) of those in the same term. */
    public static function neighbour(mixed $where, mixed $inTerm, mixed $excluded, mixed $taxonomy, mixed $post): mixed
    {
        if ($post instanceof \WP_Post) {
            Page::uses($inTerm || !empty($excluded) ? "texts:$post->post_type" : "beside:$post->ID");
        }
        return $where;
    }

    public static function archives(mixed $where, mixed $asked): mixed
    {
        Page::uses('list:' . (is_array($asked) ? $asked['post_type'] ?? 'post' : 'post'));
        return $where;
    }

    /** A feed has the date of its entry that was modified last; without entries, of the last modified post. */
    public static function feedDate(mixed $date): mixed
    {
        $posts = ($GLOBALS['wp_query'] ?? null)?->posts;
        if ($posts === []) {
            Page::uses('modified');
        }
        foreach (is_array($posts) ? $posts : [] as $post) {
            ProductSources::uses((int) (is_object($post) ? $post->ID ?? 0 : $post));
        }
        return $date;
    }

    /** The calendar marks the days with posts, and today. */
    public static function calendar(mixed $calendar): mixed
    {
        Page::uses('list:post');
        Page::freshFor((new \DateTimeImmutable('tomorrow', wp_timezone()))->getTimestamp() - time());
        return $calendar;
    }

    public static function menu(mixed $items, mixed $menu): mixed
    {
        Page::uses('menu:' . (int) ($menu->term_id ?? 0));
        return $items;
    }

    public static function menus(mixed $asked): mixed
    {
        Page::uses('menus');
        return $asked;
    }
}
