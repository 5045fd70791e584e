<?php

/**
 * Pages of fragments behind a real Pagewell, for RealFragmentTest: whose they are, and what was asked for how often.
 */

declare(strict_types=1);

require __DIR__ . '/../../../tests/bootstrap.php';

use function Pagewell\fragment;
use function Pagewell\freshFor;
use function Pagewell\uses;

$box = static function (): void {
    uses('names');
    if (isset($_COOKIE['who'])) {
        header('Cache-Control: private');
    }
    echo 'Hello, ', htmlspecialchars($_COOKIE['who'] ?? 'stranger'), '! ', htmlspecialchars($_GET['q'] ?? '');
};

switch (explode('?', (string) $_SERVER['REQUEST_URI'])[0]) {
    case '/box':
        $box();
        break;
    case '/broken':
        http_response_code(500);
        break;
    case '/hostile':
        freshFor(60);
        echo '<p>', fragment('/box?q=' . rawurlencode($_GET['q']), $box), '|';
        echo fragment('/box?q=' . $_GET['q'], $box), '</p>';
        break;
    case '/left-out':
        echo '<p>', fragment('/broken', static fn (): string => 'in place', continue: true), '</p>';
        break;
    case '/instead':
        echo '<p>', fragment('/broken', static fn (): string => 'in place', alt: '/box'), '</p>';
        break;
    case '/overwritten':
        header('Surrogate-Control: max-age=30');
        echo '<p>', fragment('/box', $box), '</p>';
        header('Surrogate-Control: max-age=60');
        break;
    default:
        uses('news');
        header('Surrogate-Control: max-age=60');
        echo '<p>', fragment('/box', $box), ' ', bin2hex(random_bytes(4)), '</p>';
}
