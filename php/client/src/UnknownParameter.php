<?php

/**
 * A controller's #[Uses('news:{id}')] names a parameter that its route does not have, or that has
 * no id: null, an array.
 *
 * Blame: the program. The page cannot say what it is made from; name the kind as a whole instead.
 */

declare(strict_types=1);

namespace Pagewell;

/** A name could not be filled in. */
final class UnknownParameter extends \LogicException implements PagewellException
{
}
