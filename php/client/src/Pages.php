<?php

/**
 * Says beside a controller which addresses it answers, for the dependency list alone.
 *
 *     #[Pages('/', '/page/{page}/')]
 *
 * Symfony's #[Route] says the same and is read too. Where the routes are in a table of their own,
 * `pagewell-php dependencies --routes FILE` reads that.
 */

declare(strict_types=1);

namespace Pagewell;

/** The addresses of a controller. */
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
