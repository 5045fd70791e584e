<?php

/*
 * The site of `cargo torture --machines`: pages that say what they were made from, and writes.
 *
 * The truth is a file for each cell in the directory TRUTH, whose number goes up; beside it is a lock. What a
 * page reads and how it behaves is in `pages/NUMBER.php`. A page is made as the origin of the other tortures
 * makes it: it reads one version after the other, takes up to eight milliseconds, and repeats what it was made
 * from in every line.
 */

declare(strict_types=1);

const RENDER_MICROS = 8000;
const SLOW_MICROS = 80000;
const WRITE_MICROS = 2000;
const PIECES = 4;

function version(int $cell): int
{
    return (int) file_get_contents(getenv('TRUTH') . "/$cell");
}

/** Changes cells, and says which version each has now, and which items those are. */
function commit(array $cells): void
{
    $committed = $groups = [];
    foreach ($cells as $cell) {
        $file = getenv('TRUTH') . "/$cell";
        $lock = fopen("$file.lock", 'c');
        flock($lock, LOCK_EX);
        $version = version($cell) + 1;
        file_put_contents("$file.new", (string) $version);
        rename("$file.new", $file);
        fclose($lock);
        $committed[] = "$cell:$version";
        if ($cell < (int) getenv('ITEMS')) {
            $groups[] = "\"item:$cell\"";
        }
    }
    usleep(random_int(0, WRITE_MICROS));
    header('Cache-Control: no-store');
    header('X-Committed: ' . implode(' ', $committed));
    if ($groups !== []) {
        header('Cache-Group-Invalidation: ' . implode(', ', $groups));
    }
}

/** The header fields by which a page describes itself. */
function describe(array $page, string $stamp): void
{
    $tags = array_map(fn (int $item): string => "item:$item", array_slice($page['reads'], 0, -1));
    header('Content-Type: text/plain');
    header("Cache-Control: {$page['control']}");
    header($page['number'] % 2 === 0
        ? 'Surrogate-Key: ' . implode(' ', $tags)
        : 'Cache-Groups: "' . implode('", "', $tags) . '"');
    header("X-Made-From: $stamp");
    if ($page['kind'] === 'varying') {
        header('Vary: X-Variant');
    }
    // By the data: the samples of an audit agree by chance about a page that draws.
    if ($page['kind'] === 'personal' && crc32($stamp) % 2 === 0) {
        header('Set-Cookie: visit=1');
    }
}

function render(array $page): void
{
    $micros = random_int(0, RENDER_MICROS);
    $versions = [];
    foreach ($page['reads'] as $cell) {
        $versions[] = version($cell);
        usleep(intdiv($micros, 16));
    }
    $rest = intdiv($micros * 11, 16);
    $asked = $_SERVER['HTTP_X_VARIANT'] ?? '';
    $variant = in_array($asked, $page['variants'], true) ? $asked : $page['variants'][0];
    $stamp = "{$page['number']} $variant " . implode('.', $versions);
    describe($page, $stamp);
    if ($page['kind'] === 'validated') {
        $validator = '"' . strtr($stamp, ' ', '-') . '"';
        header("ETag: $validator");
        if (str_contains($_SERVER['HTTP_IF_NONE_MATCH'] ?? '', $validator)) {
            usleep($rest);
            http_response_code(304);
            return;
        }
    }
    $content = '';
    $filling = str_repeat('.', $page['filling']);
    for ($line = 1; $line <= $page['lines']; $line++) {
        $content .= "$stamp line $line of {$page['lines']} $filling\n";
    }
    send($page, $content, $rest);
}

/** Some pages come at once, others in pieces while they are made; half of the large ones say how long they are. */
function send(array $page, string $content, int $micros): void
{
    $inPieces = in_array($page['kind'], ['streamed', 'slow', 'large'], true);
    if (!$inPieces || ($page['kind'] === 'large' && $page['number'] % 2 === 0)) {
        header('Content-Length: ' . strlen($content));
    }
    if (!$inPieces) {
        usleep($micros);
        echo $content;
        return;
    }
    $pause = $page['kind'] === 'slow' ? SLOW_MICROS : intdiv($micros, PIECES);
    foreach (str_split($content, intdiv(strlen($content) + PIECES - 1, PIECES)) as $piece) {
        usleep($pause);
        echo $piece;
        flush();
    }
}

function page(string $number): ?array
{
    $file = __DIR__ . "/pages/$number.php";
    return is_file($file) ? require $file : null;
}

function answer(string $method, string $target): void
{
    if (preg_match('~^/page/(\d+)(\?|$)~', $target, $found)) {
        $page = page($found[1]);
        if ($page !== null && $page['target'] === $target) {
            $method === 'POST' ? commit([end($page['reads'])]) : render($page);
            return;
        }
    } elseif (preg_match('~^/write\?items=([\d,]+)$~', $target, $found)) {
        commit(array_map(intval(...), explode(',', $found[1])));
        return;
    } elseif (preg_match('~^/write\?page=(\d+)$~', $target, $found) && ($page = page($found[1]))) {
        commit([end($page['reads'])]);
        header("Location: {$page['target']}", true, 303);
        return;
    }
    http_response_code(404);
}

ignore_user_abort(true);
while (ob_get_level() > 0) {
    ob_end_clean();
}
answer($_SERVER['REQUEST_METHOD'], $_SERVER['REQUEST_URI']);
