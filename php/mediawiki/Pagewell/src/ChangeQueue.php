<?php

/**
 * The changes of the running process, and how they are sent to Pagewell.
 *
 *     a write (POST, PUT …) that came through Pagewell     Cache-Group-Invalidation on the response, RFC 9875
 *     the same by `Via` alone, which can be forged         both: the response and the control interface
 *     other requests, before the header section is sent    the control interface, just before
 *     a command, a job, work after the response            the control interface, after each commit
 *     Pagewell does not answer                             a job (InvalidationJob), and a line in the log
 *
 * MediaWiki commits before it sends the response. If a transaction is open when the header section
 * is sent, the changes are sent once more after its commit. Outside of requests, deferred updates
 * commit after the change that caused them, so the names are sent once more when these have run.
 */

declare(strict_types=1);

namespace Pagewell\MediaWiki;

use MediaWiki\MediaWikiServices;
use Pagewell\MediaWiki\Core\Changes;
use Pagewell\MediaWiki\Core\Front;

/** Collects and sends changes. Other extensions may call add() and addEverything(); the rest is internal. */
final class ChangeQueue
{
    /** Maximum number of times that changes are sent again after deferred updates. */
    private const REPEATS = 3;

    private static ?Changes $waiting = null;

    /** Whether the header section was sent, or there is none. */
    private static bool $isLate = PHP_SAPI === 'cli';

    /** The beginning of the transaction whose commit is awaited; null: none is. */
    private static ?float $planned = null;

    /** Adds changes of a kind: of these ids, or (none) of any. */
    public static function add(string $kind, int|string ...$ids): void
    {
        self::$waiting ??= new Changes();
        foreach ($ids === [] ? [null] : $ids as $id) {
            self::$waiting->changed($kind, $id);
        }
        self::plan();
    }

    /** Adds a change of every page. */
    public static function addEverything(): void
    {
        self::add('site');
    }

    /** Sends the changes with the response, or before it. Called just before the header section is sent. */
    public static function atHeaders(): void
    {
        if (self::$isLate) {
            return;
        }
        self::$isLate = true;
        $changes = self::$waiting;
        if ($changes === null) {
            return;
        }
        if (!self::isCommitted()) {
            self::plan();
        } else {
            self::$waiting = null;
        }
        $lines = Front::carries() ? $changes->lines() : [];
        // Without them, the control interface has to suffice: it is called in this case.
        foreach (Front::isGivenByIt() || strlen(implode('', $lines)) <= Page::BYTES_BEHIND_SERVER ? $lines : [] as $number => $line) {
            header($line, $number === 0);
        }
        if (!Front::carries() || !Front::isGivenByIt()) {
            ControlClient::send($changes);
        }
    }

    /** Sends what waits. */
    public static function flush(): void
    {
        [$changes, self::$waiting, self::$planned] = [self::$waiting, null, null];
        $changes === null || ControlClient::send($changes);
    }

    /** Sends the changes after the commit of the transaction that makes them. */
    private static function plan(): void
    {
        if (!self::$isLate) {
            return;
        }
        $database = MediaWikiServices::getInstance()->getDBLoadBalancer()->getConnection(DB_PRIMARY);
        // After a rollback, the names wait for the next transaction.
        $begun = $database->trxLevel() > 0 ? (float) $database->trxTimestamp() : null;
        if ($begun !== null && $begun === self::$planned) {
            return;
        }
        self::$planned = $begun;
        $repeat = self::repeat(...);
        $database->onTransactionCommitOrIdle(static function () use ($repeat): void {
            $changes = self::$waiting;
            self::flush();
            $changes === null || $repeat($changes, self::REPEATS);
        }, __METHOD__);
    }

    /** Sends the changes again when the deferred updates that are waiting have run. */
    private static function repeat(Changes $changes, int $times): void
    {
        if ($times > 0 && \DeferredUpdates::pendingUpdatesCount() > 0) {
            \DeferredUpdates::addCallableUpdate(static function () use ($changes, $times): void {
                ControlClient::send($changes);
                self::repeat($changes, $times - 1);
            });
        }
    }

    private static function isCommitted(): bool
    {
        $factory = MediaWikiServices::getInstance()->getDBLoadBalancerFactory();
        return !$factory->hasPrimaryChanges();
    }
}
