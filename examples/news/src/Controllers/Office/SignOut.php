<?php

/**
 * `POST /office/out/`: signs out.
 */

declare(strict_types=1);

namespace News\Controllers\Office;

use News\Controller;
use News\Libraries\Office;
use News\Request;
use News\Response;
use Pagewell\Attribute\NotCached;

/** Signs out. */
#[NotCached('the office is for those who have signed in')]
final class SignOut implements Controller
{
    public function __construct(private readonly Office $office)
    {
    }

    public function answer(Request $request): Response
    {
        if ($this->office->sent($request)) {
            $this->office->signOut();
        }
        return Response::seeOther('/office/');
    }
}
