<?php

/** A call of the control interface that failed: the job queue repeats it until Pagewell answers. */

declare(strict_types=1);

namespace Pagewell\MediaWiki;

use Pagewell\MediaWiki\Core\Invalidation;

/** The job `pagewellInvalidate`. */
final class InvalidationJob extends \Job implements \GenericParameterJob
{
    public function __construct(array $params)
    {
        parent::__construct('pagewellInvalidate', $params);
    }

    public function run(): bool
    {
        // A damaged job purges everything: its names are not known.
        $invalidation = Invalidation::ofJson((string) ($this->params['body'] ?? '')) ?? new Invalidation(all: true);
        $fault = Control::invalidate($invalidation);
        $fault === null || $this->setLastError($fault);
        return $fault === null;
    }
}
