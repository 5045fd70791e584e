<?php

/**
 * A controller of several actions, for DependenciesTest.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Controllers;

use Pagewell\Attribute\FreshFor;
use Pagewell\Attribute\NotCached;
use Pagewell\Attribute\Uses;
use Pagewell\Attribute\Writes;
use Symfony\Component\Routing\Attribute\Route;

#[Uses('shop'), Route('/shop')]
class Catalogue
{
    #[Route('/', name: 'all'), Uses('products'), FreshFor(60)]
    public function all(): void
    {
    }

    #[Route(path: ['/{id}', '/p/{id}']), Uses('products:{id}')]
    public function one(): void
    {
    }

    #[Route('/basket'), NotCached('it is the visitor\'s own')]
    public function basket(): void
    {
    }

    #[Writes('products:{id}')]
    public function save(): void
    {
    }

    public function notAnAction(): void
    {
    }
}
