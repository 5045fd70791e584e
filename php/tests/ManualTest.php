<?php

/**
 * The PHP examples in the manuals can be copied: they parse, and import their names.
 */

declare(strict_types=1);

namespace Pagewell\Tests;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

final class ManualTest extends TestCase
{
    private const ROOT = __DIR__ . '/../..';

    private const FUNCTIONS = ['uses', 'usesList', 'usesOf', 'freshFor', 'fragment', 'changed', 'changedSoftly', 'changedNow', 'changedTags', 'usesTags', 'notCached', 'invalidate', 'transaction'];

    private const CLASSES = ['Uses', 'FreshFor', 'NotCached', 'Writes', 'Pages', 'RequestScope', 'SocketClient', 'ChangeDelivery', 'CollectingChannel', 'MemcachedPage', 'PagewellMiddleware', 'PagewellBundle'];

    /** @dataProvider pages */
    #[DataProvider('pages')]
    public function testItParsesAndEachNameIsImportedOnThePage(string $page): void
    {
        [$imported, $used] = [[], []];
        foreach (self::snippets($page) as $snippet) {
            $imported += self::imported($snippet);
            $used += self::used($snippet);
        }
        self::assertSame([], array_keys(array_diff_key($used, $imported)), "$page uses what it does not import");
    }

    /** @dataProvider pages */
    #[DataProvider('pages')]
    public function testWhatItImportsExists(string $page): void
    {
        preg_match_all('/^use (function )?(Pagewell\\\\[\w\\\\]*?)(?:(\w+)|\{([\w, ]+)\});/m', (string) file_get_contents(self::ROOT . "/$page"), $found, PREG_SET_ORDER);
        $missing = [];
        foreach ($found as $use) {
            foreach (preg_split('/[, ]+/', ($use[3] ?? '') . ($use[4] ?? '')) ?: [] as $name) {
                $full = $use[2] . $name;
                $exists = $use[1] === '' ? class_exists($full) || interface_exists($full) || trait_exists($full) || enum_exists($full) : function_exists($full);
                $missing = [...$missing, ...($exists ? [] : [$full])];
            }
        }
        self::assertSame([], $missing, "$page imports what the library does not have");
    }

    /** @return iterable<string, array{string}> */
    public static function pages(): iterable
    {
        foreach (['docs/guide/*.md', 'php/*/README.md', 'php/wordpress/pagewell/*.md'] as $pattern) {
            foreach (glob(self::ROOT . "/$pattern") ?: [] as $file) {
                if (str_contains((string) file_get_contents($file), "```php\n")) {
                    yield substr($file, strlen(self::ROOT) + 1) => [substr($file, strlen(self::ROOT) + 1)];
                }
            }
        }
    }

    /** @return list<list<\PhpToken>> */
    private static function snippets(string $page): array
    {
        preg_match_all('/```php\n(.*?)```/s', (string) file_get_contents(self::ROOT . "/$page"), $found);
        return array_map(static function (string $text): array {
            $text = strtr($text, ['…' => '']);
            return \PhpToken::tokenize(str_starts_with($text, '<?php') ? $text : "<?php\n$text", TOKEN_PARSE);
        }, $found[1]);
    }

    /**
     * @param list<\PhpToken> $tokens
     *
     * @return array<string, true> names after `use`
     */
    private static function imported(array $tokens): array
    {
        preg_match_all('/^use (?:function )?Pagewell\\\\(?:\w+\\\\)*(?:(\w+)|\{([\w, ]+)\});/m', implode('', $tokens), $found);
        return array_fill_keys(array_filter(preg_split('/[, ]+/', implode(',', [...$found[1], ...$found[2]])) ?: []), true);
    }

    /**
     * @param list<\PhpToken> $tokens
     *
     * @return array<string, true> the library's names that stand alone
     */
    private static function used(array $tokens): array
    {
        $tokens = array_values(array_filter($tokens, static fn (\PhpToken $token): bool => !$token->isIgnorable()));
        $used = [];
        foreach ($tokens as $at => $token) {
            $member = $at > 0 && $tokens[$at - 1]->is([T_OBJECT_OPERATOR, T_DOUBLE_COLON, T_FUNCTION]);
            $called = ($tokens[$at + 1] ?? null)?->text === '(';
            if ($token->is(T_STRING) && !$member && (in_array($token->text, self::CLASSES, true) || $called && in_array($token->text, self::FUNCTIONS, true))) {
                $used[$token->text] = true;
            }
        }
        // Where they are imported they do not count as used.
        return array_diff_key($used, self::imported($tokens));
    }
}
