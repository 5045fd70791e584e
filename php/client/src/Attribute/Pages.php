<?php

/**
 * Declares at a controller which URLs it answers, only for the dependency list.
 *
 *     #[Pages('/', '/page/{page}/')]
 *
 * Symfony's #[Route] is read as well. If the routes are in a table of their own, use `pagewell-php
 * dependencies --routes FILE`.
 */

declare(strict_types=1);

namespace Pagewell\Attribute;

/** The URLs of a controller. */
#[\Attribute(\Attribute::TARGET_CLASS | \Attribute::TARGET_METHOD)]
final class Pages
{
    /** @var list<string> */
    public readonly array $addresses;

    public function __construct(string ...$addresses)
    {
        $this->addresses = array_values($addresses);
    }
}
