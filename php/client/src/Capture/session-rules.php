<?php

/**
 * The rules by which a list of statements is proven complete: what PHP's driver counts, and what a session may be.
 *
 * PHP's MySQL driver (mysqlnd) counts the commands of each connection, and those of all together. The counts are read
 * before the first statement and at the end. docs/decisions/capture.md has the reasons.
 *
 * The file returns an object of its own, without a name, as report.php does. PHP 7.4 to 8.4.
 */

return new class () {
    /** The commands that run statements, or change what they mean, in the names of mysqlnd's statistics. */
    private const COMMANDS = ['com_query', 'com_stmt_execute', 'com_field_list', 'com_change_user', 'com_init_db'];

    /**
     * The number of commands in the statistics of a connection, or of all.
     *
     * @param array<string, int|string> $statistics
     */
    public function commands(array $statistics): int
    {
        return (int) array_sum(array_intersect_key($statistics, array_flip(self::COMMANDS)));
    }

    /** The statement that returns sql_mode, character set, database, isolation level and the server's identifier. */
    public function query(string $server): string
    {
        $isMariaDb = stripos($server, 'mariadb') !== false;
        $own = $isMariaDb ? '@@tx_isolation, @@server_id' : '@@transaction_isolation, @@server_uuid';
        return "SELECT @@sql_mode, @@character_set_client, DATABASE(), $own";
    }

    /** Why the session gives statements another meaning than they have by default; empty if it does not. */
    public function flaw(string $mode, string $characters, string $isolation): string
    {
        if (preg_match('~ANSI|NO_BACKSLASH|NOT_PRECEDENCE|PAD_CHAR|DB2|MAXDB|MSSQL|ORACLE|POSTGRESQL|MYSQL~', $mode)) {
            return "the session has the sql_mode $mode";
        }
        if (strncmp($characters, 'utf8', 4) !== 0) {
            return "the session has the character set $characters, and not utf8mb4";
        }
        return $isolation === 'READ-UNCOMMITTED' ? 'the session reads rows that are not committed' : '';
    }

    /** Whether a statement may change the settings of the session. */
    public function isSetting(string $query): bool
    {
        // Blanks and comments. One that the server may execute (/*!) is not skipped, so its statement may be any.
        $skipped = '(?:\s|#[^\n]*+(?:\n|$)|--(?=\s)[^\n]*+(?:\n|$)|/\*(?!M?!)[^*]*+(?:\*(?!/)[^*]*+)*+\*/)*+';
        return preg_match("~^$skipped(?!SET\\b|USE\\b)[a-z(]~iD", $query) !== 1;
    }

    /** Whether a fatal error ended the script, which may have cut off the page. */
    public function hasFatalError(): bool
    {
        $error = error_get_last();
        $fatal = E_ERROR | E_PARSE | E_CORE_ERROR | E_COMPILE_ERROR | E_USER_ERROR | E_RECOVERABLE_ERROR;
        return $error !== null && ($error['type'] & $fatal) !== 0;
    }

    /** Runs a function whose errors the application must not see. */
    public function quietly(callable $function)
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
