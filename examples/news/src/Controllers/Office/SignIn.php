<?php

/**
 * `POST /office/`: signs in.
 */

declare(strict_types=1);

namespace News\Controllers\Office;

use News\Controller;
use News\Libraries\Office;
use News\Request;
use News\Response;
use Pagewell\Attribute\NotCached;

/** Signs in. */
#[NotCached('the office is for those who have signed in')]
final class SignIn implements Controller
{
    public function __construct(private readonly Office $office)
    {
    }

    public function answer(Request $request): Response
    {
        $fault = match (true) {
            !$this->office->sent($request) => 'This form was too old. Please try again.',
            !$this->office->signIn($request->form('password')) => 'That is not the password.',
            default => '',
        };
        return $fault === ''
            ? Response::seeOther('/office/')
            : Response::pageWith(403, 'office/sign-in', 'Office', office: $this->office, fault: $fault);
    }
}
