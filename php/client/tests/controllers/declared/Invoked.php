<?php

/**
 * A controller of one action that states its data by the interface, for DependenciesTest.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Controllers;

use Pagewell\Attribute\FreshFor;
use Pagewell\Attribute\Pages;
use Pagewell\HasDependencies;

#[FreshFor(5), Pages('/feed')]
final class Invoked implements HasDependencies
{
    private const KINDS = ['products', 'authors:{name}-{lang}'];

    public static function dependencies(): array
    {
        return self::KINDS;
    }

    public function __invoke(): void
    {
    }
}

/** Not a controller: nobody can make one. */
abstract class Base
{
}
