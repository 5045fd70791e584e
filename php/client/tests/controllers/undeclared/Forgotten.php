<?php

/**
 * Controllers without declarations, or with one action without a declaration, for DependenciesTest.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Forgotten;

use Pagewell\Attribute\FreshFor;
use Pagewell\Attribute\Pages;

final class Silent
{
    public function show(): void
    {
    }
}

final class Half
{
    #[FreshFor(60)]
    public function all(): void
    {
    }

    #[Pages('/one')]
    public function one(): void
    {
    }
}
