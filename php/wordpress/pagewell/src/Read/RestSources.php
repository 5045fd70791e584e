<?php

/**
 * The dependencies of a response of the REST API (wp-json) that no hook of Sources shows.
 *
 * The controllers of WordPress in OWN read posts, terms, users and comments as objects, without the
 * filters of titles and URLs. The hooks `rest_prepare_…` pass each of them. Other routes are not offered, because what they read
 * is unknown, unless the filter `pagewell_rest_route` accepts them.
 *
 * A response may contain others: `_embed` adds the linked ones, also those that fail. The
 * change that ends a failure is unknown, like the data that a plugin returns in place of a route.
 * Neither is offered.
 *
 * A response does not link to a post's revisions, which visitors cannot read: the number of them
 * changes with each automatic save.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Read;

use Pagewell\WordPress\Observer;
use Pagewell\WordPress\Tags;

/**
 * Listens while the REST API answers, also if a page asks it.
 *
 * @internal
 */
final class RestSources
{
    /** Classes of routes whose dependencies are known. A derived class of a plugin may read other data. */
    private const OWN = [
        'WP_REST_Server', 'WP_REST_Posts_Controller', 'WP_REST_Attachments_Controller', 'WP_REST_Terms_Controller', 'WP_REST_Users_Controller', 'WP_REST_Comments_Controller',
        'WP_REST_Search_Controller', 'WP_REST_Post_Types_Controller', 'WP_REST_Taxonomies_Controller', 'WP_REST_Post_Statuses_Controller', 'WP_oEmbed_Controller',
    ];

    /** Whether every request that was dispatched, also each embedded one, was answered with known data; null: there was none. */
    private static ?bool $isKnown = null;

    public static function listen(): void
    {
        self::observe('rest_api_init', self::register(...));
        self::observe('rest_request_before_callbacks', self::asked(...), 3);
        self::observe('rest_pre_dispatch', static fn (mixed $response): mixed => self::replaced($response, !empty($response)));
        self::observe('rest_dispatch_request', static fn (mixed $response): mixed => self::replaced($response, $response !== null));
        self::observe('rest_request_after_callbacks', self::answered(...));
        self::observe('rest_post_dispatch', self::answered(...));
        self::observe('oembed_response_data', static fn (mixed $data, mixed $post): mixed => self::post($data, $post), 2);
    }

    private static function observe(string $hook, callable $function, int $arguments = 1): void
    {
        add_filter($hook, Observer::of($hook, $function), PHP_INT_MAX, $arguments);
    }

    /** Whether the response may be stored: every route that has contributed to it is known, and has not failed. */
    public static function isKnown(): bool
    {
        return self::$isKnown === true;
    }

    /** Types of posts and taxonomies are registered by now. */
    private static function register(): void
    {
        foreach (get_post_types(['show_in_rest' => true]) as $type) {
            self::observe("rest_prepare_$type", self::post(...), 2);
        }
        foreach (get_taxonomies(['show_in_rest' => true]) as $taxonomy) {
            self::observe("rest_{$taxonomy}_query", static fn (mixed $query, mixed $request): mixed => self::terms($query, $request, $taxonomy), 2);
            self::observe("rest_prepare_$taxonomy", self::term(...), 2);
        }
        self::observe('rest_prepare_user', self::user(...), 2);
        self::observe('rest_prepare_comment', self::comment(...), 2);
    }

    /** A route is about to be called. */
    private static function asked(mixed $response, mixed $handler, mixed $request): mixed
    {
        $callback = is_array($handler) ? $handler['callback'] ?? null : null;
        $class = is_array($callback) && is_object($callback[0] ?? null) ? $callback[0]::class : '';
        $isOwn = in_array($class, self::OWN, true) && $request instanceof \WP_REST_Request && $request->get_method() === 'GET';
        self::$isKnown = self::$isKnown !== false && (bool) apply_filters('pagewell_rest_route', $isOwn, $request);
        return $response;
    }

    /** A plugin may answer in place of a route. */
    private static function replaced(mixed $response, bool $isReplaced): mixed
    {
        self::$isKnown = $isReplaced ? false : self::$isKnown;
        return $response;
    }

    /** A request was answered: the one of the client, or one within it. */
    private static function answered(mixed $response): mixed
    {
        if (is_wp_error($response) || ($response instanceof \WP_HTTP_Response && $response->get_status() !== 200)) {
            self::$isKnown = false;
        }
        return $response;
    }

    private static function post(mixed $response, mixed $post): mixed
    {
        if ($post instanceof \WP_Post) {
            Page::usesText($post->ID);
            ProductSources::uses($post->ID);
            Page::usesText((int) get_post_thumbnail_id($post));
            Page::usesName((int) $post->post_parent);
        }
        if ($response instanceof \WP_REST_Response && !is_user_logged_in()) {
            $response->remove_link('version-history');
            $response->remove_link('predecessor-version');
        }
        return $response;
    }

    private static function terms(mixed $query, mixed $request, string $taxonomy): mixed
    {
        $post = is_numeric($request['post'] ?? null) ? (int) $request['post'] : 0;
        if (Tags::isTaxonomy($taxonomy) && $post === 0) {
            Page::uses("terms:$taxonomy");
        }
        Page::usesText($post);
        // The post may not exist yet.
        $post === 0 || Page::uses("text:$post");
        return $query;
    }

    /** A term has the number of its posts, which belongs to the list. */
    private static function term(mixed $response, mixed $term): mixed
    {
        if ($term instanceof \WP_Term && Tags::isTaxonomy($term->taxonomy)) {
            Page::uses("term:$term->term_id", "counts:$term->taxonomy");
        }
        return $response;
    }

    /** Visitors see only users who have published posts. */
    private static function user(mixed $response, mixed $user): mixed
    {
        if ($user instanceof \WP_User) {
            Page::uses("user:$user->ID", 'authors');
        }
        return $response;
    }

    private static function comment(mixed $response, mixed $comment): mixed
    {
        if ($comment instanceof \WP_Comment) {
            Page::uses("comments:$comment->comment_post_ID");
            Page::usesName((int) $comment->comment_post_ID);
        }
        return $response;
    }
}
