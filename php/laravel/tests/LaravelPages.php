<?php

/**
 * The application under test for LaravelTest: controllers, a model, and as much of a kernel as the
 * provider asks for.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Laravel;

use Illuminate\Contracts\Http\Kernel;
use Illuminate\Database\Eloquent\Model;
use Pagewell\Attribute\Uses;

use function Pagewell\changed;

class LaravelPages
{
    #[Uses('news:{id}')]
    public function one(string $id): string
    {
        return "news $id";
    }

    public function save(string $id): string
    {
        changed('news', $id);
        return 'saved';
    }
}

#[Uses('front')]
class LaravelFront
{
    public function __invoke(): string
    {
        return 'front';
    }
}

class LaravelNews extends Model
{
    public $timestamps = false;

    protected $table = 'news';

    protected $guarded = [];
}

interface LaravelKernel extends Kernel
{
    /** @param string $middleware */
    public function prependMiddleware($middleware);
}
