<?php

/**
 * A site of one script for RealServerTest: what it does is asked for by path.
 */

declare(strict_types=1);

require __DIR__ . '/../../../tests/bootstrap.php';

use function Pagewell\changed;
use function Pagewell\uses;

ini_set('display_errors', '1');
ini_set('log_errors', '0');

switch (strtok((string) $_SERVER['REQUEST_URI'], '?')) {
    case '/declared':
        uses('news', 4);
        echo 'declared';
        break;
    case '/many':
        uses('news', ...range(1, 500));
        echo 'many';
        break;
    case '/change-many':
        foreach (range(1, 150) as $id) {
            changed('a-kind-of-news', $id);
        }
        break;
    case '/declared-without-content':
        uses('news', 4);
        header('Location: /declared');
        break;
    case '/session-without-content':
        uses('news', 4);
        session_cache_limiter('');
        session_id('f00dfacef00dfacef00dfacef0');
        ini_set('session.use_cookies', '0');
        session_start();
        header('Location: /session');
        break;
    case '/callback-taken':
        uses('news', 4);
        header_register_callback(static function (): void {
        });
        echo 'sent before the end';
        break;
    case '/own-callback':
        header_register_callback(static function (): void {
            header('X-Own: yes');
            isset($_GET['tells']) && Pagewell\beforeHeaders();
        });
        $client = new Pagewell\Testing\RecordingClient();
        Pagewell\Configuration::set($client);
        isset($_GET['buffered']) && ob_start();
        uses('news', 4);
        isset($_GET['changes']) && changed('news', 5);
        echo count($client->calls());
        isset($_GET['fails']) && http_response_code(503);
        break;
    case '/change-after-headers':
        Pagewell\Configuration::set($client = new Pagewell\Testing\RecordingClient());
        echo 'begun, ';
        flush();
        changed('news', 4);
        changed('news', 5);
        echo count($client->calls());
        break;
    case '/undeclared':
        echo 'undeclared';
        break;
    case '/session':
        uses('news', 4);
        session_cache_limiter('');
        session_start();
        session_write_close();
        echo 'session';
        break;
    case '/fatal':
        uses('news', 4);
        no_such_function();
        break;
    case '/failed':
        uses('news', 4);
        http_response_code(503);
        break;
    case '/too-late':
        uses('news', 4);
        echo 'begun';
        flush();
        try {
            uses('comments');
        } catch (Pagewell\Core\Exception\UseAfterHeaders) {
            echo ', refused';
        }
        break;
    case '/change':
        changed('comments', news: 4);
        http_response_code(303);
        header('Location: /declared');
        break;
    case '/change-much':
        for ($id = 1; $id <= 2000; $id++) {
            changed('kind' . $id % 50, $id);
        }
        match ((string) $_GET['end']) {
            'exit' => exit,
            'thrown' => throw new RuntimeException('after the write'),
            'flushed' => flush(),
            'callback taken' => header_register_callback(static function (): void {
            }),
        };
        echo 'done';
        break;
    case '/change-taken-off':
        Pagewell\Configuration::set(log: static fn (string $text) => print $text);
        changed('news', 4);
        header_register_callback(static fn () => header_remove());
        echo 'done. ';
        break;
    case '/finished':
        ini_set('display_errors', '0');
        $finished = Pagewell\CollectingChannel::begin('POST');
        Pagewell\Configuration::set(log: static fn (string $text) => print $text);
        changed('news', 4);
        $lines = $finished->finish(303, []);
        match ((string) $_GET['then']) {
            'sent' => header($lines[0]),
            'combined' => header('cache-group-invalidation: "other",  "news:4", "news"'),
            'thrown' => throw new RuntimeException('further out'),
            'another sent' => [print 'Another. ', flush()],
        };
        break;
    case '/change-and-fail':
        changed('news', 4);
        header_register_callback(static function (): void {
        });
        no_such_function();
        break;
}
