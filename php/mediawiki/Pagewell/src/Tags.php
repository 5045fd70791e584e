<?php

/**
 * The names (tags) of MediaWiki's data: a kind, and an id. A page has `kind:id`, or `kind` if it
 * depends on any of them. A change purges the pages with which it shares a name (Core\Tag).
 *
 *     site                  every page: after a user was renamed
 *     skin                  every page with a skin: whether the site has styles and scripts
 *     message:sitenotice    a text of the interface, in all languages
 *     startup               the list of modules for the browser, with their versions
 *     page:0:Gull           a page with what surrounds it: its latest revision, protection, log
 *     history:0:Gull        the older revisions of a page, with their change tags
 *     text:0:Gull           the parsed text of a page: action=purge asks for a new one
 *     content:0:Gull        the source text of a page, as templates and action=raw show it
 *     link:0:Gull           whether a page exists, and whether it is a redirect: the colour of links
 *     titles:0              which pages a namespace has
 *     subpages:0:Gull       the subpages of a page
 *     links:0:Gull          the links, templates, categories and properties of a page
 *     backlinks:0:Gull      the pages that link to a page, use it as a template, or show a file
 *     category:Ships        the members of a category
 *     categories            which categories have members, and how many
 *     file:Gull.png         a file · files: which files there are · hash:…: files with this content
 *     recent · newpages     recent changes, new pages
 *     log · protection      the public logs, the list of protected pages
 *     contributions:Admin   the contributions of a user
 *     user:Admin            a user: groups, blocks, whether there is one
 *     users · statistics    lists of users; counters
 *     changetags            which change tags are in use, as filters of lists offer them
 *     ages                  the time at which the page was made; nothing purges it
 */

declare(strict_types=1);

namespace Pagewell\MediaWiki;

use MediaWiki\Linker\LinkTarget;
use MediaWiki\Page\PageReference;

/**
 * Creates ids of names; has no state.
 *
 * @internal
 */
final class Tags
{
    private function __construct()
    {
    }

    /** Returns the id of a page: its namespace and title. */
    public static function title(LinkTarget|PageReference $title): string
    {
        return self::named($title->getNamespace(), $title->getDBkey());
    }

    /** Returns the id of a page by its parts. */
    public static function named(int $namespace, string $key): string
    {
        return $namespace . ':' . strtr($key, ' ', '_');
    }

    /** Returns the id of a user, a category or a file by its name. */
    public static function name(string $name): string
    {
        return strtr($name, ' ', '_');
    }

    /**
     * Returns the ids of the pages that may have this one as a subpage.
     *
     * @return list<string>
     */
    public static function parents(LinkTarget|PageReference $title): array
    {
        $parts = explode('/', $title->getDBkey());
        $parents = [];
        // MediaWiki's titles have at most 255 bytes.
        for ($length = count($parts) - 1; $length > 0; $length--) {
            $parents[] = self::named($title->getNamespace(), implode('/', array_slice($parts, 0, $length)));
        }
        return $parents;
    }
}
