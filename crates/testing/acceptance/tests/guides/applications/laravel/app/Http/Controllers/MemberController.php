<?php

/** A page that is said to be public, and is not. */

declare(strict_types=1);

namespace App\Http\Controllers;

use Illuminate\Http\Response;
use Illuminate\Support\Facades\Auth;
use Pagewell\Attribute\Uses;

final class MemberController
{
    #[Uses('news')]
    public function show(): Response
    {
        return (new Response('Hello ' . (Auth::user()?->name ?? 'stranger')))->header('Cache-Control', 'public, max-age=60');
    }
}
