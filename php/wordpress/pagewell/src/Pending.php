<?php

/**
 * Changes that could not be told yet, as one request has read them: their names, and the rows that
 * they came from, so that exactly these are deleted once they were told (Journal).
 */

declare(strict_types=1);

namespace Pagewell\WordPress;

/** What waits to be told. */
final class Pending
{
    /**
     * @param string                $table the options of the blog that they were read from
     * @param array<string, string> $rows  option_value by option_name
     * @param list<string>          $tags  what they name
     * @param bool                  $isAll false when there were more than one request takes
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
