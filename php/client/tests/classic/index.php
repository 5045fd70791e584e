<?php

/**
 * A site behind nginx alone, for ClassicTest: news in files, pages that are stored over the memcached
 * port by the library, and writes that nginx takes straight to PHP.
 *
 * The first part of the path says what is done, the second to which news.
 */

declare(strict_types=1);

require __DIR__ . '/../../../tests/bootstrap.php';

use Pagewell\Configuration;
use Pagewell\Core\SocketClient;
use Pagewell\MemcachedPage;

use function Pagewell\changed;
use function Pagewell\freshFor;
use function Pagewell\uses;

[, $what, $id] = explode('/', explode('?', (string) $_SERVER['REQUEST_URI'])[0]) + ['', '', '4'];
$notes = (string) getenv('NOTES');
$file = "$notes/news-" . rawurldecode($id);

/** Until the test says so. */
function wait(string $pipe): void
{
    global $notes;
    file_get_contents("$notes/$pipe");
}

// As a Dotenv library does it, once the library is loaded.
if (isset($_GET['dotenv'])) {
    $_ENV['PAGEWELL_CHANGES'] = $_SERVER['PAGEWELL_CHANGES'] = $_GET['dotenv'];
}

switch ($what) {
    case 'news':
        if (isset($_GET['old-extension'])) {
            $store = new Memcache();
            $store->addServer('unix://' . getenv('STORE'), 0);
        } else {
            // As it comes: PHP's extension compresses from 2,000 bytes on.
            $store = new Memcached();
            $store->addServer((string) getenv('STORE'), 0);
        }
        $page = MemcachedPage::begin($store);
        uses('news', rawurldecode($id));
        $html = file_get_contents($file) . (isset($_GET['long']) ? str_repeat('.', 4000) : '');
        match ($_GET['as'] ?? '') {
            'slow' => wait('slow'),
            'month' => freshFor(40 * 86_400),
            'minute' => freshFor(60),
            'status' => http_response_code(404),
            'content-type' => header('Content-Type: application/json'),
            'varies' => header('Vary: Accept-Language'),
            'fragments' => $html .= Pagewell\fragment('/box', static fn (): string => 'in place'),
            'session' => $_SESSION = [],
            'tags' => uses('place', 'New York'),
            'sent' => [print ' ', ob_flush(), flush()],
            default => null,
        };
        $page->store($html);
        headers_sent() || header('X-Refusal: ' . ($page->refusal()?->value ?? 'none'));
        file_put_contents("$notes/refusal", $page->refusal()?->value ?? 'none');
        echo $html;
        break;
    case 'write':
        file_put_contents($file, $_GET['title'] ?? 'written');
        changed('news', $id);
        break;
    case 'write-and-work':
        file_put_contents($file, 'written');
        changed('news', $id);
        header('X-Accel-Buffering: no');
        echo 'done';
        $_GET['by'] === 'flush' ? [ob_flush(), flush()] : fastcgi_finish_request();
        wait('work');
        break;
    case 'away':
        Configuration::set(new SocketClient('unix:/nowhere/at/all.sock'));
        changed('news', $id);
        echo 'unbroken';
        break;
}
