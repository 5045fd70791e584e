<?php

/**
 * The calls of the control interface, apart from the way by which they are sent: SocketClient and
 * the client for PSR-18 share it.
 *
 *     purge     in batches of at most Invalidation::TAGS_MAX tags; an older Pagewell rejects soft
 *               invalidations: then the pages are purged
 *     explain   one call
 *     cookies   one call
 *     response  200 with the expected fields, or an error with its reason; anything else is not Pagewell
 */

declare(strict_types=1);

namespace Pagewell\Core;

use Pagewell\Core\Exception\InvalidationRefused;
use Pagewell\Core\Exception\InvalidConfiguration;
use Pagewell\Core\Exception\InvalidTag;
use Pagewell\Core\Exception\PagewellException;
use Pagewell\Core\Exception\UnreadableResponse;

/**
 * Writes calls, and reads their responses.
 *
 * @internal
 */
final class ControlCalls
{
    /** Maximum length of a response, in bytes. An explanation may have all tags of a page. */
    public const ANSWER_BYTES_MAX = 1024 * 1024;

    /** The message if something else than the admin interface answers. */
    public const OTHER_PROGRAM = 'PAGEWELL_ADMIN names the address of another program than the admin interface of Pagewell: write the address of `admin` in its configuration, 127.0.0.1:8081 if there is none.';

    /**
     * @param \Closure(string, string): array{int, string} $send takes a path and a body, returns the status and the content
     * @param string|null                                  $site the site that calls are for; null means every site
     */
    public function __construct(private readonly \Closure $send, private readonly ?string $site = null)
    {
    }

    /** @throws PagewellException see InvalidationClient::invalidate() */
    public function invalidate(Invalidation $invalidation): InvalidationResult
    {
        $result = new InvalidationResult();
        foreach ($invalidation->for($invalidation->site ?? $this->site)->batches() as $batch) {
            $result = $result->and($this->invalidateBatch($batch));
        }
        return $result;
    }

    /**
     * @param array<string, string> $fields
     *
     * @throws PagewellException see ExplanationClient::explain()
     */
    public function explain(string $url, array $fields): Explanation
    {
        $asked = ['url' => $url, 'headers' => (object) $fields] + ($this->site === null ? [] : ['site' => $this->site]);
        try {
            $body = json_encode($asked, JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE);
        } catch (\JsonException $fault) {
            throw new InvalidTag('The URL cannot be said in JSON: ' . $fault->getMessage(), 0, $fault);
        }
        return Explanation::of($this->call('/v1/explain', $body)) ?? throw new UnreadableResponse(self::OTHER_PROGRAM);
    }

    /** @throws PagewellException see InvalidationClient::invalidate() */
    public function health(): void
    {
        $this->call('/v1/health', '');
    }

    /**
     * Returns the cookies that most often prevented that a page was stored or used, the most frequent first.
     *
     * @return list<array{name: string, effect: string, url: string}> `set`: pages set it; `bypass`: requests have it
     *
     * @throws PagewellException see InvalidationClient::invalidate()
     */
    public function cookies(): array
    {
        $cookies = $this->call('/v1/misses', '')['cookies'] ?? null;
        $isCookie = static fn (mixed $one): bool => is_array($one) && is_string($one['name'] ?? null) && is_string($one['effect'] ?? null) && is_string($one['url'] ?? null);
        $known = is_array($cookies) ? array_values(array_filter($cookies, $isCookie)) : throw new UnreadableResponse(self::OTHER_PROGRAM);
        return array_map(static fn (array $one): array => ['name' => $one['name'], 'effect' => $one['effect'], 'url' => $one['url']], $known);
    }

    /**
     * Reads the token; called for each call, so that a new token needs no restart.
     *
     * @throws InvalidConfiguration it cannot be read, or contains no token
     */
    public static function token(?string $file): ?string
    {
        if ($file === null) {
            return null;
        }
        $content = @file_get_contents($file, false, null, 0, 4096);
        $token = trim((string) $content);
        return match (true) {
            $content === false => throw new InvalidConfiguration("The token file $file cannot be read by this user. Is it there, and may the user of PHP read it?"),
            preg_match('/^[\x21-\x7e]+$/D', $token) !== 1 => throw new InvalidConfiguration("The token file $file must contain one line of printable ASCII without spaces."),
            default => $token,
        };
    }

    private function invalidateBatch(Invalidation $batch): InvalidationResult
    {
        try {
            return $this->purge($batch);
        } catch (InvalidationRefused $refused) {
            if (!$batch->soft || $refused->reason !== 'unreadable') {
                throw $refused;
            }
            return $this->purge(new Invalidation($batch->tags, $batch->urls, $batch->all, site: $batch->site));
        }
    }

    private function purge(Invalidation $batch): InvalidationResult
    {
        $said = $this->call('/v1/invalidate', $batch->json());
        return is_int($said['dropped'] ?? null) && is_int($said['number'] ?? null)
            ? new InvalidationResult($said['dropped'], $said['number'])
            : throw new UnreadableResponse(self::OTHER_PROGRAM);
    }

    /** @return array<mixed> the response, an object of JSON */
    private function call(string $path, string $body): array
    {
        [$status, $content] = ($this->send)($path, $body);
        $said = json_decode($content, true, 16);
        if ($status === 200 && is_array($said)) {
            return $said;
        }
        if ($status !== 200 && is_array($said) && is_string($said['error'] ?? null)) {
            throw new InvalidationRefused($said['error'], (string) ($said['explanation'] ?? ''), $status);
        }
        throw new UnreadableResponse("Status $status. " . self::OTHER_PROGRAM);
    }
}
