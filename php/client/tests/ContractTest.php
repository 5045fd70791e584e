<?php

/**
 * The vectors that Pagewell's reader of these fields checks too: contract/php-headers.json.
 *
 * Each is run twice: through the plain objects, and through the functions on a recorded channel.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Client;

use Pagewell\Core\Changes;
use Pagewell\Core\Declaration;
use Pagewell\Core\Response;
use Pagewell\Testing\RecordingChannel;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

final class ContractTest extends TestCase
{
    /** @return iterable<string, array{array<string, mixed>}> */
    public static function vectors(): iterable
    {
        $text = file_get_contents(__DIR__ . '/../../../contract/php-headers.json');
        foreach (json_decode((string) $text, true, 32, JSON_THROW_ON_ERROR)['vectors'] as $vector) {
            yield $vector['name'] => [$vector];
        }
    }

    /**
     * @dataProvider vectors
     *
     * @param array<string, mixed> $vector
     */
    #[DataProvider('vectors')]
    public function testTheObjectsMakeExactlyTheseLines(array $vector): void
    {
        $declaration = new Declaration();
        $changes = new Changes();
        foreach ($vector['calls'] as $call) {
            [$word, $arguments, $named] = $call + [2 => []];
            (str_starts_with($word, 'changed') ? $changes : $declaration)->$word(...$arguments, ...$named);
        }
        $response = new Response(
            method: $vector['request']['method'],
            status: $vector['response']['status'] ?? 200,
            lines: $vector['response']['lines'] ?? [],
            session: $vector['response']['session'] ?? false,
        );

        self::assertSame($vector['lines'], [...$declaration->lines($response), ...$changes->lines()]);
        self::assertSame($vector['refused'] ?? null, $declaration->refusal($response)?->value);
        self::assertSame($vector['invalidated'] ?? [], $changes->tags());
        if (!isset($vector['refused'])) {
            self::assertSame($vector['tags'] ?? [], $declaration->tags());
        }
    }

    /**
     * @dataProvider vectors
     *
     * @param array<string, mixed> $vector
     */
    #[DataProvider('vectors')]
    public function testTheFunctionsSendExactlyTheseLines(array $vector): void
    {
        $channel = RecordingChannel::install(
            $vector['request']['method'],
            $vector['response']['status'] ?? 200,
            $vector['response']['session'] ?? false,
        );
        $own = $vector['response']['lines'] ?? [];
        $channel->set($own);
        foreach ($vector['calls'] as $call) {
            [$word, $arguments, $named] = $call + [2 => []];
            ('Pagewell\\' . $word)(...$arguments, ...$named);
        }
        $channel->send();

        $isExplained = $vector['request']['method'] === 'GET' && !in_array($vector['refused'] ?? null, [null, 'nothing-declared', 'failed', 'cache-control'], true);
        $explanation = $isExplained ? ["X-Pagewell-Refusal: {$vector['refused']}"] : [];
        self::assertSame([...$own, ...$vector['lines'], ...$explanation], $channel->lines());
    }
}
