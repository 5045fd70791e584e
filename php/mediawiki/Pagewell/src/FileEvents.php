<?php

/** MediaWiki's hooks after a file has changed. The pages that show it depend on its name. */

declare(strict_types=1);

namespace Pagewell\MediaWiki;

/**
 * Handlers of hooks. They have MediaWiki's parameters, whose classes differ between its versions.
 *
 * @internal
 */
final class FileEvents
{
    public function onFileUpload($file, $isNewVersion, $hasDescription): void
    {
        self::file($file);
    }

    public function onFileDeleteComplete($file, $oldImage, $page, $user, $reason): void
    {
        self::file($file);
    }

    public function onFileUndeleteComplete($title, $versions, $user, $reason): void
    {
        ChangeQueue::add('file', Tags::name($title->getDBkey()));
        ChangeQueue::add('hash');
        ChangeQueue::add('files');
        PageChange::all($title);
    }

    private static function file($file): void
    {
        ChangeQueue::add('file', Tags::name($file->getName()));
        ChangeQueue::add('files');
        $file->getSha1() === '' ? ChangeQueue::add('hash') : ChangeQueue::add('hash', (string) $file->getSha1());
        $file->getTitle() === null || PageChange::all($file->getTitle());
        ChangeQueue::add('statistics');
    }
}
