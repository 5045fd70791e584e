<?php

/**
 * The names (tags) of WordPress's data. A change purges the pages with which it shares a name.
 *
 *     site                 data of every page: theme, widgets, settings
 *     post:4               a post (page, product, picture …) itself, its custom fields included
 *     stock:4 · stocks     the stock, the sales and the time of modification of a product, which `post:4` and `every:product` lack; of any
 *     text:4               the same without custom fields, for pages that show none of them
 *     name:4 · names:page  a post's title and URL, as in menus and links; all of a type
 *     list:post · list     which posts of a type (of any type) there are, and in which order by date
 *     texts:post · texts   the same, and their texts: for searches and orders by title
 *     every:post · every   the same, and anything about any of them, terms and custom fields included
 *     below:4              the same of the posts whose parent is post 4, products left out
 *     modified             when a post was modified last
 *     sticky · stuck:4     which posts are on top of the front page; whether post 4 is
 *     in:7 by:3 date:2026-11   which posts are in a term, by an author, of a year, month or day
 *     by:0/post            which posts of a type have no author
 *     called:tern          which posts have this at the end of their URL, or had
 *     guess:tern           which posts have a URL that ends in a name with this beginning (GUESSED)
 *     children:4           which posts are below post 4, and their titles and URLs
 *     beside:4             which posts come right before and after post 4
 *     term:7               a term
 *     terms:category · filled:category  which terms a taxonomy has; which of them posts are in
 *     counts:category      how many posts are in the terms of a taxonomy
 *     slug:category/fish   whether a taxonomy has a term with this slug
 *     tree:category        which terms are below which
 *     pages:post/page:2    whether the sitemaps of a type have two pages (SitemapPages)
 *     user:3 · users       an author; which users there are
 *     role:3 · roles       the roles of a user; which users have which
 *     authors              which users have published posts, of any type
 *     written:post         how many posts of a type the users have published
 *     comments:4 · comments · latest:10  the comments of a post; all comments; the ten latest
 *     menu:2 · menus       a menu; which menus there are
 *     setting:NAME · settings  an option (Options, OptionSources); any option
 *     settings:comments    all of its kind; only for purges by hand and database rows
 *     table:NAME           the rows of a table that is not WordPress's own (Tables)
 *     transient:NAME       what a plugin keeps under this name for a time (Transients)
 *     nowhere              which URLs have no page
 *     route:har · routes   what rewrite rules make of URLs with this beginning; of any (Routes)
 *     robots sitemaps rest all responses of this kind; only for purges by hand
 *     in:* beside:* …      any of a kind (Page::ANY), for database rows that do not identify one
 *
 * The rules for a followed database use these names:
 * crates/cache/change-feed/src/suggest/wordpress.toml.
 *
 * In a network of several blogs, each name begins with the blog's number, `2/post:4`. Shared data
 * has `network/user:3`, `network/users`, and `network`, on which every page depends.
 */

declare(strict_types=1);

namespace Pagewell\WordPress;

/**
 * Creates names; has no state.
 *
 * @internal
 */
final class Tags
{
    public const SITE = 'site';
    public const SETTINGS = 'settings';
    public const NOWHERE = 'nowhere';
    public const STICKY = 'sticky';

    /** Data of the pages of all blogs of a network: plugins, themes, WordPress itself. */
    public const NETWORK = 'network';

    /** Post types that are not shown, or that have other names here. */
    private const NAMELESS = ['revision', 'nav_menu_item', 'customize_changeset', 'oembed_cache', 'user_request', 'wp_sync_storage'];

    /** Post types that belong to the theme. */
    private const THEME = ['wp_template', 'wp_template_part', 'wp_global_styles', 'wp_navigation', 'custom_css', 'wp_font_family', 'wp_font_face'];

    /** Taxonomies whose terms no page shows. */
    private const UNSHOWN_TAXONOMIES = ['nav_menu', 'wp_theme', 'wp_template_part_area', 'link_category'];

    /** Post meta that WordPress itself reads where it shows a post: pictures, the template, blocks that plugins insert. */
    private const SHOWN_META = ['_thumbnail_id', '_wp_page_template', '_wp_attached_file', '_wp_attachment_metadata', '_wp_attachment_image_alt', '_wp_attachment_backup_sizes', '_wp_ignored_hooked_blocks'];

    /** Maximum length of the beginning of a name by which WordPress guesses the post of a missing URL. */
    private const GUESSED = 4;

    /** Lengths of the lists of latest comments that have a name. */
    private const LATEST = [5, 10, 25, 100];

    private function __construct()
    {
    }

    /** Returns the full name, as sent: printable, without white space, with the blog's number in a network. */
    public static function full(string $tag): string
    {
        $tag = (string) preg_replace_callback('/[^\x21-\x7e]/', static fn (array $byte): string => sprintf('%%%02X', ord($byte[0])), $tag);
        return match (true) {
            !is_multisite() || $tag === self::NETWORK => $tag,
            preg_match('/^(users?|roles?)(:|$)/', $tag) === 1 => self::NETWORK . "/$tag",
            default => get_current_blog_id() . "/$tag",
        };
    }

    /** Whether this name concerns pages of all blogs of a network. */
    public static function isShared(string $full): bool
    {
        return is_multisite() && preg_match('~^' . self::NETWORK . '(/|$)~', $full) === 1;
    }

    /**
     * Whether its pages have the host of this request. The blogs of a network may be different
     * sites of Pagewell, and a response applies only to one.
     */
    public static function isHere(string $full): bool
    {
        if (!is_multisite() || preg_match('~^(\d+)/~', $full, $found) !== 1) {
            return !self::isShared($full);
        }
        $asked = $GLOBALS['current_blog'] ?? null;
        $blog = (int) $found[1];
        return $asked !== null && ($blog === (int) $asked->blog_id || strcasecmp((string) (get_site($blog)->domain ?? ''), (string) $asked->domain) === 0);
    }

    /**
     * Returns `site` of this blog and of each blog in these names, and `network` for shared names.
     *
     * @param list<string> $tags full names
     *
     * @return list<string> full names
     */
    public static function everything(array $tags): array
    {
        $all = [self::full(self::SITE) => true];
        foreach (is_multisite() ? $tags : [] as $tag) {
            if (preg_match('~^\d+/~', $tag, $blog) === 1) {
                $all[$blog[0] . self::SITE] = true;
            } elseif (self::isShared($tag)) {
                $all[self::NETWORK] = true;
            }
        }
        return array_keys($all);
    }

    /** Whether posts of this type are shown on pages and are not part of the theme. */
    public static function isData(string $type): bool
    {
        return $type !== '' && !in_array($type, self::NAMELESS, true) && !in_array($type, self::THEME, true);
    }

    /** Whether posts of this type are part of the theme. */
    public static function isTheme(string $type): bool
    {
        return in_array($type, self::THEME, true);
    }

    /** Whether pages show terms of this taxonomy. */
    public static function isTaxonomy(string $taxonomy): bool
    {
        return !in_array($taxonomy, self::UNSHOWN_TAXONOMIES, true);
    }

    /** Whether this meta of a user is the roles, on a blog or in a network. */
    public static function isOfRoles(string $key): bool
    {
        return str_ends_with($key, 'capabilities');
    }

    /** Whether WordPress itself shows this meta of a post, in lists as well. */
    public static function isShownMeta(string $key): bool
    {
        return in_array($key, self::SHOWN_META, true);
    }

    /**
     * All data of a post on which lists may depend, except which lists it is in.
     *
     * @return list<string>
     */
    public static function post(int $id, string $type): array
    {
        return ["post:$id", "text:$id", "texts:$type", 'texts', "every:$type", 'every', ...ProductStock::tags($id, $type)];
    }

    /**
     * All names for posts with these at the end of their URL.
     *
     * @param array<mixed> $names
     *
     * @return list<string>
     */
    public static function called(array $names): array
    {
        $tags = [];
        foreach (array_filter($names, is_string(...)) as $name) {
            array_push($tags, "called:$name", ...array_map(static fn (int $length): string => 'guess:' . substr($name, 0, $length), range(1, self::GUESSED)));
        }
        return array_values(array_unique($tags));
    }

    /**
     * The names on which a URL depends that ends in this and has no page. WordPress shows a post of this
     * name, or redirects to one whose name begins with it.
     *
     * @param string $path the name, with those of parent pages before it
     *
     * @return list<string>
     */
    public static function missing(string $path): array
    {
        $names = array_values(array_filter(array_map(sanitize_title_for_query(...), explode('/', $path)), static fn (string $name): bool => $name !== ''));
        return $names === [] ? [self::NOWHERE] : [...array_map(static fn (string $name): string => "called:$name", $names), 'guess:' . substr((string) end($names), 0, self::GUESSED)];
    }

    /**
     * Returns the name for whether a taxonomy has a term with this slug; null if the database might compare it
     * in a way of its own. Letters that are equal in some collation are the same here.
     */
    public static function slug(string $taxonomy, string $slug): ?string
    {
        return preg_match('/^[A-Za-z0-9_-]+$/D', $slug) === 1 ? "slug:$taxonomy/" . strtr(strtolower($slug), 'jyvw', 'iiuu') : null;
    }

    /** @return list<string> the names for the lists of a taxonomy's terms */
    public static function termsOf(string $taxonomy): array
    {
        return ["terms:$taxonomy", "filled:$taxonomy", "counts:$taxonomy"];
    }

    /** Returns the name for a list of this many latest comments, or of some more; null if there is none. */
    public static function latest(int $number): ?string
    {
        $enough = array_filter(self::LATEST, static fn (int $named): bool => $named >= $number);
        return $number < 1 || $enough === [] ? null : 'latest:' . min($enough);
    }

    /** @return list<string> the lists of latest comments that contain a comment with this many later ones */
    public static function latestWith(int $later): array
    {
        return array_values(array_map(static fn (int $named): string => "latest:$named", array_filter(self::LATEST, static fn (int $named): bool => $named > $later)));
    }

    /**
     * @param string $date as in the column post_date, site time
     *
     * @return list<string> year, month and day
     */
    public static function dates(string $date): array
    {
        return ['date:' . substr($date, 0, 4), 'date:' . substr($date, 0, 7), 'date:' . substr($date, 0, 10)];
    }
}
