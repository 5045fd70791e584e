<?php

/**
 * The dependencies of a response of load.php: the pages of the wiki that a module consists of, and
 * its messages.
 *
 * The code of MediaWiki and of extensions changes with an upgrade, after which the cache is purged
 * as a whole. The list of modules (`startup`) has a version of each, and changes with any of them.
 *
 * A page names the modules of the wiki that have pages. It costs a query to see whether it names the right ones.
 */

declare(strict_types=1);

namespace Pagewell\MediaWiki;

use MediaWiki\MediaWikiServices;
use MediaWiki\ResourceLoader\Context;
use MediaWiki\ResourceLoader\Module;
use MediaWiki\ResourceLoader\WikiModule;

/**
 * Adds the dependencies of modules.
 *
 * @internal
 */
final class Modules
{
    /** Adds those of the modules in this request, or refuses to store the response. */
    public static function uses($request): void
    {
        $loader = MediaWikiServices::getInstance()->getResourceLoader();
        $context = new Context($loader, $request);
        if ($context->getDebug() || $context->getUser() !== null || $context->getContentOverrideCallback() !== null) {
            Page::refuse(Refusal::Unknown);
            return;
        }
        foreach ($context->getModules() as $name) {
            $module = $loader->getModule($name);
            $group = $module === null ? null : $module->getGroup();
            if ($module === null || $group === Module::GROUP_USER || $group === Module::GROUP_PRIVATE) {
                Page::refuse(Refusal::Unknown);
                return;
            }
            if ($name === 'startup') {
                Page::uses('startup');
                Page::uses('changetags');
            }
            foreach ($module->getMessages() as $key) {
                Page::uses('message', Tags::name(lcfirst((string) $key)));
            }
            $module instanceof WikiModule && self::pages($module, $context);
        }
    }

    /** Whether the modules that the page names have the wiki's pages of now: right after a change, the object cache may return an old list. */
    public static function areCurrent($output): bool
    {
        if (!method_exists($output, 'getRlClientContext')) {
            return true;
        }
        $context = (fn () => $this->getRlClientContext())->call($output);
        $shown = $asked = [];
        foreach (['site', 'site.styles'] as $name) {
            $module = MediaWikiServices::getInstance()->getResourceLoader()->getModule($name);
            if ($module instanceof WikiModule) {
                $shown += (fn (): array => $this->getTitleInfo($context))->call($module);
                foreach (self::titles($module, $context) as $title) {
                    $asked[$title->getNamespace()][$title->getDBkey()] = true;
                }
            }
        }
        if ($asked === []) {
            return true;
        }
        $database = MediaWikiServices::getInstance()->getDBLoadBalancer()->getConnection(DB_REPLICA);
        return $database->select('page', ['page_id'], $database->makeWhereFrom2d($asked, 'page_namespace', 'page_title'), __METHOD__)->numRows() === count($shown);
    }

    private static function pages(WikiModule $module, Context $context): void
    {
        foreach (self::titles($module, $context) as $title) {
            Page::uses('content', Tags::title($title));
        }
    }

    /** The method that lists the pages is protected. */
    private static function titles(WikiModule $module, Context $context): array
    {
        $pages = (fn (): array => $this->getPages($context))->call($module);
        $titles = MediaWikiServices::getInstance()->getTitleFactory();
        return array_filter(array_map(static fn ($text) => $titles->newFromText((string) $text), array_keys($pages)));
    }
}
