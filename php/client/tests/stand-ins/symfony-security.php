<?php

/**
 * As much of Symfony's security component as the listener uses, written from its sources: Debian has
 * no package of it.
 */

declare(strict_types=1);

namespace Symfony\Component\Security\Core\Authentication\Token {
    interface TokenInterface
    {
        public function getUser();
    }
}

namespace Symfony\Component\Security\Core\Authentication\Token\Storage {
    use Symfony\Component\Security\Core\Authentication\Token\TokenInterface;

    interface TokenStorageInterface
    {
        public function getToken(): ?TokenInterface;
    }

    class TokenStorage implements TokenStorageInterface
    {
        private ?TokenInterface $token = null;

        private ?\Closure $initializer = null;

        public function getToken(): ?TokenInterface
        {
            if ($initializer = $this->initializer) {
                $this->initializer = null;
                $initializer();
            }
            return $this->token;
        }

        public function setToken(?TokenInterface $token): void
        {
            $this->initializer = null;
            $this->token = $token;
        }

        public function setInitializer(?callable $initializer): void
        {
            $this->initializer = $initializer === null ? null : $initializer(...);
        }
    }
}
