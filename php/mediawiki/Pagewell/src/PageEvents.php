<?php

/**
 * MediaWiki's hooks after a page or its links have changed: each tells the names of what
 * changed (Tags).
 *
 * Most run within the transaction of the change; ChangeQueue sends the names after its commit.
 */

declare(strict_types=1);

namespace Pagewell\MediaWiki;

use MediaWiki\MediaWikiServices;

/**
 * Handlers of hooks. They have MediaWiki's parameters, whose classes differ between its versions.
 *
 * @internal
 */
final class PageEvents
{
    /** LinksTable::CHANGED: the inserted and the deleted links. */
    private const CHANGED = 3;

    /** A revision was added: by an edit, a move, a protection, an upload. */
    public function onRevisionFromEditComplete($page, $revision, $original, $user, &$tags): void
    {
        ChangeQueue::add('page', Tags::title($page->getTitle()));
        ChangeQueue::add('history', Tags::title($page->getTitle()));
        ChangeQueue::add('contributions', Tags::name($user->getName()));
    }

    public function onPageSaveComplete($page, $user, $summary, $flags, $revision, $result): void
    {
        $title = $page->getTitle();
        if ($result->isNullEdit()) {
            ChangeQueue::add('page', Tags::title($title));
            return;
        }
        $before = $revision->getParentId() ? MediaWikiServices::getInstance()->getRevisionLookup()->getRevisionById($revision->getParentId()) : null;
        $old = $before?->getContent('main');
        $new = $revision->getContent('main');
        if (($flags & EDIT_NEW) !== 0 || $before === null) {
            PageChange::existence($title);
            ChangeQueue::add('newpages');
            // A new page is logged, but not as a recent change.
            ChangeQueue::add('log');
        } elseif ((bool) $old?->isRedirect() !== (bool) $new?->isRedirect()) {
            ChangeQueue::add('link', Tags::title($title));
            // Lists of pages can leave out redirects.
            ChangeQueue::add('titles', $title->getNamespace());
            PageChange::targets($title);
        }
        foreach (['page', 'history', 'content'] as $kind) {
            ChangeQueue::add($kind, Tags::title($title));
        }
        ChangeQueue::add('contributions', Tags::name($user->getName()));
        ChangeQueue::add('statistics');
        // Lists of users may have the number of their edits.
        MediaWikiServices::getInstance()->getMainConfig()->get('Edititis') && ChangeQueue::add('users');
        PageChange::interface($title, ($before?->getSize() ?? 0) === 0 || $revision->getSize() === 0);
    }

    public function onPageMoveComplete($old, $new, $user, $id, $redirect, $reason, $revision): void
    {
        foreach ([$old, $new] as $target) {
            $title = PageChange::titleOf($target);
            PageChange::existence($title);
            PageChange::all($title);
            PageChange::interface($title, true);
        }
        PageChange::targets(PageChange::titleOf($new));
        ChangeQueue::add('newpages');
        ChangeQueue::add('statistics');
    }

    public function onPageDeleteComplete($page, $deleter, $reason, $id, $revision, $entry, $count): void
    {
        $title = PageChange::titleOf($page);
        PageChange::existence($title);
        PageChange::all($title);
        PageChange::interface($title, true);
        ChangeQueue::add('newpages');
        ChangeQueue::add('statistics');
    }

    public function onArticleUndelete($title, $isNew, $comment, $oldId, $restored): void
    {
        PageChange::existence($title);
        PageChange::all($title);
        PageChange::interface($title, true);
        ChangeQueue::add('newpages');
        ChangeQueue::add('statistics');
        PageChange::authors($title);
    }

    public function onArticleProtectComplete($page, $user, $protect, $reason): void
    {
        $title = $page->getTitle();
        ChangeQueue::add('page', Tags::title($title));
        ChangeQueue::add('protection');
        // A cascading protection applies to the templates of the page.
        foreach ($title->getTemplateLinksFrom(['LIMIT' => PageChange::LINKS_MAX]) as $template) {
            ChangeQueue::add('page', Tags::title($template));
        }
    }

    public function onArticlePurge($page): void
    {
        ChangeQueue::add('text', Tags::title($page->getTitle()));
    }

    public function onArticleRevisionVisibilitySet($title, $ids, $map): void
    {
        // The latest revision is shown with the page.
        in_array($title->getLatestRevID(), array_map(intval(...), $ids), true) ? PageChange::all($title) : ChangeQueue::add('history', Tags::title($title));
        ChangeQueue::add('recent');
        ChangeQueue::add('log');
    }

    public function onArticleMergeComplete($from, $to): void
    {
        foreach ([$from, $to] as $title) {
            PageChange::existence($title);
            PageChange::all($title);
        }
    }

    public function onAfterImportPage($title, $foreign, $revisions, $successes, $info): void
    {
        PageChange::existence(PageChange::titleOf($title));
        PageChange::all(PageChange::titleOf($title));
        PageChange::interface(PageChange::titleOf($title), true);
        PageChange::authors(PageChange::titleOf($title));
        ChangeQueue::add('newpages');
        ChangeQueue::add('statistics');
    }

    /** The links of a page were written: after its edit, or by a job after an edit of its template. */
    public function onLinksUpdateComplete($update, $ticket): void
    {
        $title = $update->getTitle();
        [$pages, $categories] = [[], []];
        foreach (['pagelinks', 'templatelinks', 'imagelinks', 'categorylinks'] as $table) {
            foreach ($update->getPageReferenceIterator($table, self::CHANGED) as $target) {
                if ($table === 'categorylinks') {
                    $categories[] = Tags::name($target->getDBkey());
                } else {
                    $pages[] = Tags::title($target);
                }
            }
        }
        // Together, because each call may be sent at once.
        $pages === [] || ChangeQueue::add('backlinks', ...$pages);
        if ($categories !== []) {
            ChangeQueue::add('category', ...$categories);
            ChangeQueue::add('categories');
        }
        $properties = ($update->getAddedProperties() ?? []) + ($update->getRemovedProperties() ?? []);
        if (isset($properties['hiddencat'])) {
            ChangeQueue::add('link', Tags::title($title));
        }
        $external = [...$update->getAddedExternalLinks() ?? [], ...$update->getRemovedExternalLinks() ?? []];
        if ($pages !== [] || $categories !== [] || $properties !== [] || $external !== []) {
            ChangeQueue::add('links', Tags::title($title));
        }
    }
}
