<?php

/**
 * Compares the statements that `wordpress.php` saw with those that were sent on the connection of $wpdb.
 *
 * PHP's MySQL driver (mysqlnd) counts all commands of each connection. $wpdb counts its own statements. Both counts
 * are read before the first statement and at the end; all statements must come from $GLOBALS['wpdb'] over one
 * connection. Equal numbers prove that the list is complete: a statement that another object sent is missing in the
 * count of $wpdb, one that code sent with mysqli itself is too many in that of the connection.
 *
 * A statement that failed makes the list incomplete, unless it could only write: the page may show the failure,
 * which no row tells of. docs/decisions/capture.md has the reasons.
 *
 * MariaDB says which transaction a connection has committed last (last_gtid). It is asked after a write or COMMIT, right
 * before the next SELECT: that one replaces the numbers of rows that the own statement would change, unless it asks for
 * them. A transaction that is not named counts as somebody else's.
 */

return new class () {
    /** Statements that return no rows. */
    private const WRITES = '~^\s*(?:INSERT|REPLACE|UPDATE|DELETE|CREATE|ALTER|DROP|TRUNCATE)\b~i';
    /** Statements that ask for results of the one before. */
    private const ASKS_BEFORE = '~ROW_COUNT|\bFOUND_ROWS|WARNING|ERROR_COUNT~i';
    /** The maximum number of questions for a transaction. */
    private const QUESTIONS_MAX = 100;

    /** The object of `session-rules.php`, from the file that loads this one. */
    public object $rules;
    /** The $wpdb and the connection of the first statement. */
    private ?object $wpdb = null;
    private ?mysqli $connection = null;
    /** The commands of the connection and the statements of $wpdb before the first statement; those that were seen. */
    private int $commands = 0;
    private int $queries = 0;
    private int $seen = 0;
    /** The identifier of the database server, once it was asked for. */
    private string $server = '';
    /** The last transaction of the connection that is known, and whether there may be another. */
    private string $transaction = '';
    private bool $hasWritten = false;
    private int $questions = 0;

    /** Counts a statement that is about to be sent. Returns why the list is incomplete; empty if it is not. */
    public function add(): string
    {
        $this->seen++;
        return $this->wpdb === null ? $this->begin() : $this->lastStatement();
    }

    /**
     * The transaction that the connection has committed since the last call; empty if there is none, or if it is not
     * known. $query is the statement that is about to be sent.
     */
    public function committed(string $query): string
    {
        $isSelect = preg_match('~^\s*SELECT\b~i', $query) === 1 && preg_match(self::ASKS_BEFORE, $query) !== 1;
        if (!$isSelect || !$this->hasWritten || $this->questions >= self::QUESTIONS_MAX) {
            $this->hasWritten = $this->hasWritten || preg_match(self::WRITES, $query) === 1
                || preg_match('~^\s*COMMIT\b~i', $query) === 1;
            return '';
        }
        $this->hasWritten = false;
        [$before, $this->transaction] = [$this->transaction, $this->lastTransaction()];
        return $this->transaction === $before ? '' : $this->transaction;
    }

    private function lastTransaction(): string
    {
        $row = $this->rules->quietly(function () {
            if (stripos((string) $this->connection->get_server_info(), 'mariadb') === false) {
                $this->questions = self::QUESTIONS_MAX;
                return null;
            }
            $this->questions++;
            $this->commands++;
            $result = $this->connection->query('SELECT @@last_gtid');
            return is_object($result) ? $result->fetch_row() : null;
        });
        return is_array($row) ? (string) $row[0] : '';
    }

    /** The identifier of the database server: server_id of MariaDB, server_uuid of MySQL. Empty without a statement. */
    public function server(): string
    {
        return $this->server;
    }

    /** Compares the numbers at the end. Returns why the list is incomplete; empty if it is complete. */
    public function finish(): string
    {
        if ($this->wpdb === null) {
            return '';
        }
        $reason = $this->lastStatement();
        if ($reason !== '') {
            return $reason;
        }
        if ($this->connectionOf($this->wpdb) !== $this->connection) {
            return '$wpdb has opened another connection';
        }
        if ($this->wpdb->num_queries - $this->queries !== $this->seen) {
            return 'a statement of another object than $wpdb, or one that it did not send';
        }
        $unseen = $this->commands() - $this->commands - $this->seen;
        if ($unseen > 0) {
            return "$unseen statements did not pass through \$wpdb->query()";
        }
        if ($unseen < 0) {
            return 'PHP does not count the statements of the connection (mysqlnd.collect_statistics)';
        }
        return $this->session();
    }

    private function begin(): string
    {
        $wpdb = $GLOBALS['wpdb'] ?? null;
        $connection = $this->connectionOf($wpdb);
        if (!$connection instanceof mysqli) {
            return '$wpdb has no connection of mysqli';
        }
        [$this->wpdb, $this->connection] = [$wpdb, $connection];
        [$this->queries, $this->commands] = [(int) $wpdb->num_queries, $this->commands()];
        return '';
    }

    /** Whether the statement before was executed. */
    private function lastStatement(): string
    {
        if ($this->wpdb !== ($GLOBALS['wpdb'] ?? null)) {
            return 'a statement of another object than $wpdb';
        }
        $error = (string) $this->wpdb->last_error;
        if ($error !== '' && preg_match(self::WRITES, (string) $this->wpdb->last_query) !== 1) {
            return 'a statement of $wpdb failed: ' . substr($error, 0, 200);
        }
        return '';
    }

    /** Whether the session gives the statements another meaning than they have by default. */
    private function session(): string
    {
        $row = $this->rules->quietly(function () {
            $result = $this->connection->query($this->rules->query((string) $this->connection->get_server_info()));
            return is_object($result) ? $result->fetch_row() : null;
        });
        if (!is_array($row) || count($row) !== 5) {
            return 'the connection does not say its sql_mode and character set';
        }
        [$mode, $characters, $database, $isolation, $this->server] = array_map('strval', $row);
        if (defined('DB_NAME') && strcasecmp($database, (string) DB_NAME) !== 0) {
            return "the session uses the database $database instead of DB_NAME";
        }
        return $this->rules->flaw($mode, $characters, $isolation);
    }

    private function connectionOf(?object $wpdb)
    {
        return $this->rules->quietly(static function () use ($wpdb) {
            return $wpdb === null ? null : $wpdb->dbh;
        });
    }

    /** How many commands with statements the connection has sent; 0 if PHP does not count them. */
    private function commands(): int
    {
        $counts = $this->rules->quietly(function () {
            return $this->connection->get_connection_stats();
        });
        return $this->rules->commands($counts ?: []);
    }
};
