<?php

/**
 * MediaWiki's hooks while a page is rendered: each tells what the page reads.
 *
 *     every message, every link drawn by the skin or a special page, every template
 *     every parsed text that is shown, from the parser cache or not (Reads::parsed)
 *     the special page, with its own table (SpecialPages)
 */

declare(strict_types=1);

namespace Pagewell\MediaWiki;

/**
 * Handlers of hooks. They have MediaWiki's parameters, whose classes differ between its versions.
 *
 * @internal
 */
final class ReadHooks
{
    /** MediaWiki keeps the parsed site notice for this time, in seconds. */
    private const NOTICE_SECONDS = 600;

    /** @param mixed $title the page that the request names; a redirect shows another one */
    public function onBeforeInitialize($title, $unused, $output, $user, $request, $entryPoint): void
    {
        Reads::$requested = $title;
        // A feed has the time at which it is made.
        $request->getVal('feed', '') === '' || Page::uses('ages');
    }

    /** A feed shows a difference in another way once it comes from MediaWiki's cache: the next render is stored. */
    public function onAbortDiffCache($difference): void
    {
        $request = $difference->getRequest();
        $isFeed = $request->getVal('feed', '') !== '' || $request->getVal('action') === 'feedrecentchanges';
        if ($isFeed && $GLOBALS['wgMainCacheType'] !== CACHE_NONE) {
            Page::refuse(Refusal::Outdated);
        }
    }

    /** @param string $key a message, in any language */
    public function onMessageCache__get(&$key): void // phpcs:ignore PSR1.Methods.CamelCapsMethodName
    {
        Page::uses('message', Tags::name((string) $key));
    }

    /** A link is drawn, whose colour depends on the page. */
    public function onHtmlPageLinkRendererEnd($renderer, $target, $isKnown, &$text, &$attributes, &$result): void
    {
        if ($target->getNamespace() >= 0 && !$target->isExternal() && $target->getDBkey() !== '') {
            Reads::link($target, (bool) $isKnown);
        }
    }

    public function onOutputPageParserOutput($output, $parsed): void
    {
        Reads::parsed($parsed);
        self::removeReport($output);
    }

    /** A page for all readers has no report of when, and how fast, its text was parsed: each parse has another. */
    private static function removeReport($output): void
    {
        if ($output->getUser()->isAnon() && !$output->getRequest()->wasPosted() && property_exists('OutputPage', 'limitReportJSData')) {
            (new \ReflectionProperty('OutputPage', 'limitReportJSData'))->setValue($output, []);
        }
    }

    public function onParserOutputPostCacheTransform($parsed, &$text, &$options): void
    {
        Reads::parsed($parsed);
    }

    public function onParserAfterTidy($parser, &$text): void
    {
        Reads::links($parser->getOutput());
    }

    /** A template is read, also by a message. */
    public function onBeforeParserFetchTemplateRevisionRecord($context, $title, &$skip, &$revision): void
    {
        Page::uses('content', Tags::title($title));
    }

    /** The site notice is parsed and kept, so its templates and links are not seen each time. */
    public function onSiteNoticeAfter(&$notice, $skin): void
    {
        $source = $skin->msg('sitenotice')->inContentLanguage()->plain() . $skin->msg('anonnotice')->inContentLanguage()->plain();
        if (preg_match('/\{\{|\[\[/', $source) === 1) {
            Page::freshFor(self::NOTICE_SECONDS);
        }
    }

    public function onSpecialPageBeforeExecute($special, $parameter): void
    {
        SpecialPages::uses($special, (string) $parameter);
        // It hides old versions of files and entries of logs, for which there is no hook.
        if ($special->getName() === 'Revisiondelete' && $special->getRequest()->wasPosted()) {
            ChangeQueue::addEverything();
        }
    }

    /** A line says whether its revision is the latest of its page. */
    public function onContributionsLineEnding($pager, &$line, $row, &$classes, &$attributes): void
    {
        if (isset($row->page_namespace, $row->page_title)) {
            Page::uses('page', Tags::named((int) $row->page_namespace, (string) $row->page_title));
            Page::uses('history', Tags::named((int) $row->page_namespace, (string) $row->page_title));
        }
    }

    /** CategoryTree shows how many members the categories below have. */
    public function onCategoryViewer__doCategoryQuery($type, $rows): void // phpcs:ignore PSR1.Methods.CamelCapsMethodName
    {
        $registry = class_exists('MediaWiki\Registration\ExtensionRegistry') ? 'MediaWiki\Registration\ExtensionRegistry' : 'ExtensionRegistry';
        if ($type === 'subcat' && $registry::getInstance()->isLoaded('CategoryTree')) {
            foreach ($rows as $row) {
                Page::uses('category', Tags::name((string) $row->page_title));
            }
        }
    }

    /** A line has the length of its page. */
    public function onNewPagesLineEnding($page, &$line, $row, &$classes, &$attributes): void
    {
        if (isset($row->rc_namespace, $row->rc_title)) {
            Page::uses('page', Tags::named((int) $row->rc_namespace, (string) $row->rc_title));
            Page::uses('history', Tags::named((int) $row->rc_namespace, (string) $row->rc_title));
        }
    }
}
