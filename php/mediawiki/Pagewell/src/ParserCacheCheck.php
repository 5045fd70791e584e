<?php

/**
 * Refuses a text of MediaWiki's parser cache that was made from other templates, links or files than
 * there are now.
 *
 * MediaWiki itself compares times in seconds, and a job sets the time of the pages that use a
 * template, some while after the edit. Until then it shows the old text. With this check the text is
 * right as soon as the template is saved, so Pagewell can purge the pages that use it at once.
 *
 *     when a text is parsed   a hash of the rows of its links and templates is stored with it. If the
 *                             parser has seen other rows, the text is neither kept nor offered:
 *                             MediaWiki's object cache may return an old value for some milliseconds
 *                             after a change
 *     when it is reused       the rows must have the same hash, and no template may have another
 *                             revision that is younger than the text
 *
 * Cost: a query for the links and templates, and one for the files. They run when PHP parses a text
 * or reuses one, and never when Pagewell answers.
 */

declare(strict_types=1);

namespace Pagewell\MediaWiki;

use MediaWiki\MediaWikiServices;

/**
 * Handlers of hooks. They have MediaWiki's parameters, whose classes differ between its versions.
 *
 * @internal
 */
final class ParserCacheCheck
{
    /** The name of the hash in the data of a text. */
    private const KEY = 'pagewell-rows';

    /** Maximum number of pages in one query. */
    private const BATCH = 500;

    /** A text was parsed. */
    public function onParserAfterTidy($parser, &$text): void
    {
        $parsed = $parser->getOutput();
        $isCurrent = self::areFilesCurrent($parsed);
        if ($parsed->getLinks() !== [] || $parsed->getTemplateIds() !== []) {
            $rows = self::rows($parsed);
            $parsed->setExtensionData(self::KEY, self::hash($parsed, $rows));
            $isCurrent = $isCurrent && self::haveRevisions($parsed, $rows) && self::exist($parsed, $rows);
        }
        if (!$isCurrent) {
            $parsed->updateCacheExpiry(0);
            Page::refuse(Refusal::Outdated);
        }
    }

    /**
     * Whether the pages exist that existed for the parser, and no others.
     *
     * @param array<string, \stdClass> $rows
     */
    private static function exist($parsed, array $rows): bool
    {
        foreach ($parsed->getLinks() as $namespace => $ids) {
            foreach ($ids as $key => $id) {
                if (((int) $id > 0) !== isset($rows["$namespace:$key"])) {
                    return false;
                }
            }
        }
        return true;
    }

    /** @return bool false if the text must be made again */
    public function onRejectParserCacheValue($parsed, $page, $options): bool
    {
        if ($parsed->getLinks() !== [] || $parsed->getTemplateIds() !== []) {
            $rows = self::rows($parsed);
            $before = $parsed->getExtensionData(self::KEY);
            // A text from before the extension was installed has no hash.
            if ($before !== self::hash($parsed, $rows) || !self::haveRevisions($parsed, $rows)) {
                return false;
            }
        }
        return self::areFilesCurrent($parsed);
    }

    /**
     * Whether no template has another revision that is younger than the text. Another extension may
     * have chosen an older revision, so a difference alone does not count.
     *
     * @param array<string, \stdClass> $rows
     */
    private static function haveRevisions($parsed, array $rows): bool
    {
        foreach ($parsed->getTemplateIds() as $namespace => $ids) {
            foreach ($ids as $key => $id) {
                $row = $rows["$namespace:$key"] ?? null;
                if ($row !== null && (int) $row->page_latest !== (int) $id && wfTimestamp(TS_MW, $row->page_touched) >= $parsed->getCacheTime()) {
                    return false;
                }
            }
        }
        return true;
    }

    /**
     * Hashes the parts of these rows that a text shows: of a link, whether the page exists and is a redirect; of a
     * template, its revision.
     *
     * @param array<string, \stdClass> $rows
     */
    private static function hash($parsed, array $rows): string
    {
        $parts = [];
        foreach ($rows as $name => $row) {
            [$namespace, $key] = explode(':', $name, 2);
            $isTemplate = isset($parsed->getTemplateIds()[(int) $namespace][$key]);
            $parts[] = "$name $row->page_is_redirect" . ($isTemplate ? " $row->page_latest" : '');
        }
        sort($parts);
        return hash('sha256', implode("\n", $parts));
    }

    /** @return array<string, \stdClass> rows of the table page by `namespace:key` */
    private static function rows($parsed): array
    {
        $names = [];
        foreach ([$parsed->getLinks(), $parsed->getTemplateIds()] as $titles) {
            foreach ($titles as $namespace => $keys) {
                foreach ($keys as $key => $_) {
                    $names["$namespace:$key"] = [(int) $namespace, (string) $key];
                }
            }
        }
        $database = MediaWikiServices::getInstance()->getDBLoadBalancer()->getConnection(DB_REPLICA);
        $fields = ['page_namespace', 'page_title', 'page_latest', 'page_touched', 'page_is_redirect'];
        $rows = [];
        foreach (array_chunk($names, self::BATCH) as $batch) {
            $titles = [];
            foreach ($batch as [$namespace, $key]) {
                $titles[$namespace][$key] = 1;
            }
            foreach ($database->select('page', $fields, $database->makeWhereFrom2d($titles, 'page_namespace', 'page_title'), __METHOD__) as $row) {
                $rows["$row->page_namespace:$row->page_title"] = $row;
            }
        }
        return $rows;
    }

    /** Whether MediaWiki's object cache has the current version of a file. */
    public static function isFileCurrent($title, $file): bool
    {
        $found = MediaWikiServices::getInstance()->getRepoGroup()->getLocalRepo()->findFiles([$title->getDBkey()])[$title->getDBkey()] ?? null;
        return $found === null ? !$file || !$file->isLocal() : $file && $file->getSha1() === $found->getSha1() && $file->getTimestamp() === $found->getTimestamp();
    }

    /** Whether files have the contents with which the text was made. Files of other wikis are not compared. */
    private static function areFilesCurrent($parsed): bool
    {
        $used = $parsed->getFileSearchOptions();
        if ($used === []) {
            return true;
        }
        $repositories = MediaWikiServices::getInstance()->getRepoGroup();
        $found = $repositories->getLocalRepo()->findFiles(array_map(strval(...), array_keys($used)));
        foreach ($used as $name => $made) {
            $hash = isset($found[$name]) ? (string) $found[$name]->getSha1() : '';
            $isElsewhere = $hash === '' && $repositories->hasForeignRepos();
            // A text may show an older version, of this time.
            if (!$isElsewhere && $hash !== (string) ($made['sha1'] ?? '') && self::isLatest($made, $found[$name] ?? null)) {
                return false;
            }
        }
        return true;
    }

    private static function isLatest(array $made, $file): bool
    {
        return !is_string($made['time'] ?? null) || $file === null || wfTimestamp(TS_MW, $file->getTimestamp()) >= $made['time'];
    }
}
