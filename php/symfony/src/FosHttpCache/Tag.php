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
 */

declare(strict_types=1);

namespace Pagewell\Symfony\FosHttpCache;

use Symfony\Component\ExpressionLanguage\ExpressionLanguage;

/** Tags of a controller. */
#[\Attribute(\Attribute::IS_REPEATABLE | \Attribute::TARGET_CLASS | \Attribute::TARGET_METHOD)]
final class Tag
{
    /** @var list<string> */
    private readonly array $tags;

    /**
     * @param string|list<string>|array{tags?: list<string>, expression?: string} $data       tags
     * @param string|\Stringable|null                                             $expression returns one more tag
     */
    public function __construct(string|array $data = [], private readonly string|\Stringable|null $expression = null)
    {
        $this->tags = array_values(array_filter((array) $data, is_string(...)));
    }

    /**
     * Returns the tags of a controller, of its class and its method.
     *
     * @param array<string, mixed> $values for expressions
     *
     * @return list<string>
     *
     * @throws \LogicException there is an expression, and symfony/expression-language is missing
     */
    public static function of(callable $controller, array $values): array
    {
        $attributes = [];
        foreach (self::reflections($controller) as $reflection) {
            array_push($attributes, ...$reflection->getAttributes(self::class));
        }
        $tags = [];
        foreach ($attributes as $attribute) {
            array_push($tags, ...$attribute->newInstance()->evaluated($values));
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
     * @param array<string, mixed> $values
     *
     * @return list<string>
     */
    private function evaluated(array $values): array
    {
        if ($this->expression === null) {
            return $this->tags;
        }
        if (!class_exists(ExpressionLanguage::class)) {
            throw new \LogicException("#[Tag(expression: \"$this->expression\")] needs symfony/expression-language: composer require symfony/expression-language.");
        }
        return [...$this->tags, (string) (new ExpressionLanguage())->evaluate((string) $this->expression, $values)];
    }
}
