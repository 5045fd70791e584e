<?php

/**
 * Laravel's connections to MariaDB and MySQL in a captured request: their statements are reported, for automatic
 * dependencies.
 *
 * Only the class of PDO differs. Laravel takes the connector from the container (`db.connector.mysql`).
 */

declare(strict_types=1);

namespace Pagewell\Laravel;

use Illuminate\Database\Connectors\MySqlConnector;
use Pagewell\Capture\CapturingPdo;

/** @internal */
final class CapturingConnector extends MySqlConnector
{
    protected function createPdoConnection($dsn, $username, #[\SensitiveParameter] $password, $options)
    {
        return new CapturingPdo($dsn, $username, $password, $options);
    }
}
