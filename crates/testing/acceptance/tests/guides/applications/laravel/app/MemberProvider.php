<?php

/** A visitor is whom `Authorization: Bearer NAME` names. The page `/me` greets that visitor. */

declare(strict_types=1);

namespace App;

use Illuminate\Auth\GenericUser;
use Illuminate\Http\Request;
use Illuminate\Support\Facades\Auth;
use Illuminate\Support\Facades\Route;
use Illuminate\Support\ServiceProvider;

final class MemberProvider extends ServiceProvider
{
    public function boot(): void
    {
        Auth::viaRequest('member', static fn (Request $request): ?GenericUser => $request->bearerToken() === null ? null : new GenericUser(['id' => 1, 'name' => $request->bearerToken()]));
        Route::get('/me', Http\Controllers\MemberController::class . '@show');
    }
}
