<?php

/**
 * Articles: reading, searching, writing.
 *
 * Every write declares its changes here and nowhere else, so that no controller can forget it. A
 * write that readers cannot see (to a draft that stays one) changes nothing.
 */

declare(strict_types=1);

namespace News\Libraries;

use function Pagewell\changed;

/** The table `news`. */
final class News
{
    public const TOPICS = ['Harbour', 'Council', 'Schools', 'Sport', 'Culture', 'Weather', 'Trade', 'Countryside'];

    private const LISTED = 'SELECT id, topic, title, summary, author, published FROM news WHERE published IS NOT NULL';

    private const NEWEST_FIRST = ' ORDER BY published DESC, id DESC';

    public function __construct(private readonly Database $database)
    {
    }

    /**
     * @return list<array<string, mixed>> published articles, newest first
     */
    public function latest(int $count, int $skip = 0): array
    {
        return $this->database->rows(self::LISTED . self::NEWEST_FIRST . ' LIMIT ? OFFSET ?', [$count, $skip]);
    }

    /** How many are published. */
    public function count(): int
    {
        return (int) ($this->database->row('SELECT COUNT(*) AS n FROM news WHERE published IS NOT NULL')['n'] ?? 0);
    }

    /**
     * @return array<string, mixed>|null the article of this id, if it is published
     */
    public function published(int $id): ?array
    {
        return $this->database->row('SELECT * FROM news WHERE id = ? AND published IS NOT NULL', [$id]);
    }

    /**
     * @return list<array<string, mixed>> published articles with this word in them, newest first
     */
    public function search(string $word, int $count): array
    {
        $like = '%' . addcslashes($word, '%_\\') . '%';
        $where = ' AND (title LIKE ? OR summary LIKE ? OR body LIKE ?)';
        return $this->database->rows(self::LISTED . $where . self::NEWEST_FIRST . ' LIMIT ?', [$like, $like, $like, $count]);
    }

    /**
     * @return list<array<string, mixed>> published articles picked by chance
     */
    public function anyThree(): array
    {
        return $this->database->rows(self::LISTED . ' ORDER BY RAND() LIMIT 3');
    }

    /**
     * @return list<array<string, mixed>> for the office: drafts first, then newest first
     */
    public function all(int $count, int $skip = 0): array
    {
        $order = ' ORDER BY published IS NOT NULL, published DESC, id DESC LIMIT ? OFFSET ?';
        return $this->database->rows('SELECT id, topic, title, published FROM news' . $order, [$count, $skip]);
    }

    /**
     * @return array<string, mixed>|null for the office: the article of this id, a draft too
     */
    public function find(int $id): ?array
    {
        return $this->database->row('SELECT * FROM news WHERE id = ?', [$id]);
    }

    /**
     * Adds an article.
     *
     * @param array{topic: string, title: string, summary: string, body: string, author: string} $news
     *
     * @return int its id
     */
    public function add(array $news, bool $publish): int
    {
        $this->database->write(
            'INSERT INTO news (topic, title, summary, body, author, published) VALUES (?, ?, ?, ?, ?, IF(?, UTC_TIMESTAMP(), NULL))',
            [...self::columns($news), (int) $publish],
        );
        $id = $this->database->lastId();
        if ($publish) {
            changed('news', $id);
        }
        return $id;
    }

    /**
     * Updates an article; the change is declared after the commit. The time of the first
     * publication is preserved.
     *
     * @param array{topic: string, title: string, summary: string, body: string, author: string} $news
     */
    public function update(int $id, array $news, bool $publish): void
    {
        $wasPublished = $this->database->transaction(function () use ($id, $news, $publish): bool {
            // Locked, so that nobody publishes it between the look and the write.
            $before = $this->database->row('SELECT published FROM news WHERE id = ? FOR UPDATE', [$id]);
            $this->database->write(
                'UPDATE news SET topic = ?, title = ?, summary = ?, body = ?, author = ?,'
                . ' published = IF(?, COALESCE(published, UTC_TIMESTAMP()), NULL) WHERE id = ?',
                [...self::columns($news), (int) $publish, $id],
            );
            return ($before['published'] ?? null) !== null;
        });
        if ($wasPublished || $publish) {
            changed('news', $id);
        }
    }

    /**
     * @param array<string, string> $news
     *
     * @return list<string> in the order of the statements above
     */
    private static function columns(array $news): array
    {
        return [$news['topic'], $news['title'], $news['summary'], $news['body'], $news['author']];
    }
}
