<?php

/**
 * The permission to write: a session that knows the office's password.
 *
 * The cookie is sent to /office/ only, so that readers, editors among them, ask for the
 * public pages without one and share them. Every form of the office carries a token of
 * the session. The password is NEWS_OFFICE_PASSWORD; where none is set it is `demo`, and
 * the page to sign in says so.
 */

declare(strict_types=1);

namespace News\Libraries;

use News\Request;

/** The session of an editor. */
final class Office
{
    private const DEMO_PASSWORD = 'demo';

    /** Whether somebody has signed in. */
    public function isOpen(): bool
    {
        $this->start();
        return ($_SESSION['editor'] ?? false) === true;
    }

    /** Signs in; the session gets a new id (against a fixed one), and the token is renewed. */
    public function signIn(string $password): bool
    {
        $this->start();
        if (!hash_equals(self::password(), $password)) {
            return false;
        }
        session_regenerate_id(true);
        $_SESSION = ['editor' => true, 'token' => bin2hex(random_bytes(16))];
        return true;
    }

    /** Signs out. */
    public function signOut(): void
    {
        $this->start();
        $_SESSION = [];
        session_regenerate_id(true);
    }

    /** The token that each form carries. */
    public function token(): string
    {
        $this->start();
        return $_SESSION['token'] ??= bin2hex(random_bytes(16));
    }

    /** Whether this request comes from a form of this session. */
    public function sent(Request $request): bool
    {
        return hash_equals($this->token(), $request->form('token'));
    }

    /** Keeps a sentence for the next page. */
    public function say(string $notice): void
    {
        $this->start();
        $_SESSION['notice'] = $notice;
    }

    /** The sentence kept by the page before; once. */
    public function notice(): string
    {
        $this->start();
        $notice = $_SESSION['notice'] ?? '';
        unset($_SESSION['notice']);
        return $notice;
    }

    /** The password to show on the page to sign in: only where nobody has set one. */
    public function shownPassword(): ?string
    {
        return self::password() === self::DEMO_PASSWORD ? self::DEMO_PASSWORD : null;
    }

    private static function password(): string
    {
        $password = Environment::value('NEWS_OFFICE_PASSWORD', '');
        return $password === '' ? self::DEMO_PASSWORD : $password;
    }

    private function start(): void
    {
        if (session_status() === PHP_SESSION_ACTIVE) {
            return;
        }
        session_name('newsroom');
        session_start([
            'cookie_path' => '/office/',
            'cookie_httponly' => true,
            'cookie_samesite' => 'Strict',
            'cookie_secure' => !in_array($_SERVER['HTTPS'] ?? '', ['', 'off'], true),
            'use_strict_mode' => true,
        ]);
    }
}
