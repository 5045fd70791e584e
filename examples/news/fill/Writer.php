<?php

/**
 * Writes plausible articles and comments: always the same ones for the same seed.
 *
 * PHP's mt_rand() gives the same sequence for a seed on every machine (since PHP 7.1).
 */

declare(strict_types=1);

namespace News\Fill;

/** Writes. */
final class Writer
{
    private const STREETS = ['Quay Street', 'Mill Lane', 'Rope Walk', 'Station Road', 'Fish Street', 'Chapel Hill', 'Saltern Road', 'Church Row', 'Kiln Lane', 'Long Acre', 'Lantern Street', 'Ferry Road'];
    private const PLACES = ['Sandling', 'Oar Point', 'Upper Marsh', 'Grey Ness', 'Holm', 'Eastferry', 'Cobb’s End', 'Little Wrack', 'Thornholt', 'Gull Island', 'Windmill Hill', 'Saltmere'];
    private const FIRST = ['Ada', 'Tom', 'Ines', 'Jonas', 'Mary', 'Karim', 'Ruth', 'Peter', 'Leila', 'Hugh', 'Nora', 'Sam', 'Edith', 'Milan', 'Clara', 'Yusuf', 'Greta', 'Owen', 'Thea', 'Arthur'];
    private const LAST = ['Penrose', 'Marsh', 'Tanner', 'Okoye', 'Lindqvist', 'Hale', 'Ferrier', 'Brandt', 'Wells', 'Novak', 'Sutton', 'Achterberg', 'Rowe', 'Dunn', 'Farah', 'Whitlock', 'Moor', 'Castellan'];
    private const GROUPS = ['Friends of the Harbour', 'Marsh Trust', 'Women’s Rowing Club', 'Parents’ Circle', 'History Society', 'Bird Watchers’ Union', 'Chess Club', 'Neighbours’ Association'];
    private const DAYS = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];
    private const MONTHS = ['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December'];
    private const STAFF = ['Hannah Reed', 'Samuel Ortiz', 'Beatrix Lane', 'Callum Fraser', 'Priya Nair', 'George Holloway'];

    /** @var array<string, string> what the slots of the present article are filled with */
    private array $slots = [];

    /** @var list<int> stories that are left before all are dealt again */
    private array $deck = [];

    /** @var list<array{string, list<string>, list<string>, list<string>}> */
    private readonly array $stories;

    /** @var array{openings: list<string>, middles: list<string>, closings: list<string>} */
    private readonly array $parts;

    /** @param int $seed the same for the same text */
    public function __construct(int $seed)
    {
        mt_srand($seed);
        $this->stories = require __DIR__ . '/stories.php';
        $this->parts = require __DIR__ . '/comments.php';
    }

    /**
     * The next article.
     *
     * @return array{topic: string, title: string, summary: string, body: string, author: string}
     */
    public function news(): array
    {
        $this->slots = $this->newSlots();
        [$topic, $titles, $summaries, $paragraphs] = $this->story();
        // The first paragraph tells what happened; of the others one may be left out.
        $left = mt_rand(1, count($paragraphs) + 1);
        unset($paragraphs[$left]);
        return [
            'topic' => $topic,
            'title' => $this->fill(self::one($titles)),
            'summary' => $this->fill(self::one($summaries)),
            'body' => implode("\n\n", array_map($this->fill(...), $paragraphs)),
            'author' => self::one(self::STAFF),
        ];
    }

    /**
     * The next comment on the article that was written last.
     *
     * @return array{author: string, body: string}
     */
    public function comment(): array
    {
        $parts = [self::one($this->parts['openings']), self::one($this->parts['middles'])];
        if (mt_rand(0, 2) === 0) {
            $parts[] = self::one($this->parts['middles']);
        }
        if (mt_rand(0, 1) === 0) {
            $parts[] = self::one($this->parts['closings']);
        }
        return ['author' => self::person(), 'body' => $this->fill(implode(' ', array_unique($parts)))];
    }

    /** A number between two, both included. */
    public function number(int $least, int $most): int
    {
        return mt_rand($least, $most);
    }

    /** @return array<string, string> */
    private function newSlots(): array
    {
        $name = self::person();
        do {
            $other = self::person();
        } while (explode(' ', $other)[0] === explode(' ', $name)[0]);
        return [
            '{street}' => self::one(self::STREETS), '{place}' => self::one(self::PLACES), '{name}' => $name, '{other}' => $other,
            '{group}' => self::one(self::GROUPS), '{day}' => self::one(self::DAYS), '{month}' => self::one(self::MONTHS),
            '{n}' => self::one(['three', 'four', 'five', 'six', 'seven', 'eight', 'nine']),
            '{th}' => self::one(['third', 'fifth', 'sixth', 'tenth', 'twelfth', 'twentieth']), '{score}' => (string) mt_rand(2, 5),
            '{long}' => self::one(['eighteen', 'twenty-two', 'thirty', 'thirty-five', 'forty']), '{m}' => (string) mt_rand(14, 96), '{p}' => (string) mt_rand(14, 96), '{q}' => (string) mt_rand(14, 96),
            '{k}' => (string) mt_rand(11, 240),
        ];
    }

    /**
     * Returns the next story, as from a shuffled deck: none is repeated before all have been used.
     *
     * @return array{string, list<string>, list<string>, list<string>}
     */
    private function story(): array
    {
        if ($this->deck === []) {
            $this->deck = array_keys($this->stories);
            for ($at = count($this->deck) - 1; $at > 0; $at--) {
                $with = mt_rand(0, $at);
                [$this->deck[$at], $this->deck[$with]] = [$this->deck[$with], $this->deck[$at]];
            }
        }
        return $this->stories[array_pop($this->deck)];
    }

    private static function person(): string
    {
        return self::one(self::FIRST) . ' ' . self::one(self::LAST);
    }

    private function fill(string $text): string
    {
        $filled = ucfirst(strtr($text, $this->slots));
        // A slot may stand first in a sentence.
        return (string) preg_replace_callback('/[.!?] “?\K[a-z](?=[a-z]+ )/', static fn (array $letter): string => ucfirst($letter[0]), $filled);
    }

    /**
     * @template T
     *
     * @param list<T> $choices
     *
     * @return T
     */
    private static function one(array $choices): mixed
    {
        return $choices[mt_rand(0, count($choices) - 1)];
    }
}
