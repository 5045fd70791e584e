<?php

/**
 * What was told to Pagewell lately, and what could not be told yet; kept in two options.
 *
 * Both are bounded: the last TOLD_MAX changes with a few of their names, and as many pending names
 * as a request may have (Changes::TAGS_MAX), beyond which `site` stands for all.
 */

declare(strict_types=1);

namespace Pagewell\WordPress;

/** Remembers. */
final class Journal
{
    private const TOLD = 'pagewell_told';
    private const PENDING = 'pagewell_pending';
    private const TOLD_MAX = 20;
    private const NAMES_MAX = 12;

    /**
     * Told: on an `answer`, or over the `control` interface. Whatever was pending was told with it.
     *
     * @param list<string> $tags
     */
    public static function told(string $way, array $tags): void
    {
        if (self::pending() !== []) {
            delete_option(self::PENDING);
        }
        $entry = ['at' => time(), 'way' => $way, 'tags' => array_slice($tags, 0, self::NAMES_MAX), 'count' => count($tags)];
        update_option(self::TOLD, array_slice([$entry, ...self::lately()], 0, self::TOLD_MAX), false);
    }

    /**
     * Could not be told.
     *
     * @param list<string> $tags
     */
    public static function keep(array $tags): void
    {
        $tags = array_values(array_unique([...self::pending(), ...$tags]));
        $kept = count($tags) > Changes::TAGS_MAX ? [Tags::full(Tags::SITE)] : $tags;
        update_option(self::PENDING, ['at' => time(), 'tags' => $kept], true);
    }

    /** @return list<string> */
    public static function pending(): array
    {
        return array_values(array_map('strval', (array) (get_option(self::PENDING)['tags'] ?? [])));
    }

    /** How long ago something could not be told. */
    public static function failedSecondsAgo(): int
    {
        return time() - (int) (get_option(self::PENDING)['at'] ?? 0);
    }

    /** @return list<array{at: int, way: string, tags: list<string>, count: int}> newest first */
    public static function lately(): array
    {
        return array_values((array) get_option(self::TOLD, []));
    }
}
