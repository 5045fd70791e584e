<?php

/**
 * The dependencies of a response of load.php: the pages of the wiki that a module consists of, and
 * its messages.
 *
 * The code of MediaWiki and of extensions changes with an upgrade, after which the cache is purged
 * as a whole. The list of modules (`startup`) has a version of each, and changes with any of them.
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

    /** The method that lists the pages is protected. */
    private static function pages(WikiModule $module, Context $context): void
    {
        $pages = (fn (): array => $this->getPages($context))->call($module);
        foreach (array_keys($pages) as $text) {
            $title = MediaWikiServices::getInstance()->getTitleFactory()->newFromText((string) $text);
            $title === null || Page::uses('content', Tags::title($title));
        }
    }
}
