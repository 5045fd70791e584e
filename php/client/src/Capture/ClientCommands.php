<?php

/**
 * The number of commands that this process has sent to databases of MariaDB and MySQL, over all connections.
 *
 * PHP's driver counts them (mysqlnd.collect_statistics), for PDO and mysqli together. So a statement that bypasses
 * the library is noticed. The extension mysqli is needed to read the number.
 */

declare(strict_types=1);

namespace Pagewell\Capture;

/** @internal */
final class ClientCommands
{
    /**
     * The number so far; null if PHP does not count.
     *
     * @param object $rules of session-rules.php
     */
    public static function count(object $rules): ?int
    {
        if (!function_exists('mysqli_get_client_stats') || !filter_var(ini_get('mysqlnd.collect_statistics'), FILTER_VALIDATE_BOOL)) {
            return null;
        }
        return $rules->commands(mysqli_get_client_stats());
    }
}
