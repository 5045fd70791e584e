<?php

/** The names of what changes with a page, for hooks of different events. */

declare(strict_types=1);

namespace Pagewell\MediaWiki;

use MediaWiki\MediaWikiServices;

/**
 * Adds changes to ChangeQueue. Titles are MediaWiki's, whose class differs between its versions.
 *
 * @internal
 */
final class PageChange
{
    /** Maximum number of links of a page that are named one by one. */
    public const LINKS_MAX = 500;

    private function __construct()
    {
    }

    /** The page, its text, and what surrounds it. */
    public static function all($title): void
    {
        foreach (['page', 'history', 'content', 'links'] as $kind) {
            ChangeQueue::add($kind, Tags::title($title));
        }
    }

    /** A page has appeared or disappeared. */
    public static function existence($title): void
    {
        ChangeQueue::add('link', Tags::title($title));
        ChangeQueue::add('titles', $title->getNamespace());
        foreach (Tags::parents($title) as $parent) {
            ChangeQueue::add('subpages', $parent);
        }
        if ($title->getNamespace() === NS_FILE) {
            ChangeQueue::add('file', Tags::name($title->getDBkey()));
            ChangeQueue::add('files');
        }
    }

    /** The pages and categories in whose lists a page is named: it was moved, or became a redirect. */
    public static function targets($title): void
    {
        $limit = ['LIMIT' => self::LINKS_MAX + 1];
        $targets = [...$title->getLinksFrom($limit), ...$title->getTemplateLinksFrom($limit)];
        $database = MediaWikiServices::getInstance()->getDBLoadBalancer()->getConnection(DB_PRIMARY);
        $files = $database->selectFieldValues('imagelinks', 'il_to', ['il_from' => $title->getArticleID()], __METHOD__, $limit);
        if (count($targets) + count($files) > self::LINKS_MAX) {
            ChangeQueue::add('backlinks');
        } else {
            ChangeQueue::add('backlinks', ...array_map(Tags::title(...), $targets), ...array_map(static fn (string $name): string => Tags::named(NS_FILE, $name), $files));
        }
        foreach (array_keys($title->getParentCategories()) as $text) {
            $category = MediaWikiServices::getInstance()->getTitleFactory()->newFromText((string) $text);
            $category === null || ChangeQueue::add('category', Tags::name($category->getDBkey()));
        }
    }

    /** The authors of a page, whose contributions are listed again. */
    public static function authors($title): void
    {
        $database = MediaWikiServices::getInstance()->getDBLoadBalancer()->getConnection(DB_PRIMARY);
        $names = $database->selectFieldValues(
            ['revision', 'actor'],
            'actor_name',
            ['rev_page' => $title->getArticleID($title::READ_LATEST)],
            __METHOD__,
            ['DISTINCT', 'LIMIT' => self::LINKS_MAX + 1],
            ['actor' => ['JOIN', 'actor_id = rev_actor']],
        );
        count($names) > self::LINKS_MAX ? ChangeQueue::add('contributions') : ChangeQueue::add('contributions', ...array_map(Tags::name(...), $names));
    }

    /**
     * A page of the namespace MediaWiki is a text of the interface, or code.
     *
     * @param bool $isEmptied whether it may have become empty, or stopped being so
     */
    public static function interface($title, bool $isEmptied): void
    {
        if ($title->getNamespace() !== NS_MEDIAWIKI) {
            return;
        }
        $services = MediaWikiServices::getInstance();
        if (preg_match('/\.(?:css|js|json)$/', $title->getDBkey()) === 1 || $title->getDBkey() === 'Gadgets-definition') {
            ChangeQueue::add('startup');
            if ($isEmptied || $title->getDBkey() === 'Gadgets-definition') {
                ChangeQueue::add('skin');
            }
            return;
        }
        [$key] = $services->getMessageCache()->figureMessage($services->getContentLanguage()->lcfirst($title->getDBkey()));
        ChangeQueue::add('message', Tags::name((string) $key));
        if ($services->getResourceLoader()->getModulesByMessage($key) !== []) {
            ChangeQueue::add('startup');
        }
    }

    /** Returns the title of a page in MediaWiki's other notations. */
    public static function titleOf($page)
    {
        $factory = MediaWikiServices::getInstance()->getTitleFactory();
        return $page instanceof \MediaWiki\Page\PageReference ? $factory->castFromPageReference($page) : $factory->castFromLinkTarget($page);
    }
}
