<?php

/**
 * Changes that are not sent yet, as read by one request: their names, and their rows, so that
 * exactly these are deleted after sending (Journal).
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Purge;

/**
 * Changes that wait to be sent.
 *
 * @internal
 */
final class Pending
{
    /**
     * @param string                $table the options of the blog that they were read from
     * @param array<string, string> $rows  option_value by option_name
     * @param list<string>          $tags  the names in them
     * @param bool                  $isAll false if there are more than one request reads
     * @param int                   $blog  the number of that blog
     */
    public function __construct(
        public readonly string $table = '',
        public readonly array $rows = [],
        public readonly array $tags = [],
        public readonly bool $isAll = true,
        public readonly int $blog = 0,
    ) {
    }
}
