<?php

/**
 * The names (tags) of WordPress's data. A change invalidates the pages with which it shares a name.
 *
 *     site                 what every page shows: theme, widgets, settings
 *     post:4               a post (page, product, picture …) itself, its custom fields included
 *     text:4               the same without custom fields, for pages that show none of them
 *     name:4 · names:page  a post's title and address, as menus and links show them; all of a type's
 *     list:post · list     which posts of a type (of any type) there are, and in which order by date
 *     texts:post · texts   the same, and what any of them says: for searches and orders by title
 *     every:post · every   the same, and anything about any of them, custom fields included
 *     in:7 by:3 date:2026-11   which posts are in a term, by an author, of a year, month or day
 *     called:tern          which posts have this at the end of their address
 *     beside:4             which posts come right before and after post 4
 *     term:7               a term
 *     terms:category · filled:category  which terms a taxonomy has; which of them posts are in
 *     user:3 · users       an author; which users there are
 *     comments:4 · comments · latest:10  the comments of a post; all comments; the ten latest
 *     menu:2 · menus       a menu; which menus there are
 *     settings:comments    settings that few pages are made with (Options)
 *     nowhere              which addresses there are no pages for
 *     in:* beside:* …      any of a kind (Page::ANY), for changes of rows that do not say which one
 *
 * The rules of a followed database are made of these names: crates/cache/change-feed/src/suggest/wordpress.toml.
 *
 * In a network of several blogs each name begins with the blog's number, `2/post:4`; but for what
 * all of them share: `network/user:3`, `network/users`, and `network`, which every page shows.
 */

declare(strict_types=1);

namespace Pagewell\WordPress;

/** Makes names; there is nothing to hold. */
final class Tags
{
    public const SITE = 'site';
    public const NOWHERE = 'nowhere';

    /** What the pages of all blogs of a network are made with: plugins, themes, WordPress itself. */
    public const NETWORK = 'network';

    /** Types of posts of which nothing is shown, or that have other names here. */
    private const SILENT = ['revision', 'nav_menu_item', 'customize_changeset', 'oembed_cache', 'user_request'];

    /** Types of posts that make up the theme. */
    private const THEME = ['wp_template', 'wp_template_part', 'wp_global_styles', 'wp_navigation', 'custom_css', 'wp_font_family', 'wp_font_face'];

    /** Taxonomies whose terms are no data of pages. */
    private const SILENT_TAXONOMIES = ['nav_menu', 'wp_theme', 'wp_template_part_area', 'link_category'];

    /** Meta of posts that WordPress shows by itself: their pictures, and which template they have. */
    private const SHOWN_META = ['_thumbnail_id', '_wp_page_template', '_wp_attached_file', '_wp_attachment_metadata', '_wp_attachment_image_alt', '_wp_attachment_backup_sizes'];

    /** How many of the latest comments have a name. */
    private const LATEST = [5, 10, 25, 100];

    private function __construct()
    {
    }

    /** A name as it travels: printable, without white space, with the blog's number in a network. */
    public static function full(string $tag): string
    {
        $tag = (string) preg_replace_callback('/[^\x21-\x7e]/', static fn (array $byte): string => sprintf('%%%02X', ord($byte[0])), $tag);
        return match (true) {
            !is_multisite() || $tag === self::NETWORK => $tag,
            preg_match('/^users?(:|$)/', $tag) === 1 => self::NETWORK . "/$tag",
            default => get_current_blog_id() . "/$tag",
        };
    }

    /** Whether this name stands for pages of all blogs of a network. */
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
     * Returns the names that stand for everything of this blog, and of each blog in these names.
     *
     * @param list<string> $tags as they travel
     *
     * @return list<string> the same
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

    /** Whether posts of this type are data of pages by themselves. */
    public static function isData(string $type): bool
    {
        return $type !== '' && !in_array($type, self::SILENT, true) && !in_array($type, self::THEME, true);
    }

    /** Whether posts of this type are part of the theme. */
    public static function isTheme(string $type): bool
    {
        return in_array($type, self::THEME, true);
    }

    /** Whether terms of this taxonomy are data of pages. */
    public static function isTaxonomy(string $taxonomy): bool
    {
        return !in_array($taxonomy, self::SILENT_TAXONOMIES, true);
    }

    /** Whether WordPress shows this meta of a post by itself, in lists as well. */
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
        return ["post:$id", "text:$id", "texts:$type", 'texts', "every:$type", 'every'];
    }

    /** @return list<string> the lists of a taxonomy's terms */
    public static function termsOf(string $taxonomy): array
    {
        return ["terms:$taxonomy", "filled:$taxonomy"];
    }

    /** The latest so many comments, or some more; null when there is no name for so many. */
    public static function latest(int $number): ?string
    {
        $enough = array_filter(self::LATEST, static fn (int $named): bool => $named >= $number);
        return $number < 1 || $enough === [] ? null : 'latest:' . min($enough);
    }

    /** @return list<string> the lists of latest comments in which there is one that has so many after it */
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
