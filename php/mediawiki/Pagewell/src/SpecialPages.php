<?php

/**
 * The special pages whose dependencies are known. Each of the others is refused: it may read
 * anything.
 *
 * Links and messages are added by the hooks, so this table only has the data of the list itself. Version is not in it:
 * it names the address of the visitor.
 */

declare(strict_types=1);

namespace Pagewell\MediaWiki;

use MediaWiki\MediaWikiServices;

/**
 * A table by the names of special pages.
 *
 * @internal
 */
final class SpecialPages
{
    /** Kinds of data on which a page depends as a whole; none: only the texts of the interface. */
    private const KINDS = [
        'Categories' => ['categories'],
        'Listfiles' => ['files', 'file'],
        'Listgrants' => [],
        'Listgrouprights' => [],
        'Listusers' => ['users', 'user'],
        'Log' => ['log', 'changetags'],
        'Newimages' => ['files', 'file'],
        'Protectedpages' => ['protection', 'page'],
        'Recentchanges' => ['recent', 'changetags'],
        'Specialpages' => [],
        'Statistics' => ['statistics'],
    ];

    /** TTL of pages that depend on the time, in seconds. */
    private const SECONDS = ['Recentchanges' => 600, 'Recentchangeslinked' => 600, 'Statistics' => 3600, 'Newpages' => 3600];

    /** Adds the dependencies of a special page, or refuses to store what it shows. */
    public static function uses($special, string $parameter): void
    {
        $name = (string) $special->getName();
        $request = $special->getRequest();
        $target = (string) $request->getText('target', $parameter);
        $known = self::listed($name, $request, $parameter) || self::about($name, $target);
        if (!$known) {
            Page::refuse(Refusal::Unknown);
            return;
        }
        Page::uses('skin');
        isset(self::SECONDS[$name]) && Page::freshFor(self::SECONDS[$name]);
        // The link to later changes has the time at which the page is made.
        in_array($name, ['Recentchanges', 'Recentchangeslinked'], true) && Page::uses('ages');
    }

    /** Whether the page is a list of the wiki. */
    private static function listed(string $name, $request, string $parameter): bool
    {
        foreach (self::KINDS[$name] ?? [] as $kind) {
            Page::uses($kind);
        }
        if ($name === 'Allpages' || $name === 'Prefixindex') {
            $prefix = MediaWikiServices::getInstance()->getTitleFactory()->newFromText($request->getText('from', $request->getText('prefix', $parameter)));
            // A prefix may name another namespace than the field.
            $namespaces = [$request->getInt('namespace'), ...($prefix === null ? [] : [$prefix->getNamespace()])];
            Page::uses('titles', ...array_unique($namespaces));
            return true;
        }
        if ($name === 'Newpages') {
            Page::uses('newpages');
            Page::uses('changetags');
            return true;
        }
        return isset(self::KINDS[$name]);
    }

    /** Whether the page is about another page, or a user. */
    private static function about(string $name, string $target): bool
    {
        $title = MediaWikiServices::getInstance()->getTitleFactory()->newFromText($target);
        if (in_array($name, ['Whatlinkshere', 'Recentchangeslinked'], true)) {
            if ($title !== null && $title->canExist()) {
                Page::uses('link', Tags::title($title));
                // The list also has the pages that link to a redirect to this one.
                Page::uses('backlinks', ...($name === 'Whatlinkshere' ? [] : [Tags::title($title)]));
                Page::uses('links', Tags::title($title));
            }
            if ($name === 'Recentchangeslinked') {
                Page::uses('recent');
                Page::uses('changetags');
            }
            return true;
        }
        if ($name === 'Contributions' && $target !== '' && !str_contains($target, '/')) {
            $user = Tags::name($title === null ? $target : $title->getText());
            Page::uses('contributions', $user);
            Page::uses('changetags');
            Page::uses('user', $user);
            return true;
        }
        return false;
    }
}
