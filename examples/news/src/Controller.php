<?php

/**
 * The interface of all controllers: they answer a request.
 */

declare(strict_types=1);

namespace News;

/** Answers the requests of one route. */
interface Controller
{
    /** The answer to this request; what cannot be answered is thrown. */
    public function answer(Request $request): Response;
}
