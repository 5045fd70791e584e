<?php

/**
 * The reason why a page that may have called uses() is not offered for storing.
 *
 * One case each, in the order in which they are checked. The page is delivered unchanged; it is
 * rendered again for each request.
 */

declare(strict_types=1);

namespace Pagewell;

/** A reason, with the name under which it is shown. */
enum NotDeclared: string
{
    /** Neither uses() nor freshFor() was called. */
    case Nothing = 'nothing-declared';

    /** The response to a POST, PUT … is never stored. */
    case Method = 'method';

    /** The page failed: a status from 400, other than 404 and 410, or a fatal error. */
    case Failed = 'failed';

    /** A session was open: the page may be personal. */
    case Session = 'session';

    /** The request carries Authorization, and the application has not marked the page as shared. */
    case Authorization = 'authorization';

    /** The request carries a cookie that may be a login, and the application has not marked the page as shared. */
    case VisitorsCookie = 'visitors-cookie';

    /** The contents of the request are unknown: a worker passed no Credentials. */
    case RequestUnknown = 'request-unknown';

    /** The response sets a cookie. */
    case SetCookie = 'set-cookie';

    /** The application sent `no-store` or `private`. */
    case CacheControl = 'cache-control';

    /** freshFor(0). */
    case ZeroLifetime = 'zero-lifetime';

    /** More tags than Pagewell accepts; with a shortened list the page would miss changes. */
    case TooManyTags = 'too-many-tags';
}
