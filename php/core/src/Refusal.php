<?php

/**
 * The reason why a page is not stored: not offered to Pagewell, or not put into its memcached port.
 *
 *     Declaration                  every page of the library
 *     MemcachedPage                a page for the memcached port, and before it those of Declaration
 *     Pagewell\WordPress           a page of the plugin, which is installed with a copy of this file
 *
 * The page is delivered unchanged; it is rendered again for each request.
 */

declare(strict_types=1);

namespace Pagewell\Core;

/** A reason, with the name under which it is shown. */
enum Refusal: string
{
    /** The header section was sent, so the declarations of the page are gone. */
    case Sent = 'sent';

    /** The page has ESI fragments, which nginx does not insert. */
    case Fragments = 'fragments';

    /** PAGEWELL_CHANGES is not `control`: changes are sent on responses, which do not pass through Pagewell here. */
    case ChangesNotReceived = 'changes-not-received';

    /** Neither uses() nor freshFor() was called. */
    case Nothing = 'nothing-declared';

    /** The response to a POST, PUT … is never stored. */
    case Method = 'method';

    /** The page failed: a status from 400, other than 404 and 410, or a fatal error. */
    case Failed = 'failed';

    /** The visitor is signed in, as the framework, WordPress or the application knows. */
    case SignedIn = 'signed-in';

    /** A session was open: the page may be personal. */
    case Session = 'session';

    /** The request carries Authorization, and the page is not marked as shared. */
    case Authorization = 'authorization';

    /** The request carries a cookie of a login, a session or a cart by its name, and the page is not marked as shared. In a page for the memcached port, any cookie on no list. */
    case VisitorsCookie = 'visitors-cookie';

    /** The contents of the request are unknown: a worker passed no Credentials. */
    case RequestUnknown = 'request-unknown';

    /** notCached() was called, or the constant DONOTCACHEPAGE is set. */
    case NotCached = 'not-cached';

    /** The response sets a cookie. */
    case SetCookie = 'set-cookie';

    /** The application sent `no-store` or `private`. */
    case CacheControl = 'cache-control';

    /** The TTL is zero: freshFor(0). */
    case ZeroLifetime = 'zero-lifetime';

    /** More tags than Pagewell accepts; with a shortened list the page would miss changes. */
    case TooManyTags = 'too-many-tags';

    /** The status is not one that is stored: nginx would send a page of the memcached port with 200. */
    case Status = 'status';

    /** The type is not text/html, which nginx sends for all pages from memcached. */
    case ContentType = 'content-type';

    /**
     * The page is compressed, has `Vary`, or depends on a cookie with one copy per value: nginx
     * would send it to all clients.
     */
    case Varies = 'varies';

    /** The URL is longer than 250 bytes as a key, or contains a space. */
    case Key = 'key';

    /** The tags are longer than 64 KB. */
    case Tags = 'tags';

    /**
     * There is no lease: Pagewell is unreachable, or a memcached answers instead; or a key prefix
     * or the binary protocol is set.
     */
    case NoLease = 'no-lease';

    /**
     * Pagewell did not store it: its data changed while it was rendered, it is too large, or
     * Pagewell became unreachable.
     */
    case Refused = 'refused';

    /** A draft, or the customizer's preview. */
    case Preview = 'preview';

    /** The page shows a comment that waits for approval to its author. */
    case UnapprovedComment = 'unapproved-comment';

    /** A post that asks for a password. */
    case Password = 'password';

    /** A nonce in the page belongs to one visitor. */
    case VisitorsNonce = 'visitors-nonce';

    /** The theme or a plugin asked whether the visitor has a phone (wp_is_mobile). */
    case ByDevice = 'by-device';

    /** A route of the REST API whose dependencies are unknown, or a response of it other than 200. */
    case RestRoute = 'rest-route';

    /** The request did not come through Pagewell, so the response has no tags; those of the library only above 2 KB. */
    case NotInFront = 'not-in-front';

    /** A function that collects dependencies failed; the log has the error. */
    case Unobserved = 'unobserved';

    /** Output was flushed before the page was complete. */
    case SentEarly = 'sent-early';

    /** Whether the page may be personal, whatever fields it has. */
    public function isOfVisitor(): bool
    {
        return in_array($this, [self::SignedIn, self::Session, self::Authorization, self::VisitorsCookie, self::RequestUnknown], true);
    }
}
