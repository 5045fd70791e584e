<?php

/**
 * Fills the database with articles and comments: `php fill.php [--news=3000] [--anew]`.
 *
 * Creates missing tables. A database with articles in it is left unchanged, unless the option
 * --anew empties it first. The text is the same each time. The newest article is of 20 November
 * 2026, or of now with --until=now, or of any other --until=TIME. News 1 is short and has no
 * comments: benchmarks request its page, about 2 KB. Configured by the environment, like the site
 * (NEWS_DB_DSN …).
 */

declare(strict_types=1);

namespace News\Fill;

use News\Libraries\Database;
use News\Libraries\DatabaseAway;

require __DIR__ . '/src/autoload.php';
require __DIR__ . '/fill/Writer.php';

date_default_timezone_set('UTC');
exit(main(getopt('', ['news:', 'until:', 'anew', 'help']) ?: []));

/**
 * @param array<string, mixed> $options
 *
 * @return int the exit status: 0 done or nothing to do, 1 no database, 2 wrong options
 */
function main(array $options): int
{
    if (isset($options['help'])) {
        echo "php fill.php [--news=3000] [--until=now] [--anew]\n";
        return 0;
    }
    $count = filter_var($options['news'] ?? '3000', FILTER_VALIDATE_INT, ['options' => ['min_range' => 1, 'max_range' => 1_000_000]]);
    $until = date_create_immutable((string) ($options['until'] ?? '2026-11-20 18:00:00'));
    if ($count === false || $until === false) {
        fwrite(STDERR, "fill.php: --news takes a number from 1 to 1000000, --until a time\n");
        return 2;
    }
    try {
        return fill(Database::configured(), $count, $until, isset($options['anew']));
    } catch (DatabaseAway $away) {
        fwrite(STDERR, "fill.php: no database: {$away->getMessage()}\n");
        return 1;
    }
}

/** Makes the tables and fills them, all at once or not at all. */
function fill(Database $database, int $count, \DateTimeImmutable $until, bool $anew): int
{
    foreach (explode(';', (string) preg_replace('/^--.*$/m', '', (string) file_get_contents(__DIR__ . '/schema.sql'))) as $statement) {
        if (trim($statement) !== '') {
            $database->write($statement);
        }
    }
    if (!$anew && $database->row('SELECT id FROM news LIMIT 1') !== null) {
        echo "There are articles already; --anew empties the tables first.\n";
        return 0;
    }
    $comments = $database->transaction(static function () use ($database, $count, $until): int {
        $database->write('DELETE FROM comments');
        $database->write('DELETE FROM news');
        return fillTables($database, $count, $until);
    });
    $database->write('ALTER TABLE news AUTO_INCREMENT = ' . ($count + 1));
    $database->write('ALTER TABLE comments AUTO_INCREMENT = ' . ($comments + 1));
    echo "$count articles and $comments comments.\n";
    return 0;
}

/** Writes the rows, a few hundred at a time; returns how many comments. */
function fillTables(Database $database, int $count, \DateTimeImmutable $until): int
{
    $writer = new Writer(2011);
    $news = [require __DIR__ . '/fill/first-news.php'];
    $comments = [];
    $written = 0;
    $time = $until;
    // Times are counted back from the newest, so that they end at $until whatever the count.
    $times = [];
    for ($id = $count; $id > 1; $id--) {
        $times[$id] = $time;
        $time = $time->modify('-' . $writer->number(60, 660) . ' minutes');
    }
    for ($id = 2; $id <= $count; $id++) {
        $one = $writer->news();
        $news[] = [$id, $one['topic'], $one['title'], $one['summary'], $one['body'], $one['author'], $times[$id]->format('Y-m-d H:i:s')];
        for ($n = max(0, $writer->number(-3, 9)); $n > 0; $n--) {
            $comment = $writer->comment();
            $at = $times[$id]->modify('+' . $writer->number(10, 3000) . ' minutes');
            if ($at <= $until) {
                $comments[] = [$id, $comment['author'], $comment['body'], $at->format('Y-m-d H:i:s')];
            }
        }
        if ($id % 200 === 0) {
            $written += insert($database, $news, $comments, $written);
            $news = $comments = [];
        }
    }
    return $written + insert($database, $news, $comments, $written);
}

/**
 * @param list<list<string|int>> $news     rows of `news`
 * @param list<list<string|int>> $comments rows of `comments`, without ids
 * @param int                    $before   how many comments there are already
 *
 * @return int how many comments were written
 */
function insert(Database $database, array $news, array $comments, int $before): int
{
    // Comments are numbered in the order of their times, as far as this batch goes.
    usort($comments, static fn (array $a, array $b): int => $a[3] <=> $b[3]);
    foreach ($comments as $at => $comment) {
        $comments[$at] = [$before + $at + 1, ...$comment];
    }
    foreach (['news (id, topic, title, summary, body, author, published)' => $news, 'comments (id, news_id, author, body, written)' => $comments] as $table => $rows) {
        if ($rows !== []) {
            $row = '(' . implode(', ', array_fill(0, count($rows[0]), '?')) . ')';
            $database->write("INSERT INTO $table VALUES " . implode(', ', array_fill(0, count($rows), $row)), array_merge(...$rows));
        }
    }
    return count($comments);
}
