<?php

/**
 * As much of Drupal's module Purge as the purger uses, written from its documentation: Debian has no Drupal.
 */

declare(strict_types=1);

namespace Drupal\purge\Plugin\Purge\Invalidation {
    interface InvStatesInterface
    {
        public const FRESH = 0;
        public const SUCCEEDED = 2;
        public const FAILED = 3;
    }

    interface InvalidationInterface extends InvStatesInterface
    {
        public function getExpression();

        public function getType();

        public function setState($state);
    }

    final class Invalidation implements InvalidationInterface
    {
        public int $state = self::FRESH;

        public function __construct(private readonly string $type, private readonly string|object|null $expression = null)
        {
        }

        public function getExpression()
        {
            return $this->expression;
        }

        public function getType()
        {
            return $this->type;
        }

        public function setState($state): void
        {
            $this->state = $state;
        }
    }
}

namespace Drupal\purge\Plugin\Purge\Purger {
    abstract class PurgerBase
    {
        public object $log;

        /** @param list<\Drupal\purge\Plugin\Purge\Invalidation\InvalidationInterface> $invalidations */
        abstract public function invalidate(array $invalidations);

        abstract public function hasRuntimeMeasurement();

        public function logger()
        {
            return $this->log;
        }
    }
}

namespace {
    /** The directory of Drupal below the host. */
    function base_path(): string
    {
        return $GLOBALS['base_path'] ?? '/';
    }
}
