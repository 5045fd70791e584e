<?php

/**
 * The modules of the API whose dependencies are known. The answer of any other module, and of a
 * request with one, is refused.
 *
 *     action=query   each module, and the generator; the pages that it asks for
 *     action=parse   the parsed text by the hooks of ReadHooks
 *
 * `prop=info` is not among them: it has the time when a page was touched, which many jobs change.
 */

declare(strict_types=1);

namespace Pagewell\MediaWiki;

/** Handlers of the API's hooks. */
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
        'iwlinks' => 'links', 'langlinks' => 'links', 'pageprops' => 'links', 'redirects' => 'backlinks', 'linkshere' => 'backlinks',
        'transcludedin' => 'backlinks', 'fileusage' => 'backlinks', 'contributors' => 'history',
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
        return self::$isKnown && $isFormat && $request->getVal('origin', '*') === '*' && !$request->getCheck('curtimestamp') && !$request->getCheck('servedby');
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
        $isKnown = isset(self::LISTS[$name]) || match ($name) {
            'allpages' => !self::isFiltered($params) && self::add('titles', (int) $params['namespace']),
            'categorymembers', 'backlinks', 'embeddedin', 'imageusage' => self::ofTitle($name, $params),
            default => self::properties($name, $module),
        };
        $isKnown || Page::refuse(Refusal::Unknown);
    }

    public function onAPIQueryGeneratorAfterExecute($module, $pages): void
    {
        $this->onAPIQueryAfterExecute($module);
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

    /** Properties of the pages that the request asks for. */
    private static function properties(string $name, $module): bool
    {
        $all = $module->getQuery()->getPageSet()->getPages();
        foreach ($all as $page) {
            match (true) {
                isset(self::PROPERTIES[$name]) => Page::uses(self::PROPERTIES[$name], Tags::title($page)),
                $name === 'categoryinfo' => Page::uses('category', Tags::name($page->getDBkey())),
                $name === 'imageinfo' => Page::uses('file', Tags::name($page->getDBkey())),
                default => null,
            };
        }
        return isset(self::PROPERTIES[$name]) || in_array($name, ['categoryinfo', 'imageinfo'], true);
    }

    private static function pages($set): void
    {
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
        Page::freshFor(self::SECONDS['recentchanges']);
        if ($request->getVal('target') !== null) {
            Page::uses('links');
            Page::uses('backlinks');
        }
    }
}
