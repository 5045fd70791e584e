<?php

/** An entity, on PDO instead of Doctrine. */

declare(strict_types=1);

namespace App;

final class News
{
    private readonly \PDO $pdo;

    public function __construct(private readonly int $id)
    {
        $this->pdo = new \PDO('sqlite:' . dirname(__DIR__) . '/data/db.sqlite');
    }

    public function getId(): int
    {
        return $this->id;
    }

    public function title(): string
    {
        return $this->pdo->query("SELECT title FROM news WHERE id = $this->id")->fetchColumn();
    }

    public function setTitle(string $title): void
    {
        $this->pdo->prepare('UPDATE news SET title = ? WHERE id = ?')->execute([$title, $this->id]);
    }
}
