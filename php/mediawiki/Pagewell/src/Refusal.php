<?php

/**
 * The reason why a page is not offered to Pagewell. The response has it as X-Pagewell-Refusal.
 *
 * The library's Refusal is not copied: most of these reasons exist only in a wiki, and most of its
 * own never occur here. Where both have a reason, it has the same name.
 */

declare(strict_types=1);

namespace Pagewell\MediaWiki;

/**
 * A reason, with the name under which it is shown.
 *
 * @internal
 */
enum Refusal: string
{
    /** A page, an action or a module of the API whose dependencies the extension does not know. */
    case Unknown = 'unknown-dependencies';

    /** The visitor is signed in. */
    case SignedIn = 'signed-in';

    /** The request has a session, a cookie or Authorization that MediaWiki may read. */
    case Session = 'session';

    /** The response sets a cookie. */
    case SetCookie = 'set-cookie';

    /** MediaWiki sent `no-store`. */
    case CacheControl = 'cache-control';

    /** The page has the bar for messages on the visitor's talk page. */
    case VisitorsMessages = 'visitors-messages';

    /** The visitor's address is blocked. */
    case Blocked = 'blocked';

    /** Anonymous visitors may not read the wiki. */
    case PrivateWiki = 'private-wiki';

    /** MediaWiki's object cache returned an old value: the data have just changed. */
    case Outdated = 'outdated-value';

    /** The database has replicas: the page may be rendered from a replica that does not have a change yet. */
    case Replicas = 'replicas';

    /** The status is not 200, 301 or 404, or the request failed. */
    case Status = 'status';

    /** The text of the page may not be cached, as its magic words say. */
    case ZeroLifetime = 'zero-lifetime';

    /** A handler that collects dependencies failed; PHP's log has the error. */
    case Unobserved = 'unobserved';

    /** The request did not come through Pagewell, so the response has no tags. */
    case NotInFront = 'not-in-front';

    /** A setting of the extension is wrong; PHP's log says which. */
    case Setting = 'wrong-setting';
}
