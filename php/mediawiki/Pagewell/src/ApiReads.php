<?php

/**
 * The modules of the API whose dependencies are known. The answer of any other module, and of a
 * request with one, is refused.
 *
 *     action=query   each module, and the generator; the pages that it asks for
 *     action=parse   the parsed text by the hooks of ReadHooks
 *
 * A page that is missing by its title is named like any other. No name is known for the number of a
 * page or revision that does not exist yet, so the answer is refused.
 *
 * `prop=info` is not among them: it has the time when a page was touched, which many jobs change.
 */

declare(strict_types=1);

namespace Pagewell\MediaWiki;

/**
 * Handlers of the API's hooks.
 *
 * @internal
 */
final class ApiReads
{
    /** Formats for programs; the others are pages with a skin. */
    private const FORMATS = ['json', 'xml', 'php', 'none'];

    /** Kinds on which lists depend as a whole. */
    private const LISTS = [
        'allcategories' => ['categories'],
        'allimages' => ['files', 'file'],
        'allusers' => ['users', 'user', 'statistics'],
        'logevents' => ['log'],
        'recentchanges' => ['recent'],
        'siteinfo' => ['statistics', 'users'],
        'allmessages' => ['message'],
        'usercontribs' => ['contributions', 'page', 'history'],
    ];

    /** Properties of pages, by the kind that has the title as its id. */
    private const PROPERTIES = [
        'revisions' => 'history', 'categories' => 'links', 'links' => 'links', 'templates' => 'links', 'images' => 'links', 'extlinks' => 'links',
        'pageprops' => 'links', 'redirects' => 'backlinks', 'linkshere' => 'backlinks',
        'transcludedin' => 'backlinks', 'fileusage' => 'backlinks', 'contributors' => 'history',
    ];

    /** Parameters with which a module reads other data than its kind: `prop=hidden` is one value of `prop`. */
    private const OTHERS = [
        'allmessages' => ['enableparser'],
        'categories' => ['show', 'prop=hidden'],
        'contributors' => ['group', 'excludegroup', 'rights', 'excluderights'],
        'redirects' => ['show', 'prop=fragment'],
        'revisions' => ['diffto', 'difftotext', 'expandtemplates', 'parse'],
    ];

    /** TTL of what is counted or dated at the time of the request, in seconds. */
    private const SECONDS = ['siteinfo' => 60, 'recentchanges' => 600];

    /** Whether the action is known. */
    private static bool $isKnown = false;

    /** Whether the response may be offered: the action is known, and so are all parameters that matter. */
    public static function isKnown($request): bool
    {
        // These two have formats of their own, and never a skin.
        $isData = in_array($request->getVal('action'), ['feedrecentchanges', 'opensearch'], true) && !str_ends_with($request->getVal('format', ''), 'fm');
        $isFormat = in_array($request->getVal('format'), self::FORMATS, true) || $isData;
        return self::$isKnown && $isFormat && $request->getVal('origin', '*') === '*' && array_filter(['curtimestamp', 'servedby', 'converttitles'], $request->getCheck(...)) === [];
    }

    public function onAPIAfterExecute($module): void
    {
        $request = $module->getRequest();
        $name = (string) $module->getModuleName();
        self::$isKnown = in_array($name, ['query', 'parse', 'opensearch', 'feedrecentchanges'], true);
        // As for the special page.
        $name === 'revisiondelete' && ChangeQueue::addEverything();
        match ($name) {
            'query' => self::pages($module->getPageSet()),
            'parse' => self::parse($module),
            'opensearch' => Page::uses('titles'),
            'feedrecentchanges' => self::feed($request),
            default => null,
        };
    }

    public function onAPIQueryAfterExecute($module): void
    {
        $name = (string) $module->getModuleName();
        $params = $module->extractRequestParams();
        foreach (self::LISTS[$name] ?? [] as $kind) {
            Page::uses($kind);
        }
        isset(self::SECONDS[$name]) && Page::freshFor(self::SECONDS[$name]);
        $isKnown = !self::readsOthers($name, $params) && (isset(self::LISTS[$name]) || match ($name) {
            'allpages' => !self::isFiltered($params) && self::add('titles', (int) $params['namespace']),
            'categorymembers', 'backlinks', 'embeddedin', 'imageusage' => self::ofTitle($name, $params),
            default => self::properties($name, self::setOf($module)),
        });
        $isKnown || Page::refuse(Refusal::Unknown);
    }

    /** A generator: its own pages are those that the request names. */
    public function onAPIQueryGeneratorAfterExecute($module, $pages): void
    {
        self::pages(self::setOf($module));
        $this->onAPIQueryAfterExecute($module);
    }

    /** Returns the pages that a module reads. The method is protected; for a generator, it has other pages than the query. */
    private static function setOf($module)
    {
        return (fn () => $this->getPageSet())->call($module);
    }

    private static function readsOthers(string $name, array $params): bool
    {
        foreach (self::OTHERS[$name] ?? [] as $other) {
            [$parameter, $value] = explode('=', $other, 2) + ['', null];
            $given = $params[$parameter] ?? false;
            if ($value === null ? $given !== false : $given === $value || (is_array($given) && in_array($value, $given, true))) {
                return true;
            }
        }
        return false;
    }

    private static function add(string $kind, int|string $id): bool
    {
        Page::uses($kind, $id);
        return true;
    }

    /** A list about one page. */
    private static function ofTitle(string $name, array $params): bool
    {
        $title = \MediaWiki\MediaWikiServices::getInstance()->getTitleFactory()->newFromText((string) ($params['title'] ?? ''));
        if ($title === null) {
            return false;
        }
        if ($name === 'categorymembers') {
            return self::add('category', Tags::name($title->getDBkey()));
        }
        // With this parameter, links to redirects to the page count as well.
        ($params['redirect'] ?? false) && Page::uses('backlinks');
        return self::add('backlinks', Tags::title($title));
    }

    /** Whether a list of pages is limited by more than their titles. */
    private static function isFiltered(array $params): bool
    {
        foreach (['minsize', 'maxsize', 'prtype', 'prlevel'] as $filter) {
            if (isset($params[$filter])) {
                return true;
            }
        }
        return ($params['filterredir'] ?? 'all') !== 'all' || ($params['filterlanglinks'] ?? 'all') !== 'all';
    }

    /** Properties of pages. */
    private static function properties(string $name, $set): bool
    {
        foreach ($set->getPages() as $page) {
            match (true) {
                isset(self::PROPERTIES[$name]) => Page::uses(self::PROPERTIES[$name], Tags::title($page)),
                $name === 'categoryinfo' => self::category($page),
                $name === 'imageinfo' => self::file($page),
                default => null,
            };
        }
        return isset(self::PROPERTIES[$name]) || in_array($name, ['categoryinfo', 'imageinfo'], true);
    }

    /** The members of a category, and whether it is hidden. */
    private static function category($page): void
    {
        Page::uses('category', Tags::name($page->getDBkey()));
        Page::uses('links', Tags::title($page));
    }

    /** A file, or the one to which it is a redirect. */
    private static function file($page): void
    {
        $file = \MediaWiki\MediaWikiServices::getInstance()->getRepoGroup()->findFile($page);
        Page::uses('file', Tags::name($page->getDBkey()), Tags::name($file ? (string) $file->getName() : $page->getDBkey()));
    }

    private static function pages($set): void
    {
        $missing = [...$set->getMissingPageIDs(), ...$set->getMissingRevisionIDs()];
        $missing === [] || Page::refuse(Refusal::Unknown);
        foreach ([...$set->getPages(), ...$set->getRedirectTitles()] as $page) {
            Page::uses('page', Tags::title($page));
        }
        foreach ($set->getTitleCount() === 0 ? [] : array_keys($set->getRedirectTitles()) as $from) {
            $title = \MediaWiki\MediaWikiServices::getInstance()->getTitleFactory()->newFromText((string) $from);
            $title === null || Page::uses('page', Tags::title($title));
        }
    }

    /** The result names the page that was parsed; a redirect may have led to it. */
    private static function parse($module): void
    {
        $result = $module->getResult()->getResultData(['parse']) ?? [];
        $params = $module->extractRequestParams();
        foreach ([$result['title'] ?? null, $params['page'] ?? null, $params['title'] ?? null] as $text) {
            $title = is_string($text) ? \MediaWiki\MediaWikiServices::getInstance()->getTitleFactory()->newFromText($text) : null;
            if ($title !== null) {
                Page::uses('page', Tags::title($title));
                Page::uses('text', Tags::title($title));
            }
        }
        // Whether these pages exist, and are hidden.
        $categories = is_array($result['categories'] ?? null) ? $result['categories'] : [];
        foreach (array_filter($categories, is_array(...)) as $category) {
            Page::uses('link', Tags::named(NS_CATEGORY, (string) ($category['category'] ?? '')));
        }
        if ($params['oldid'] ?? null) {
            Page::uses('history');
        }
        if (in_array('headhtml', $params['prop'] ?? [], true)) {
            Page::uses('skin');
        }
    }

    private static function feed($request): void
    {
        Page::uses('recent');
        Page::uses('ages');
        Page::freshFor(self::SECONDS['recentchanges']);
        if ($request->getVal('target') !== null) {
            Page::uses('links');
            Page::uses('backlinks');
        }
    }
}
