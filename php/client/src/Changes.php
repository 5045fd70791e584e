<?php

/**
 * The changes of one request, and the field lines that report them.
 *
 *     Cache-Group-Invalidation: "news", "news:4"   RFC 9875 section 3
 *
 * Never loses a change, and is bounded all the same, by what a header section can hold:
 *
 *     more ids of a kind than IDS_MAX      `kind:*` stands for them: every page that has one of them
 *     more than BYTES_MAX                  the same for the kinds that take most, until three quarters are left
 *     still more than three quarters       everything has changed: no tag is left
 *
 * On the wire everything is the word `*`, without quotes, which is Pagewell's own: a group of that
 * name would be `"*"`.
 */

declare(strict_types=1);

namespace Pagewell;

/** Collects the changes of a request. */
final class Changes
{
    /** The most ids of one kind that a response names; from there on `kind:*` stands for all of them. */
    public const IDS_MAX = 200;

    /** The same for the control interface, whose calls may be long. */
    public const IDS_MAX_BY_CONTROL = 5000;

    /** The most bytes of all tags of a response, as sent. */
    public const BYTES_MAX = 64 * 1024;

    /** The same of what waits for the control interface. */
    public const BYTES_MAX_BY_CONTROL = 4 * 1024 * 1024;

    /** What a tag counts for at least: Pagewell takes 4,096 of a response. */
    private const TAG_BYTES_MIN = 16;

    /** @var array<string, true> tags of kinds, `news` */
    private array $kinds = [];

    /** @var array<string, array<string, true>> tags of single ones by kind; the key `news:*` alone once there are too many */
    private array $ids = [];

    /** @var array<string, int> bytes of $ids by kind */
    private array $bytesOf = [];

    private int $bytes = 0;

    private int $count = 0;

    private int $widenings = 0;

    private bool $everything = false;

    /**
     * @param int $idsMax   the most ids of one kind that are named
     * @param int $bytesMax the most bytes of all tags
     */
    public function __construct(private readonly int $idsMax = self::IDS_MAX, private readonly int $bytesMax = self::BYTES_MAX)
    {
    }

    /** With room for what calls of the control interface may name. */
    public static function byControl(): self
    {
        return new self(self::IDS_MAX_BY_CONTROL, self::BYTES_MAX_BY_CONTROL);
    }

    /**
     * Something of a kind was written: this one, or (without an id) nobody knows which.
     *
     * @param int|string|null ...$said the kind, its id, and by name what else shows it: `news: 4`
     *
     * @throws InvalidTag a name is empty or too long, or a parent came without its kind
     */
    public function changed(int|string|null ...$said): self
    {
        $change = ChangeArguments::of($said);
        $tags = [[$change->kind, $change->id === null ? Tag::any($change->kind) : Tag::one($change->kind, $change->id)]];
        foreach ($change->parents as $kind => $id) {
            $tags[] = [$kind, Tag::one($kind, $id)];
        }
        $this->whole(Tag::whole($change->kind));
        foreach ($tags as [$kind, $tag]) {
            $this->name($kind, $tag);
        }
        return $this;
    }

    /**
     * Pages with these tags, as they are: for applications that have tags of their own.
     *
     * @throws InvalidTag a tag is empty
     */
    public function tagged(string ...$tags): self
    {
        foreach (array_map(Tag::raw(...), array_values($tags)) as $tag) {
            $this->whole($tag);
        }
        return $this;
    }

    /** These changes too. */
    public function add(self $others): self
    {
        if ($others->everything) {
            $this->becomeEverything();
        }
        foreach ($others->kinds as $tag => $_) {
            $this->whole((string) $tag);
        }
        foreach ($others->ids as $kind => $ids) {
            foreach ($ids as $tag => $_) {
                $this->name((string) $kind, (string) $tag);
            }
        }
        return $this;
    }

    /** Whether nothing has changed. */
    public function isEmpty(): bool
    {
        return $this->count === 0 && !$this->everything;
    }

    /** Whether there was more than could be named, so that every page is outdated. */
    public function isEverything(): bool
    {
        return $this->everything;
    }

    /** How many tags there are. */
    public function count(): int
    {
        return $this->count;
    }

    /** How many bytes they count for. */
    public function bytes(): int
    {
        return $this->bytes;
    }

    /** How often tags have given way to what stands for more. */
    public function widenings(): int
    {
        return $this->widenings;
    }

    /**
     * @return list<string> the tags to invalidate: kinds first; none when it is everything
     */
    public function tags(): array
    {
        $tags = [array_keys($this->kinds)];
        foreach ($this->ids as $ids) {
            $tags[] = array_keys($ids);
        }
        return array_map('strval', array_merge(...$tags));
    }

    /** The call that tells of them. */
    public function invalidation(bool $soft = false): Invalidation
    {
        return new Invalidation($this->tags(), all: $this->everything, soft: $soft);
    }

    /**
     * @return list<string> `Cache-Group-Invalidation: …`; none when nothing has changed
     */
    public function lines(): array
    {
        return $this->everything ? ['Cache-Group-Invalidation: *'] : Tag::lines('Cache-Group-Invalidation', $this->tags());
    }

    private function whole(string $tag): void
    {
        if (!$this->everything && !isset($this->kinds[$tag])) {
            $this->kinds[$tag] = true;
            $this->grow(1, self::bytesOf($tag));
            $this->bound();
        }
    }

    private function name(string $kind, string $tag): void
    {
        $any = Tag::any($kind);
        if ($this->everything || isset($this->ids[$kind][$any]) || isset($this->ids[$kind][$tag])) {
            return;
        }
        $this->ids[$kind][$tag] = true;
        $this->bytesOf[$kind] = ($this->bytesOf[$kind] ?? 0) + self::bytesOf($tag);
        $this->grow(1, self::bytesOf($tag));
        if ($tag === $any || count($this->ids[$kind]) > $this->idsMax) {
            $this->widen($kind);
        }
        $this->bound();
    }

    private function grow(int $tags, int $bytes): void
    {
        $this->count += $tags;
        $this->bytes += $bytes;
    }

    /** `kind:*` takes the place of the ids. */
    private function widen(string $kind): void
    {
        $any = Tag::any($kind);
        $this->widenings += (int) ($this->ids[$kind] !== [$any => true]);
        $this->grow(1 - count($this->ids[$kind]), self::bytesOf($any) - $this->bytesOf[$kind]);
        $this->ids[$kind] = [$any => true];
        $this->bytesOf[$kind] = self::bytesOf($any);
    }

    /** Makes room where there is more than fits: a quarter of it, so that it is not made over and over. */
    private function bound(): void
    {
        if ($this->bytes <= $this->bytesMax) {
            return;
        }
        arsort($this->bytesOf);
        foreach (array_keys($this->bytesOf) as $kind) {
            if (4 * $this->bytes <= 3 * $this->bytesMax) {
                return;
            }
            $this->widen((string) $kind);
        }
        if (4 * $this->bytes > 3 * $this->bytesMax) {
            $this->becomeEverything();
        }
    }

    private function becomeEverything(): void
    {
        $this->everything = true;
        $this->kinds = $this->ids = $this->bytesOf = [];
        $this->bytes = $this->count = 0;
        $this->widenings++;
    }

    private static function bytesOf(string $tag): int
    {
        return max(self::TAG_BYTES_MIN, Tag::bytes($tag));
    }
}
