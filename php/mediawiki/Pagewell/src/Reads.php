<?php

/** The dependencies of pages and parsed texts. The hooks and CacheHeaders use it. */

declare(strict_types=1);

namespace Pagewell\MediaWiki;

use MediaWiki\MediaWikiServices;

/**
 * Adds dependencies to Page.
 *
 * @internal
 */
final class Reads
{
    /** TTL of action=info, in seconds: it counts the edits of the last days. */
    private const INFO_SECONDS = 3600;

    /** The page that the request names. */
    public static $requested = null;

    /** @var array<int, array<string, bool>> drawn links whose pages MediaWiki's object cache keeps, and whether they exist */
    private static array $drawn = [];

    /** Adds a link that is drawn, with or without the colour of missing pages. */
    public static function link($target, bool $isKnown): void
    {
        Page::uses('link', Tags::title($target));
        if (in_array($target->getNamespace(), [NS_TEMPLATE, NS_CATEGORY], true)) {
            self::$drawn[$target->getNamespace()][$target->getDBkey()] = $isKnown;
        }
    }

    /** Whether these links have the right colours: the object cache may return an old value after a change. */
    public static function areLinksCurrent(): bool
    {
        if (self::$drawn === []) {
            return true;
        }
        $database = MediaWikiServices::getInstance()->getDBLoadBalancer()->getConnection(DB_REPLICA);
        $left = self::$drawn;
        foreach ($database->select('page', ['page_namespace', 'page_title'], $database->makeWhereFrom2d($left, 'page_namespace', 'page_title'), __METHOD__) as $row) {
            if (!$left[(int) $row->page_namespace][$row->page_title]) {
                return false;
            }
            $left[(int) $row->page_namespace][$row->page_title] = false;
        }
        return !in_array(true, array_merge(...array_map(array_values(...), array_values($left))), true);
    }

    /** Adds the page of a title: all that its views show apart from the parsed text. */
    private static function page($title): void
    {
        $namespace = $title->getNamespace();
        Page::uses('page', Tags::title($title));
        Page::uses('text', Tags::title($title));
        Page::uses('link', Tags::title($title));
        if ($title->canHaveTalkPage()) {
            // The tabs of a page and its talk page.
            Page::uses('link', Tags::title($title->isTalkPage() ? $title->getSubjectPage() : $title->getTalkPage()));
        }
        if ($namespace === NS_CATEGORY) {
            Page::uses('category', Tags::name($title->getDBkey()));
        } elseif ($namespace === NS_FILE) {
            Page::uses('file', Tags::name($title->getDBkey()));
            Page::uses('backlinks', Tags::title($title));
            $file = MediaWikiServices::getInstance()->getRepoGroup()->findFile($title);
            ParserCacheCheck::isFileCurrent($title, $file) || Page::refuse(Refusal::Outdated);
            if ($file && (string) $file->getSha1() !== '') {
                Page::uses('hash', $file->getSha1());
            }
        } elseif ($namespace === NS_USER || $namespace === NS_USER_TALK) {
            Page::uses('user', Tags::name(explode('/', $title->getDBkey(), 2)[0]));
        }
    }

    /** Adds what an action of index.php shows of a page; refuses those that are not known. */
    public static function action(string $action, $title, $request): void
    {
        $isOld = $request->getInt('oldid') > 0 || $request->getCheck('diff');
        $titles = [$title, ...(self::$requested !== null && self::$requested->canExist() ? [self::$requested] : [])];
        foreach ($titles as $one) {
            $isOld && Page::uses('history', Tags::title($one));
            match (true) {
                http_response_code() === 301 => Page::uses('link', Tags::title($one)),
                $action === 'raw' => Page::uses('content', Tags::title($one)),
                $action === 'history' && $request->getVal('feed') !== null => self::history($one),
                $action === 'history' => array_map(static fn (callable $adds) => $adds($one), [self::history(...), self::page(...)]),
                $action === 'info' => self::info($one),
                $action === 'view' => self::page($one),
                default => Page::refuse(Refusal::Unknown),
            };
        }
        if (http_response_code() !== 301 && $action !== 'raw' && $request->getVal('feed') === null) {
            Page::uses('skin');
        }
        $isOld && self::revisions($request);
    }

    private static function history($title): void
    {
        Page::uses('page', Tags::title($title));
        Page::uses('history', Tags::title($title));
        Page::uses('changetags');
    }

    private static function info($title): void
    {
        self::page($title);
        foreach (['history', 'links', 'backlinks', 'subpages'] as $kind) {
            Page::uses($kind, Tags::title($title));
        }
        Page::freshFor(self::INFO_SECONDS);
    }

    /** The revisions of a difference may be of other pages than the title. */
    private static function revisions($request): void
    {
        foreach ([$request->getInt('oldid'), $request->getInt('diff')] as $id) {
            $revision = $id > 0 ? MediaWikiServices::getInstance()->getRevisionLookup()->getRevisionById($id) : null;
            if ($revision !== null) {
                Page::uses('page', Tags::title($revision->getPageAsLinkTarget()));
                Page::uses('history', Tags::title($revision->getPageAsLinkTarget()));
            }
        }
    }

    /** Adds a parsed text that is shown: what it was made from, and how long it may be shown. */
    public static function parsed($parsed): void
    {
        self::links($parsed);
        $seconds = (int) $parsed->getCacheExpiry();
        if ($seconds < MediaWikiServices::getInstance()->getMainConfig()->get('ParserCacheExpireTime')) {
            $madeAt = (int) wfTimestamp(TS_UNIX, $parsed->getCacheTime());
            Page::freshFor($seconds === 0 ? 0 : max(1, $madeAt + $seconds - time()));
        }
    }

    /** Adds the templates, links and files of a parsed text. */
    public static function links($parsed): void
    {
        foreach ($parsed->getTemplates() as $namespace => $titles) {
            foreach ($titles as $key => $_) {
                Page::uses('content', Tags::named((int) $namespace, (string) $key));
            }
        }
        foreach ($parsed->getLinks() as $namespace => $titles) {
            foreach ($titles as $key => $_) {
                Page::uses('link', Tags::named((int) $namespace, (string) $key));
            }
        }
        foreach ($parsed->getFileSearchOptions() + $parsed->getImages() as $name => $_) {
            Page::uses('file', Tags::name((string) $name));
        }
    }
}
