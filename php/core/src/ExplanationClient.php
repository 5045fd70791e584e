<?php

/**
 * The control interface of Pagewell, as far as it explains pages.
 *
 * Apart from InvalidationClient, because an application that only purges pages needs no more than that.
 */

declare(strict_types=1);

namespace Pagewell\Core;

use Pagewell\Core\Exception\InvalidationRefused;
use Pagewell\Core\Exception\InvalidConfiguration;
use Pagewell\Core\Exception\InvalidTag;
use Pagewell\Core\Exception\PagewellUnreachable;
use Pagewell\Core\Exception\UnreadableResponse;

/** Explains how pages are answered. */
interface ExplanationClient
{
    /**
     * Explains how the next request to a page is answered. Changes nothing, and sends no request to PHP.
     *
     * @param string                $url    a path with its query, or a whole URL
     * @param array<string, string> $fields header fields of that request by name, such as `cookie`
     *
     * @throws PagewellUnreachable   Pagewell cannot be reached, or did not answer in time
     * @throws InvalidationRefused   Pagewell refused the call: the token, the site, the URL
     * @throws UnreadableResponse    what answered is not Pagewell
     * @throws InvalidConfiguration  the address or the token file cannot be used
     * @throws InvalidTag            the URL or a field is not UTF-8
     */
    public function explain(string $url, array $fields = []): Explanation;
}
