<?php

/**
 * The attribute of FOSHttpCacheBundle, for its users: only the `use` line changes.
 *
 *     use FOS\HttpCacheBundle\Configuration\Tag;      before
 *     use Pagewell\Symfony\FosHttpCache\Tag;          after
 *
 *     #[Tag('news')]                                  these tags
 *     #[Tag(['news', 'menu'])]
 *     #[Tag(expression: "'news-' ~ id")]              needs symfony/expression-language; names are the
 *                                                     attributes of the request, and `request`
 *
 * In answer to a GET or HEAD, the page depends on the tags. Otherwise they have changed, if the status is
 * below 400. New code uses Pagewell\Attribute\Uses and changed().
 *
 * An empty tag is an error before the controller runs. An expression that gives no text leaves the tag unknown: the
 * page is not cached, and a write purges every page. The log has a line.
 */

declare(strict_types=1);

namespace Pagewell\Symfony\FosHttpCache;

use Pagewell\Core\Exception\InvalidTag;
use Symfony\Component\ExpressionLanguage\ExpressionLanguage;

/** Tags of a controller. */
#[\Attribute(\Attribute::IS_REPEATABLE | \Attribute::TARGET_CLASS | \Attribute::TARGET_METHOD)]
final class Tag
{
    /** @var list<string> */
    private readonly array $tags;

    private readonly ?string $expression;

    /**
     * @param string|list<string>|array{tags?: string|list<string>, expression?: string} $data       tags
     * @param string|\Stringable|null                                                    $expression returns one more tag
     *
     * @throws InvalidTag a tag is empty, or no text
     */
    public function __construct(string|array $data = [], string|\Stringable|null $expression = null)
    {
        $isNamed = is_array($data) && !array_is_list($data);
        $expression ??= $isNamed ? $data['expression'] ?? null : null;
        $this->expression = $expression === null ? null : (string) $expression;
        $tags = array_values((array) ($isNamed ? $data['tags'] ?? [] : $data));
        foreach ($tags as $tag) {
            if (!is_string($tag) || $tag === '') {
                throw new InvalidTag('#[Tag] has ' . ($tag === '' ? 'an empty tag' : get_debug_type($tag) . ' among its tags') . ': write a text.');
            }
        }
        $this->tags = $tags;
    }

    /**
     * Returns the tags of a controller, of its class and its method.
     *
     * @param array<string, mixed> $values for expressions
     * @param list<string>         $silent receives the expressions that gave no tag
     *
     * @return list<string>
     *
     * @throws InvalidTag      an attribute has an empty tag
     * @throws \LogicException there is an expression, and symfony/expression-language is missing
     */
    public static function of(callable $controller, array $values, array &$silent = []): array
    {
        $attributes = [];
        foreach (self::reflections($controller) as $reflection) {
            array_push($attributes, ...$reflection->getAttributes(self::class));
        }
        $tags = [];
        foreach ($attributes as $attribute) {
            $one = $attribute->newInstance();
            array_push($tags, ...$one->tags);
            $tag = $one->expression === null ? null : self::evaluated($one->expression, $values);
            if ($tag === '') {
                $silent[] = (string) $one->expression;
            } elseif ($tag !== null) {
                $tags[] = $tag;
            }
        }
        return array_values(array_unique($tags));
    }

    /** @return list<\ReflectionClass<object>|\ReflectionMethod> none for a function */
    private static function reflections(callable $controller): array
    {
        if ($controller instanceof \Closure || (is_string($controller) && !str_contains($controller, '::'))) {
            return [];
        }
        [$class, $method] = is_array($controller) ? $controller : (is_object($controller) ? [$controller, '__invoke'] : explode('::', $controller));
        return [new \ReflectionClass($class), ...(method_exists($class, $method) ? [new \ReflectionMethod($class, $method)] : [])];
    }

    /**
     * Returns the tag of an expression; empty if it gave no text and no number.
     *
     * @param array<string, mixed> $values
     */
    private static function evaluated(string $expression, array $values): string
    {
        if (!class_exists(ExpressionLanguage::class)) {
            throw new \LogicException("#[Tag(expression: \"$expression\")] needs symfony/expression-language: composer require symfony/expression-language.");
        }
        $value = (new ExpressionLanguage())->evaluate($expression, $values);
        return is_string($value) || is_int($value) || $value instanceof \Stringable ? (string) $value : '';
    }
}
