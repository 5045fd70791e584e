<?php

/**
 * Why a page that is declared was not stored over the memcached port.
 *
 * One case each, in the order in which they are looked for; what NotDeclared refuses comes third.
 */

declare(strict_types=1);

namespace Pagewell;

/** A reason, with the name under which it is shown. */
enum NotStored: string
{
    /** The header section has gone out, and with it what the page said of itself. */
    case Sent = 'sent';

    /** Changes travel on answers, which do not pass through Pagewell here: PAGEWELL_CHANGES is not `control`. */
    case ChangesNotReceived = 'changes-not-received';

    /** Another status than 200: nginx would answer 200 with it. */
    case Status = 'status';

    /** Another type than text/html, which nginx gives to all pages from there. */
    case ContentType = 'content-type';

    /** It is compressed already, says `Vary`, or was made with a cookie of which there is a copy for each value: nginx gives it to everybody as it is. */
    case Varies = 'varies';

    /** It has fragments in it, which nginx does not put in. */
    case Fragments = 'fragments';

    /** The address is longer than 250 bytes as a key, or has a blank in it. */
    case Key = 'key';

    /** The line of them is over 64 KB. */
    case Tags = 'tags';

    /** No lease: Pagewell is away, or a real memcached answers there; a key prefix or the binary protocol is set. */
    case NoLease = 'no-lease';

    /** Pagewell did not take it: something it was made from has changed meanwhile. Or it is away. */
    case Refused = 'refused';
}
