<?php

/**
 * Dependencies on the users that WordPress reads while it renders.
 *
 * WordPress reads the roles of each user with the name. The stack shows the reader: where only
 * the name or the URL is shown, a change of the role does not matter. Each function returns its first
 * argument, because its hook (Sources) is a filter.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Read;

use Pagewell\WordPress\SitemapPages;
use Pagewell\WordPress\Tags;

/**
 * Records the users that a page shows.
 *
 * @internal
 */
final class UserSources
{
    /** How WordPress reads the roles of a user that it looks up, from the hook `get_user_metadata` outwards. */
    private const ROLES = ['get_metadata_raw', 'get_metadata', 'get_user_meta', 'WP_User::get_caps_data', 'WP_User::for_site', 'WP_User::init'];

    /** Functions that look up a user for the name and URL only. */
    private const NAMING = ['get_author_posts_url', 'wp_list_authors'];

    public static function user(mixed $shown, mixed $user): mixed
    {
        if ((int) $user > 0) {
            Page::uses('user:' . (int) $user);
        }
        return $shown;
    }

    /** WordPress reads the roles of each user that it looks up. Its own functions in NAMING do not use them. */
    public static function meta(mixed $shown, mixed $user, mixed $key = ''): mixed
    {
        $user = (int) $user;
        $isOfRoles = (string) $key === '' || Tags::isOfRoles((string) $key);
        if ($user <= 0 || (Page::has("user:$user") && (!$isOfRoles || Page::has("role:$user")))) {
            return self::user($shown, $user);
        }
        $reader = $isOfRoles ? Frames::after(...self::ROLES) : [];
        $isOfSitemap = array_slice($reader, 0, 3) === ['WP_User::__construct', 'WP_User_Query::query', 'WP_User_Query::__construct'];
        if ($isOfSitemap && $reader[3] === 'WP_Sitemaps_Users::get_max_num_pages') {
            // The index of sitemaps counts users.
            return $shown;
        }
        if ($isOfRoles && Frames::isLoopOfTitles(...self::ROLES, ...['get_user_by', 'get_userdata', 'WP_Query::generate_postdata'])) {
            // The name of the author passes other hooks.
            return $shown;
        }
        $isOfUrl = $isOfSitemap && $reader[3] === 'WP_Sitemaps_Users::get_url_list' && !has_filter('wp_sitemaps_users_entry');
        $isOfName = array_slice($reader, 0, 2) === ['get_user_by', 'get_userdata'] && in_array($reader[2] ?? '', self::NAMING, true);
        Page::uses("user:$user", ...($isOfRoles && !$isOfName && !$isOfUrl ? ["role:$user"] : []));
        return $shown;
    }

    /** A list of users; a query for those with posts also depends on these. */
    public static function users(mixed $query): mixed
    {
        $asked = (array) ($query->query_vars ?? []);
        $byCount = str_contains((string) wp_json_encode($asked['orderby'] ?? ''), 'post_count');
        $byPosts = !empty($asked['has_published_posts']);
        // A sitemap has the URLs of these users, and no other data of them.
        $isOfUrls = $byPosts && SitemapPages::name() !== '';
        $byRoles = preg_match('/capabilities|user_level/', ($query->query_from ?? '') . ($query->query_where ?? '') . ($query->query_orderby ?? '')) === 1;
        Page::uses(...($isOfUrls && !$byRoles ? [] : ['users']), ...($byRoles ? ['roles'] : []), ...($byCount ? ['list'] : []), ...($byPosts ? ['authors'] : []));
        return $query;
    }

    /** A list of authors may show the number of their posts, by a query without a hook. */
    public static function authors(mixed $asked): mixed
    {
        Page::uses('users', 'written:post');
        return $asked;
    }
}
