<?php

/**
 * The books of one connection of PDO in a captured request.
 *
 * The session is asked for its settings at the end, and before each SET and USE that follows other statements. So
 * each statement was sent under settings that are known. The books hold no reference to the connection, which ends
 * when the application wants.
 */

declare(strict_types=1);

namespace Pagewell\Capture;

/**
 * A connection whose statements are captured.
 *
 * @internal
 */
final class CapturedConnection
{
    /** @var \WeakReference<\PDO> */
    private readonly \WeakReference $pdo;

    /** Whether a statement was sent under settings that were not asked for since. */
    private bool $isUnchecked = false;

    private bool $isProven = false;

    /** Whether the books themselves ask the database. */
    private bool $isAsking = false;

    public function __construct(private readonly StatementCapture $capture, \PDO $pdo)
    {
        $this->pdo = \WeakReference::create($pdo);
    }

    public function isOf(\PDO $pdo): bool
    {
        return $this->pdo->get() === $pdo;
    }

    /**
     * Sends a statement, and records it.
     *
     * @template T
     * @param string             $query the statement, perhaps with placeholders
     * @param callable(): T      $send  sends it; false or an exception: it failed
     * @param string|null|false  $text  the statement with its values; null: not known; false: $query is it
     * @return T
     */
    public function run(string $query, callable $send, string|null|false $text = false): mixed
    {
        if ($this->isAsking || StatementCapture::running() !== $this->capture) {
            return $send();
        }
        $this->prepare($query);
        $isSent = false;
        try {
            $result = $send();
            $isSent = $result !== false;
            return $result;
        } finally {
            match (true) {
                !$isSent => $this->capture->giveUp('a statement failed: ' . self::shortened($query)),
                $text === null => $this->capture->giveUp('a statement whose values are not certain: ' . self::shortened($query)),
                default => $this->capture->add($text === false ? $query : $text),
            };
        }
    }

    /** Asks for the settings of the session, before the connection ends or the report is sent. */
    public function finish(): void
    {
        if ($this->isProven || StatementCapture::running() !== $this->capture) {
            return;
        }
        $this->isProven = true;
        $flaw = match (true) {
            !$this->isUnchecked => '',
            $this->pdo->get() === null => 'a connection ended before its session was asked for its settings',
            default => $this->sessionFlaw(),
        };
        $flaw === '' || $this->capture->giveUp($flaw);
    }

    /** Looks at a statement that is about to be sent. */
    private function prepare(string $query): void
    {
        $isSetting = $this->capture->rules->isSetting($query);
        $flaw = match (true) {
            $this->isProven => 'a statement of a connection that was closed',
            // For the next transaction alone, which the session does not show.
            $isSetting && stripos($query, 'uncommitted') !== false => 'the session reads rows that are not committed',
            $isSetting && $this->isUnchecked => $this->sessionFlaw(),
            default => '',
        };
        $flaw === '' || $this->capture->giveUp($flaw);
        $this->isUnchecked = !$isSetting;
    }

    /** Why statements of this session cannot be taken for what they seem to be; empty if they can. */
    private function sessionFlaw(): string
    {
        $row = $this->capture->own(fn (): ?array => $this->ask());
        if ($row === null || count($row) !== 8) {
            return 'a connection does not say its sql_mode and character set';
        }
        [$mode, $characters, $database, $isolation] = $row;
        if ($database !== $this->capture->database) {
            return "a session uses the database $database, and not {$this->capture->database}";
        }
        if (!$this->capture->isServer(array_slice($row, 4))) {
            return 'the connections lead to two servers';
        }
        return $this->capture->rules->flaw($mode, $characters, $isolation);
    }

    /** @return list<string>|null the settings, and the names that the server gives itself */
    private function ask(): ?array
    {
        $pdo = $this->pdo->get();
        if ($pdo === null) {
            return null;
        }
        $this->isAsking = true;
        try {
            return $this->capture->rules->quietly(function () use ($pdo): ?array {
                $query = $this->capture->rules->query((string) $pdo->getAttribute(\PDO::ATTR_SERVER_VERSION));
                $statement = $pdo->query("$query, @@hostname, @@port, @@datadir");
                $row = $statement === false ? false : $statement->fetch(\PDO::FETCH_NUM);
                $statement === false || $statement->closeCursor();
                return is_array($row) ? array_map(strval(...), $row) : null;
            });
        } finally {
            $this->isAsking = false;
        }
    }

    private static function shortened(string $query): string
    {
        return substr($query, 0, 80);
    }
}
