<?php

/**
 * The comments of readers on the news.
 *
 * A comment is shown on the page of its article and in the list of letters, so a write says
 * both: `changed('comments', 17, news: 4)`. Lists of news show no comments and stay.
 */

declare(strict_types=1);

namespace News\Libraries;

use function Pagewell\changed;

/** The table `comments`. */
final class Comments
{
    public function __construct(private readonly Database $database)
    {
    }

    /**
     * @return list<array<string, mixed>> those on one article, oldest first, at most 500
     */
    public function on(int $news): array
    {
        return $this->database->rows('SELECT id, author, body, written FROM comments WHERE news_id = ? ORDER BY id LIMIT 500', [$news]);
    }

    /**
     * @return list<array<string, mixed>> the latest on published articles, with id and title
     */
    public function latest(int $count): array
    {
        return $this->database->rows(
            'SELECT c.id, c.author, c.body, c.written, n.id AS news_id, n.title FROM comments c'
            . ' JOIN news n ON n.id = c.news_id WHERE n.published IS NOT NULL ORDER BY c.written DESC, c.id DESC LIMIT ?',
            [$count],
        );
    }

    /**
     * Adds a comment.
     *
     * @return int its id
     */
    public function add(int $news, string $author, string $body): int
    {
        $this->database->write('INSERT INTO comments (news_id, author, body, written) VALUES (?, ?, ?, UTC_TIMESTAMP())', [$news, $author, $body]);
        $id = $this->database->lastId();
        changed('comments', $id, news: $news);
        return $id;
    }

    /**
     * Removes a comment.
     *
     * @return int|null the id of the article it stood under; null when there was no such comment
     */
    public function remove(int $id): ?int
    {
        $news = $this->database->row('SELECT news_id FROM comments WHERE id = ?', [$id])['news_id'] ?? null;
        if ($news === null) {
            return null;
        }
        $this->database->write('DELETE FROM comments WHERE id = ?', [$id]);
        changed('comments', $id, news: (int) $news);
        return (int) $news;
    }
}
