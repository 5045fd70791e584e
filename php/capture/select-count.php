<?php

/**
 * Compares the SELECTs that `wordpress.php` saw with those that the database executed on the connection of $wpdb.
 *
 * The status variable Com_select says how many. It is read before the first statement and at the end, directly
 * over mysqli. All statements must come from $GLOBALS['wpdb'] over one connection. Equal numbers prove nothing if a
 * statement's increment is not known: a SELECT that failed, and was not counted, could hide one that was not seen.
 * Such a list is incomplete, too.
 *
 * As measured with MariaDB 10.11, a SELECT counts once: in brackets, as WITH or VALUES, after comments, answered by
 * the query cache, with an unknown table or column. It does not count with an error of syntax, or within another
 * statement. A SELECT INTO of a trigger or function counts, so that the list is incomplete with one.
 * docs/decisions/0086-capture.md has the reasons.
 */

return new class {
    /** The first words of statements that increment Com_select, and of those that do not. */
    private const WITH_SELECT = ' SELECT VALUES TABLE WITH ';
    private const WITHOUT_SELECT = ' INSERT REPLACE UPDATE DELETE SHOW CREATE ALTER DROP TRUNCATE RENAME START BEGIN COMMIT'
        . ' ROLLBACK SAVEPOINT RELEASE LOCK UNLOCK USE OPTIMIZE REPAIR CHECK ANALYZE FLUSH LOAD KILL SET DESC DESCRIBE ';
    /** With one of these words anywhere, the increment is not known. */
    private const DOUBTS = [
        'WITH' => 'update|delete',
        'SET' => 'statement',
        'BEGIN' => 'not',
        'ANALYZE' => 'select|values|with|format',
        'DESC' => 'select|values|with|for',
        'DESCRIBE' => 'select|values|with|for',
    ];

    /** The $wpdb and the connection of the first statement. */
    private ?object $wpdb = null;
    private ?mysqli $connection = null;
    /** Com_select before the first statement, and the SELECTs that were seen since. */
    private int $before = 0;
    private int $seen = 0;

    /** Counts a statement that $sender is about to send. Returns why the list is incomplete; empty if it is not. */
    public function add(string $query, ?object $sender): string
    {
        $reason = $this->wpdb === null ? $this->begin($sender) : $this->lastStatement($sender);
        if ($reason !== '') {
            return $reason;
        }
        $count = self::selectsIn($query);
        if ($count === null) {
            return 'a statement whose SELECTs cannot be counted: ' . substr($query, 0, 80);
        }
        $this->seen += $count;
        return '';
    }

    /** Compares the numbers at the end. Returns why the list is incomplete; empty if it is complete. */
    public function finish(): string
    {
        if ($this->wpdb === null) {
            return '';
        }
        $reason = $this->lastStatement($this->wpdb);
        $after = $reason === '' ? $this->executed() : null;
        if ($after === null) {
            return $reason !== '' ? $reason : 'the connection no longer says how many SELECTs it has executed (Com_select)';
        }
        $unseen = $after - $this->before - $this->seen;
        if ($unseen > 0) {
            return "$unseen SELECTs did not pass through \$wpdb->query() (Com_select)";
        }
        if ($unseen < 0) {
            return -$unseen . ' SELECTs of $wpdb did not reach its connection (Com_select)';
        }
        return $this->session();
    }

    /** Whether the session gives the statements another meaning than they have by default. */
    private function session(): string
    {
        $isMariaDb = stripos((string) $this->connection->get_server_info(), 'mariadb') !== false;
        $isolation = $isMariaDb ? '@@tx_isolation' : '@@transaction_isolation';
        $row = self::quietly(function () use ($isolation) {
            $result = $this->connection->query("SELECT @@sql_mode, @@character_set_client, DATABASE(), $isolation");
            return is_object($result) ? $result->fetch_row() : null;
        });
        if (!is_array($row) || count($row) !== 4) {
            return 'the connection does not say its sql_mode and character set';
        }
        [$mode, $characters, $database, $isolation] = array_map('strval', $row);
        if (preg_match('~ANSI|NO_BACKSLASH|NOT_PRECEDENCE|PAD_CHAR|DB2|MAXDB|MSSQL|ORACLE|POSTGRESQL|MYSQL~', $mode)) {
            return "the session has the sql_mode $mode";
        }
        if (strncmp($characters, 'utf8', 4) !== 0) {
            return "the session has the character set $characters, and not utf8mb4";
        }
        if (defined('DB_NAME') && strcasecmp($database, (string) DB_NAME) !== 0) {
            return "the session uses the database $database instead of DB_NAME";
        }
        return $isolation === 'READ-UNCOMMITTED' ? 'the session reads rows that are not committed' : '';
    }

    private function begin(?object $sender): string
    {
        $connection = self::connection($sender);
        if ($sender === null || $sender !== ($GLOBALS['wpdb'] ?? null)) {
            return 'a statement of another object than $wpdb';
        }
        if (!$connection instanceof mysqli) {
            return '$wpdb has no connection of mysqli';
        }
        [$this->wpdb, $this->connection] = [$sender, $connection];
        $before = $this->executed();
        if ($before === null) {
            return 'the connection does not say how many SELECTs it has executed (Com_select)';
        }
        $this->before = $before;
        return '';
    }

    /** Whether the statement before is known to have been executed, or to have failed without effect. */
    private function lastStatement(?object $sender): string
    {
        if ($sender !== $this->wpdb || $this->wpdb !== ($GLOBALS['wpdb'] ?? null)) {
            return 'a statement of another object than $wpdb';
        }
        if (self::connection($this->wpdb) !== $this->connection) {
            return '$wpdb has opened another connection';
        }
        $error = (string) ($this->wpdb->last_error ?? '');
        if ($error !== '' && self::selectsIn((string) ($this->wpdb->last_query ?? '')) !== 0) {
            return 'a SELECT of $wpdb failed: ' . substr($error, 0, 200);
        }
        return '';
    }

    private static function connection(?object $wpdb)
    {
        return self::quietly(static function () use ($wpdb) {
            return $wpdb === null ? null : $wpdb->dbh;
        });
    }

    /** Com_select of the connection; null if the server does not say it. */
    private function executed(): ?int
    {
        $row = self::quietly(function () {
            $server = (string) $this->connection->get_server_info();
            // The query cache of MySQL 5 hides SELECTs from Com_select; that of MariaDB does not.
            if ((int) $server < 8 && stripos($server, 'mariadb') === false) {
                return null;
            }
            $result = $this->connection->query("SHOW SESSION STATUS LIKE 'Com_select'");
            return is_object($result) ? $result->fetch_row() : null;
        });
        return is_numeric($row[1] ?? null) ? (int) $row[1] : null;
    }

    /** By how much a statement increments Com_select if it succeeds; null if that is not known. */
    private static function selectsIn(string $query): ?int
    {
        // Blanks, brackets and comments. A comment that the server may execute (/*!) is not skipped.
        $skipped = '(?:[\s(]|#[^\n]*+(?:\n|$)|--(?=\s)[^\n]*+(?:\n|$)|/\*(?!M?!)[^*]*+(?:\*(?!/)[^*]*+)*+\*/)*+';
        $word = preg_match("~^$skipped([a-z]+)~iD", $query, $found) ? strtoupper($found[1]) : '';
        $doubt = self::DOUBTS[$word] ?? null;
        if ($doubt !== null && preg_match("~\\b(?:$doubt)\\b~i", $query) !== 0) {
            return null;
        }
        if (strpos(self::WITH_SELECT, " $word ") !== false) {
            return 1;
        }
        return strpos(self::WITHOUT_SELECT, " $word ") === false ? null : 0;
    }

    /** Runs a function whose errors the application must not see. */
    private static function quietly(callable $function)
    {
        set_error_handler(static function (): bool {
            return true;
        });
        try {
            return $function();
        } catch (Throwable $error) {
            return null;
        } finally {
            restore_error_handler();
        }
    }
};
