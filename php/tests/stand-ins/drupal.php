<?php

/**
 * As much of Drupal as the module uses, written from its documentation: Debian has no Drupal.
 */

declare(strict_types=1);

namespace Drupal\Core\Cache {
    interface CacheableResponseInterface
    {
        public function getCacheableMetadata();
    }

    interface CacheTagsInvalidatorInterface
    {
        public function invalidateTags(array $tags);
    }
}

namespace Drupal\Core\Session {
    interface AccountInterface
    {
        public function isAuthenticated();
    }

    class Account implements AccountInterface
    {
        public bool $isAuthenticated = false;

        public function isAuthenticated(): bool
        {
            return $this->isAuthenticated;
        }
    }
}

namespace Drupal\Core\Database {
    class Connection
    {
        public bool $open = false;

        /** @var list<callable> */
        public array $callbacks = [];

        public function inTransaction(): bool
        {
            return $this->open;
        }

        public bool $takesCallbacks = true;

        public function addRootTransactionEndCallback(callable $callback): void
        {
            if (!$this->takesCallbacks) {
                throw new \LogicException('no callbacks');
            }
            $this->callbacks[] = $callback;
        }

        public function end(bool $success): void
        {
            $this->open = false;
            [$callbacks, $this->callbacks] = [$this->callbacks, []];
            foreach ($callbacks as $callback) {
                $callback($success);
            }
        }
    }
}
