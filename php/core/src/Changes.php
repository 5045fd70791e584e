<?php

/**
 * The changes of one request, and the field lines that report them.
 *
 *     Cache-Group-Invalidation: "news", "news:4"   RFC 9875 section 3
 *
 * No change is lost, although the size is bounded by the limit of a header section:
 *
 *     more ids of a kind than IDS_MAX      replaced by `kind:*`: every page with one of them
 *     more than BYTES_MAX                  the same for the largest kinds, until three quarters are left
 *     still more than three quarters       replaced by everything: no tag is left
 *
 * In the field, everything is the token `*`, an extension of Pagewell. A tag of that name is `"*"`.
 */

declare(strict_types=1);

namespace Pagewell\Core;

use Pagewell\Core\Exception\InvalidTag;

/** Collects the changes of a request. */
final class Changes
{
    /** Maximum number of ids of one kind on a response; more are replaced by `kind:*`. */
    public const IDS_MAX = 200;

    /** Maximum number of ids of one kind for the control interface. */
    public const IDS_MAX_BY_CONTROL = 5000;

    /** Maximum size of all tags of a response, in bytes as sent. */
    public const BYTES_MAX = 64 * 1024;

    /** Maximum size of all tags for the control interface, in bytes. */
    public const BYTES_MAX_BY_CONTROL = 4 * 1024 * 1024;

    /** Minimum size of a tag in these sums, because Pagewell accepts 4,096 tags per response. */
    private const TAG_BYTES_MIN = 16;

    /** @var array<string, true> tags of kinds as a whole, `news` */
    private array $kinds = [];

    /** @var array<string, array<string, true>> tags of single rows by kind; only `news:*` once there are too many */
    private array $ids = [];

    /** @var array<string, int> bytes of $ids by kind */
    private array $bytesOf = [];

    private int $bytes = 0;

    private int $count = 0;

    private int $widenings = 0;

    private bool $everything = false;

    /**
     * @param int $idsMax   maximum number of ids of one kind
     * @param int $bytesMax maximum size of all tags, in bytes
     */
    public function __construct(private readonly int $idsMax = self::IDS_MAX, private readonly int $bytesMax = self::BYTES_MAX)
    {
    }

    /** Creates an object with the limits of the control interface. */
    public static function byControl(): self
    {
        return new self(self::IDS_MAX_BY_CONTROL, self::BYTES_MAX_BY_CONTROL);
    }

    /**
     * Adds a change of a kind: of one row, or (without an id) of unknown rows.
     *
     * @param int|string|null ...$said the kind, its id, and the parents by name: `news: 4`; an id that is null or empty is unknown
     *
     * @throws InvalidTag a name is empty or too long, or a parent came without its kind
     */
    public function changed(int|string|null ...$said): self
    {
        $change = ChangeArguments::of($said);
        $tag = static fn (string $kind, int|string|null $id): string => $id === null ? Tag::any($kind) : Tag::one($kind, $id);
        $tags = [[$change->kind, $tag($change->kind, $change->id)]];
        foreach ($change->parents as $kind => $id) {
            $tags[] = [$kind, $tag($kind, $id)];
        }
        $this->whole(Tag::whole($change->kind));
        foreach ($tags as [$kind, $tag]) {
            $this->name($kind, $tag);
        }
        return $this;
    }

    /**
     * Adds tags unchanged, for applications that have tags of their own.
     *
     * @throws InvalidTag a tag is empty
     */
    public function changedTags(string ...$tags): self
    {
        foreach (array_map(Tag::raw(...), array_values($tags)) as $tag) {
            $this->whole($tag);
        }
        return $this;
    }

    /** Adds the changes of another object. */
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

    /** Whether the limits were exceeded, so that every page counts as changed. */
    public function isEverything(): bool
    {
        return $this->everything;
    }

    /** Returns the number of tags. */
    public function count(): int
    {
        return $this->count;
    }

    /** Returns the size of all tags, in bytes. */
    public function bytes(): int
    {
        return $this->bytes;
    }

    /** Returns how often tags were replaced by broader ones. */
    public function widenings(): int
    {
        return $this->widenings;
    }

    /**
     * @return list<string> the tags to invalidate, kinds first; empty if it is everything
     */
    public function tags(): array
    {
        $tags = [array_keys($this->kinds)];
        foreach ($this->ids as $ids) {
            $tags[] = array_keys($ids);
        }
        return array_map('strval', array_merge(...$tags));
    }

    /** Returns the call of the control interface for these changes. */
    public function invalidation(bool $soft = false): Invalidation
    {
        return new Invalidation($this->tags(), all: $this->everything, soft: $soft);
    }

    /**
     * @return list<string> `Cache-Group-Invalidation: …`; empty if nothing has changed
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

    /** Replaces the ids of a kind by `kind:*`. */
    private function widen(string $kind): void
    {
        $any = Tag::any($kind);
        $this->widenings += (int) ($this->ids[$kind] !== [$any => true]);
        $this->grow(1 - count($this->ids[$kind]), self::bytesOf($any) - $this->bytesOf[$kind]);
        $this->ids[$kind] = [$any => true];
        $this->bytesOf[$kind] = self::bytesOf($any);
    }

    /** If the limit is exceeded, reduces the tags to three quarters of it, so that this happens rarely. */
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
