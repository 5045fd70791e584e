<?php

/**
 * A site behind a real Pagewell, for RealPagewellTest: a table of news in SQLite, pages made from
 * it, and every way to write.
 *
 * The first part of the path says what is done, the second to which news.
 */

declare(strict_types=1);

require __DIR__ . '/../bootstrap.php';

use function Pagewell\changed;
use function Pagewell\changedNow;
use function Pagewell\changedSoftly;
use function Pagewell\uses;

[, $what, $id] = explode('/', (string) $_SERVER['REQUEST_URI']) + ['', '', '1'];
$db = new Pagewell\Pdo('sqlite:' . getenv('NOTES') . '/news.db', options: [PDO::ATTR_TIMEOUT => 10]);
$write = static function (string $title) use ($db, $id): void {
    $db->prepare('INSERT OR REPLACE INTO news (id, title) VALUES (?, ?)')->execute([$id, $title]);
};
$read = static function () use ($db, $id): string {
    $row = $db->prepare('SELECT title FROM news WHERE id = ?');
    $row->execute([$id]);
    return (string) $row->fetchColumn();
};

switch ($what) {
    case 'setup':
        $db->exec('PRAGMA journal_mode = WAL');
        $db->exec('CREATE TABLE IF NOT EXISTS news (id PRIMARY KEY, title TEXT)');
        break;
    case 'news':
        uses('news', $id);
        echo $read();
        break;
    case 'greeting':
        uses('news', $id);
        echo 'Hello, ', $_COOKIE['theme'] ?? 'all';
        break;
    case 'own-callback':
        header_register_callback(static fn () => header('X-Own: yes'));
        uses('news', $id);
        echo $read();
        break;
    case 'lifetime':
        header('Cache-Control: public, max-age=600');
        ini_set('display_errors', '1');
        uses('news');
        match ($_SERVER['QUERY_STRING']) {
            'whole' => null,
            'zero' => Pagewell\freshFor(0),
            'many' => uses('news', ...range(1, 1001)),
            'fatal' => no_such_function(),
        };
        break;
    case 'list':
        uses('news');
        echo 'list';
        break;
    case 'write':
    case 'write-on-get':
        $write($_POST['title'] ?? 'written on a GET');
        changed('news', $id);
        break;
    case 'write-much':
        $write('written with much else');
        for ($n = 1; $n <= 3000; $n++) {
            changed("kind$n", str_repeat('x', 800) . $n);
        }
        changed('news', $id);
        break;
    case 'write-after-headers':
        echo 'begun';
        flush();
        $write('written after the headers');
        changed('news', $id);
        break;
    case 'write-softly':
        $write('written softly');
        changedSoftly('news', $id);
        break;
    case 'commit':
    case 'rollback':
        $db->beginTransaction();
        $write("$what in a transaction");
        changed('news', $id);
        // Somebody looks before the commit: the page is made from the old row, and stored.
        echo file_get_contents("http://{$_SERVER['HTTP_HOST']}/news/$id");
        $what === 'commit' ? $db->commit() : $db->rollBack();
        break;
    case 'forgotten':
        $db->beginTransaction();
        $write('never committed');
        changed('news', $id);
        break;
    case 'now':
        $write('written now');
        echo changedNow('news', $id);
        break;
    case 'away':
        putenv('PAGEWELL_ADMIN=unix:/nowhere/at/all.sock');
        changed('news', $id);
        echo 'unbroken';
        break;
}
