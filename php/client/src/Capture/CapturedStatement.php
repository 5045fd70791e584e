<?php

/**
 * A statement of PDO that reports each execution with its values.
 *
 * PDO makes the object, which the application uses as any \PDOStatement.
 */

declare(strict_types=1);

namespace Pagewell\Capture;

/**
 * A prepared statement of a captured connection.
 *
 * @internal
 */
class CapturedStatement extends \PDOStatement
{
    /** @var array<int|string, array{mixed, int}> value and type by position or name; the value may be a reference */
    private array $bound = [];

    protected function __construct(private readonly CapturedConnection $connection, private readonly \Closure $quote)
    {
    }

    public function bindValue(string|int $param, mixed $value, int $type = \PDO::PARAM_STR): bool
    {
        $this->bound[self::key($param)] = [StatementText::bound($value, $type), $type];
        return parent::bindValue($param, $value, $type);
    }

    public function bindParam(string|int $param, mixed &$var, int $type = \PDO::PARAM_STR, int $maxLength = 0, mixed $driverOptions = null): bool
    {
        // The variable counts when the statement is executed. PDO may convert it at once.
        $isBound = parent::bindParam($param, $var, $type, $maxLength, $driverOptions);
        $this->bound[self::key($param)] = [&$var, $type];
        return $isBound;
    }

    public function execute(?array $params = null): bool
    {
        if (StatementCapture::running() === null) {
            return parent::execute($params);
        }
        if ($params !== null && $params !== []) {
            $this->bound = [];
            foreach ($params as $name => $value) {
                $this->bound[is_int($name) ? $name + 1 : self::key($name)] = [StatementText::bound($value, \PDO::PARAM_STR), \PDO::PARAM_STR];
            }
        }
        $isEmulated = (bool) $this->getAttribute(\PDO::ATTR_EMULATE_PREPARES);
        $text = StatementText::of($this->queryString, $this->bound, $isEmulated, $this->quote);
        return $this->connection->run($this->queryString, fn (): bool => parent::execute($params), $text);
    }

    private static function key(string|int $param): string|int
    {
        return is_int($param) || str_starts_with($param, ':') ? $param : ":$param";
    }
}
