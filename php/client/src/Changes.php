<?php

/**
 * What one request has changed, and the field lines that say so.
 *
 *     Cache-Group-Invalidation: "news", "news:4"   RFC 9875 section 3
 *
 * Never loses a change: where there are more ids than fit in a response, the kind as a
 * whole takes their place, which reaches every page that has one of them.
 */

declare(strict_types=1);

namespace Pagewell;

/** Collects what a request has changed. */
final class Changes
{
    /** The most ids of one kind that a response names; from there on `kind:*` stands for all of them. */
    public const IDS_MAX = 200;

    /** The same for the control interface, whose calls may be long. */
    public const IDS_MAX_BY_CONTROL = 5000;

    /** @var array<string, true> tags of kinds, `news` */
    private array $kinds = [];

    /** @var array<string, array<string, true>> tags of single ones by kind; the key `news:*` alone once there are too many */
    private array $ids = [];

    /** @param int $idsMax the most ids of one kind that are named */
    public function __construct(private readonly int $idsMax = self::IDS_MAX)
    {
    }

    /**
     * Something of a kind was written: this one, or (null) nobody knows which.
     *
     * @param int|string ...$of what else shows it, by kind: `news: 4`
     *
     * @throws InvalidTag a name is empty or too long, or something in $of came without its kind
     */
    public function changed(string $kind, int|string|null $id = null, int|string ...$of): self
    {
        $tags = [[$kind, $id === null ? Tag::any($kind) : Tag::one($kind, $id)]];
        foreach ($of as $name => $shown) {
            if (!is_string($name)) {
                throw new InvalidTag("changed('$kind', …, $shown): say what $shown is the id of, as in changed('comments', news: 4).");
            }
            $tags[] = [$name, Tag::one($name, $shown)];
        }
        $this->kinds[Tag::whole($kind)] = true;
        foreach ($tags as [$name, $tag]) {
            $this->name($name, $tag);
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
        $this->kinds += array_fill_keys(array_map(Tag::raw(...), array_values($tags)), true);
        return $this;
    }

    /** These changes too. */
    public function add(self $others): self
    {
        $this->kinds += $others->kinds;
        foreach ($others->ids as $kind => $ids) {
            foreach (array_keys($ids) as $tag) {
                $this->name((string) $kind, (string) $tag);
            }
        }
        return $this;
    }

    /** Whether nothing has changed. */
    public function isEmpty(): bool
    {
        return $this->kinds === [] && $this->ids === [];
    }

    /** How many tags there are. */
    public function count(): int
    {
        return count($this->kinds) + array_sum(array_map('count', $this->ids));
    }

    /**
     * @return list<string> the tags to invalidate: kinds first
     */
    public function tags(): array
    {
        $tags = array_keys($this->kinds);
        foreach ($this->ids as $ids) {
            array_push($tags, ...array_keys($ids));
        }
        return array_map('strval', $tags);
    }

    /**
     * @return list<string> `Cache-Group-Invalidation: …`; none when nothing has changed
     */
    public function lines(): array
    {
        return Tag::lines('Cache-Group-Invalidation', $this->tags());
    }

    private function name(string $kind, string $tag): void
    {
        $any = Tag::any($kind);
        if (isset($this->ids[$kind][$any])) {
            return;
        }
        $this->ids[$kind][$tag] = true;
        if ($tag === $any || count($this->ids[$kind]) > $this->idsMax) {
            $this->ids[$kind] = [$any => true];
        }
    }
}
