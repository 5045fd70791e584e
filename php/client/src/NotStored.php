<?php

/**
 * The reason why a declared page was not stored over the memcached port.
 *
 * One case each, in the order in which they are checked; the reasons of NotDeclared are checked
 * third.
 */

declare(strict_types=1);

namespace Pagewell;

/** A reason, with the name under which it is shown. */
enum NotStored: string
{
    /** The header section was sent, so the declarations of the page are gone. */
    case Sent = 'sent';

    /** PAGEWELL_CHANGES is not `control`: changes are sent on responses, which do not pass through Pagewell here. */
    case ChangesNotReceived = 'changes-not-received';

    /** The status is not 200: nginx would send the page with 200. */
    case Status = 'status';

    /** The type is not text/html, which nginx sends for all pages from memcached. */
    case ContentType = 'content-type';

    /**
     * The page is compressed, has `Vary`, or depends on a cookie with one copy per value: nginx
     * would send it to all clients.
     */
    case Varies = 'varies';

    /** The page has ESI fragments, which nginx does not insert. */
    case Fragments = 'fragments';

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
}
