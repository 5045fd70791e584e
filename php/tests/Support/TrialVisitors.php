<?php

/**
 * Visitors of a trial beside those of a test (PAGEWELL_TRIAL, `make trial`): the test gets hits, as nine in ten
 * addresses do. After each of its requests two other visitors send the same one. They get the answers of the
 * application, which Pagewell compares with its pages. At the end its report must have comparisons, and nothing wrong
 * or without an explanation.
 *
 * PAGEWELL_TRIAL is the budget of the comparisons: `100%`, or `default`.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Support;

final class TrialVisitors
{
    /**
     * The classes of the report that mean a wrong page. Not `late`: a change that does not pass through Pagewell arrives
     * late on a busy machine.
     */
    private const WRONG = ['broken-promise', 'leak', 'leak-or-aged', 'aged', 'by-the-clock'];

    /** The reasons of differences that no render explains. Others may be the machine's, or end with a change. */
    private const UNEXPLAINED = ['cause-unknown', 'render-failed', 'not-stored'];

    /** The address of the test. */
    private const OWN = '127.0.0.1';

    private int $sent = 0;

    /** @param list<string> $addresses of visitors who get the answers of the application */
    private function __construct(private readonly RealPagewell $pagewell, private readonly array $addresses)
    {
    }

    /** The first lines of a configuration; nothing without a trial. */
    public static function config(): string
    {
        $budget = getenv('PAGEWELL_TRIAL') ?: '';
        $lines = $budget === 'default' ? '' : "trial.budget = \"$budget\"\n";
        return $budget === '' ? '' : "mode = \"trial\"\ntrial.serve = \"90%\"\n$lines";
    }

    /** The visitors of a Pagewell that serves now; null if the test itself would get no hits. */
    public static function of(RealPagewell $pagewell): ?self
    {
        $self = new self($pagewell, []);
        for ($n = 1; $n <= 40; $n++) {
            $self->knock("127.1.0.$n");
        }
        $all = array_map(static fn (int $n): string => "127.2.0.$n", range(1, 250));
        $visitors = array_slice(array_values(array_filter($all, $self->isInTrial(...))), 0, 4);
        return $self->isInTrial(self::OWN) ? null : new self($pagewell, $visitors);
    }

    /** Sends a request of the test again, as two other visitors. */
    public function visit(string $method, string $path, string ...$lines): void
    {
        foreach ([0, 1] as $ignored) {
            $n = ++$this->sent;
            $address = $this->addresses[$n % count($this->addresses)];
            $method === 'GET' ? $this->send($address, "GET $path HTTP/1.1", ...$lines) : $this->knock('127.1.0.' . ($n % 200 + 1));
        }
    }

    /**
     * The pages that the trial has found to be wrong or did not explain, after all comparisons have ended, or that it
     * has compared none; empty if all is right.
     */
    public function found(): string
    {
        [$last, $since] = [-1, 0];
        for ($round = 0; $round < 1200 && $since < 20; $round++) {
            usleep(50_000);
            $stats = $this->pagewell->control('GET', '/v1/stats') + ['audit_watched' => 0, 'trial_answers' => 0];
            if ($stats['audit_watched'] > 0 && $round % 20 === 19) {
                // A purge within a minute would have been late.
                $this->pagewell->control('POST', '/v1/clock', '{"advance_ms":61000}');
            }
            $since = $stats['trial_answers'] === $last && $stats['audit_watched'] === 0 ? $since + 1 : 0;
            $last = $stats['trial_answers'];
        }
        $report = $this->pagewell->control('GET', '/v1/trial')['trials'][0] ?? ['sentence' => 'There is no trial.', 'problems' => [['class' => 'leak']]];
        $wrong = array_filter($report['problems'], static fn (array $problem): bool => in_array($problem['class'], self::WRONG, true));
        $figures = array_diff_key($report, ['problems' => 0, 'notices' => 0, 'since' => 0, 'site' => 0]);
        fwrite(STDERR, "\ntrial: " . json_encode($figures, JSON_UNESCAPED_SLASHES) . "\n");
        foreach (array_diff_key($report['problems'], $wrong) as $notice) {
            fwrite(STDERR, '  ' . json_encode($notice, JSON_UNESCAPED_SLASHES) . "\n");
        }
        if (($report['compared'] ?? 0) === 0) {
            return "It has compared nothing.\n";
        }
        $unexplained = array_intersect($report['suspect_reasons'] ?? [], self::UNEXPLAINED);
        $found = [...array_values($wrong), ...($unexplained === [] ? [] : [$unexplained])];
        return $found === [] ? '' : (string) json_encode($found, JSON_UNESCAPED_SLASHES | JSON_PRETTY_PRINT);
    }

    /** A request that Pagewell refuses, so that no address makes more than half of the requests. */
    private function knock(string $address): void
    {
        $this->send($address, 'GET / HTTP/1.1', 'Host: no host');
    }

    private function isInTrial(string $address): bool
    {
        $answer = $this->pagewell->control('POST', '/v1/explain', (string) json_encode(['url' => '/', 'from' => $address]));
        return str_contains((string) json_encode($answer), 'is in a trial');
    }

    private function send(string $address, string ...$lines): void
    {
        $to = str_replace('http://', 'tcp://', $this->pagewell->address());
        $own = stream_context_create(['socket' => ['bindto' => "$address:0"]]);
        $stream = stream_socket_client($to, $errno, $error, 60, STREAM_CLIENT_CONNECT, $own);
        if ($stream === false) {
            throw new \RuntimeException("a visitor cannot connect: $error");
        }
        $hasHost = preg_grep('/^host:/i', $lines) !== [];
        fwrite($stream, implode("\r\n", [...$lines, ...($hasHost ? [] : ['Host: ' . substr($to, 6)]), 'Connection: close', '', '']));
        stream_set_timeout($stream, 60);
        stream_get_contents($stream);
        fclose($stream);
    }
}
