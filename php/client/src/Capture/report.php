<?php

/**
 * The report of a request's SQL statements, which is sent to a Unix socket of Pagewell.
 *
 * `php/capture/wordpress.php` and StatementCapture of the library collect statements; this file says how they are
 * reported. It returns an object of its own, without a name, because a process may have it from both.
 *
 * Format: the line "pagewell-capture 1", then records. A record is one letter, the length of its content as
 * four bytes (big-endian), and the content.
 *
 *     T  the token; the first record
 *     V  the version of WordPress, empty for other applications; from 6.1 on, the option names are complete
 *     D  the identifier of the database server; empty or left out without a statement
 *     O  the name of an option that get_option() was called with
 *     S  a statement, in the order in which it was sent
 *     P  a statement that was sent after the output of the page
 *     G  a transaction that the connection has committed before the statements that follow (GTID)
 *     I  the reason why the list is incomplete; then there are no D, O, S, P and G
 *     H  the name of a cache whose values no statement shows, such as `object-cache.php`; then there is no I either
 *     E  the end; without it the list is incomplete
 *
 * PHP 7.4 to 8.4.
 */

return new class () {
    private const STATEMENTS_MAX = 10000;
    private const OPTIONS_MAX = 10000;
    private const BYTES_MAX = 4 << 20;

    private string $records = '';
    private int $statements = 0;
    /** Why the list is incomplete; empty as long as it is not. */
    public string $reason = '';
    /** The cache that hides reads; empty as long as none is known. */
    private string $hidden = '';

    /** The list is incomplete. The first reason is reported, and nothing is collected any more. */
    public function giveUp(string $reason): void
    {
        if ($this->reason === '') {
            [$this->reason, $this->records] = [$reason, ''];
        }
    }

    /** The page may show values of a cache that no statement shows. The first name is reported, and precedes any reason. */
    public function hide(string $name): void
    {
        $this->giveUp('a cache hides reads: ' . $name);
        if ($this->hidden === '') {
            $this->hidden = substr((string) preg_replace('~[^\x21-\x7e]~', '?', $name), 0, 64);
        }
    }

    /** Adds a statement. $isLate: it was sent after the output of the page. */
    public function addStatement(string $statement, bool $isLate = false): void
    {
        if (++$this->statements > self::STATEMENTS_MAX) {
            $this->giveUp('more than 10,000 statements');
        }
        $this->add($isLate ? 'P' : 'S', $statement);
    }

    /**
     * Adds the names of options; no name is there twice.
     *
     * @param string[] $names
     */
    public function addOptions(array $names): void
    {
        if (count($names) > self::OPTIONS_MAX) {
            $this->giveUp('more than 10,000 options');
        }
        foreach ($names as $name) {
            $this->add('O', $name);
        }
    }

    /** Adds a transaction that the request has committed; nothing if the identifier is empty. */
    public function addTransaction(string $identifier): void
    {
        if ($identifier !== '') {
            $this->add('G', $identifier);
        }
    }

    /** Adds the identifier of the database server. */
    public function addServer(string $identifier): void
    {
        $this->add('D', $identifier);
    }

    /** Sends the report. Failures are not reported: without a report the page is not stored. */
    public function send(string $socket, string $token, string $version): void
    {
        // An error handler of the application must not see a failed connection.
        set_error_handler(static function (): bool {
            return true;
        });
        $stream = stream_socket_client('unix://' . $socket, $code, $message, 1.0);
        if (is_resource($stream)) {
            stream_set_timeout($stream, 1);
            $head = "pagewell-capture 1\n" . self::record('T', $token) . self::record('V', $version);
            $rest = $this->reason === '' ? $this->records : self::record('I', $this->reason);
            $rest = $this->hidden === '' ? $rest : self::record('H', $this->hidden);
            foreach ([$head, $rest, self::record('E', '')] as $part) {
                $sent = 0;
                while ($sent < strlen($part)) {
                    $bytes = fwrite($stream, substr($part, $sent, 65536));
                    if ($bytes === false || $bytes === 0) {
                        break 2;
                    }
                    $sent += $bytes;
                }
            }
            fclose($stream);
        }
        restore_error_handler();
    }

    private function add(string $kind, string $content): void
    {
        if ($this->reason !== '') {
            return;
        }
        if (strlen($this->records) + strlen($content) + 5 > self::BYTES_MAX) {
            $this->giveUp('more than 4 MB of statements and option names');
            return;
        }
        $this->records .= self::record($kind, $content);
    }

    private static function record(string $kind, string $content): string
    {
        return $kind . pack('N', strlen($content)) . $content;
    }
};
