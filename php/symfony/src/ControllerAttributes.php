<?php

/**
 * The attributes of one call of a controller, read before it runs: #[Uses], #[FreshFor], #[NotCached] and
 * FosHttpCache\Tag.
 *
 *     the main request                 read
 *     GET, HEAD                        all of them
 *     POST and other unsafe methods    the tags that a write changes; its response is never stored
 *
 * So a mistyped attribute is an error before anything is written. `{id}` is filled here, and the declaration is
 * made later (PageParts).
 */

declare(strict_types=1);

namespace Pagewell\Symfony;

use Pagewell\Configuration;
use Pagewell\Core\Response;
use Pagewell\Core\ResponseChannel;
use Pagewell\Dependencies\DependencyList;
use Pagewell\Dependencies\Statement;
use Pagewell\RequestScope;
use Pagewell\RowKey;
use Pagewell\Symfony\FosHttpCache\Tag;
use Symfony\Component\HttpKernel\Event\ControllerArgumentsEvent;

/**
 * The declarations of one controller, with the values of its request.
 *
 * @internal
 */
final class ControllerAttributes
{
    /**
     * @param list<string> $tags     on which the page depends
     * @param int|null     $freshFor seconds
     * @param bool         $isNotCached #[NotCached] or #[FreshFor(0)], or a tag of the page is unknown
     * @param list<string> $written  tags that have changed if the response has a status below 400
     * @param bool         $isUnknownWritten whether the write changes a tag that is unknown
     */
    private function __construct(
        public readonly array $tags = [],
        public readonly ?int $freshFor = null,
        public readonly bool $isNotCached = false,
        public readonly array $written = [],
        public readonly bool $isUnknownWritten = false,
    ) {
    }

    /**
     * Reads the attributes of a controller that is about to be called.
     *
     * @param bool $isPage whether the main request is a GET or HEAD
     *
     * @throws \Pagewell\Core\Exception\PagewellException an attribute is wrong
     */
    public static function of(ControllerArgumentsEvent $event, bool $isPage): self
    {
        [$controller, $request] = [$event->getController(), $event->getRequest()];
        $isRead = $request->isMethodSafe();
        if ($isRead && !$isPage) {
            return new self();
        }
        $name = match (true) {
            is_array($controller) => (is_object($controller[0]) ? $controller[0]::class : $controller[0]) . "::{$controller[1]}",
            is_object($controller) => $controller::class,
            default => $controller,
        };
        $parameters = self::parameters($controller(...), $event->getArguments(), $request->attributes->all());
        $statement = $isPage ? DependencyList::statement($name) : new Statement();
        $silent = [];
        $tags = Tag::of($controller, ['request' => $request] + $request->attributes->all() + $parameters, $silent);
        foreach ($silent as $expression) {
            $then = $isRead ? 'The page is not cached.' : 'If the write succeeds, every page is purged.';
            Configuration::log()->warn("pagewell: #[Tag(expression: \"$expression\")] of $name gave no tag. $then");
        }
        return new self(
            tags: [...self::names($statement, $parameters), ...($isRead ? $tags : [])],
            freshFor: $statement->notCached === null ? $statement->freshFor : null,
            isNotCached: $statement->notCached !== null || $statement->freshFor === 0 || ($isRead && $silent !== []),
            written: $isRead ? [] : $tags,
            isUnknownWritten: !$isRead && $silent !== [],
        );
    }

    /** Whether a page may be cached because of them. */
    public function isOffer(): bool
    {
        return $this->tags !== [] || $this->freshFor !== null;
    }

    /** Whether they say anything about a page. */
    public function isEmpty(): bool
    {
        return !$this->isOffer() && !$this->isNotCached;
    }

    /** Declares them for the page. */
    public function declare(RequestScope $scope): void
    {
        $this->isNotCached && $scope->notCached();
        $this->tags === [] || $scope->usesTags(...$this->tags);
        $this->freshFor === null || $scope->freshFor($this->freshFor);
    }

    /**
     * Returns the tags of #[Uses], without declaring them for the page.
     *
     * @param array<string, mixed> $parameters
     *
     * @return list<string>
     */
    private static function names(Statement $statement, array $parameters): array
    {
        if ($statement->uses === [] || $statement->notCached !== null) {
            return [];
        }
        $scope = new RequestScope(new class () implements ResponseChannel {
            public function method(): string
            {
                return 'GET';
            }

            public function capability(): string
            {
                return '';
            }

            public function isSent(): bool
            {
                return false;
            }

            public function response(): Response
            {
                return new Response();
            }

            public function set(array $lines, ?string $replace = null): void
            {
            }

            public function beforeSending(callable $then): void
            {
            }

            public function atEnd(callable $then): void
            {
            }
        });
        (new Statement(uses: $statement->uses))->apply($scope, $parameters);
        return $scope->tags();
    }

    /**
     * The values for `{name}` in the attributes of a controller. A row among the arguments precedes the text
     * of the URL that has its name: `{slug:news}` and `News $news`.
     *
     * @param array<mixed>         $arguments  of the controller, in order
     * @param array<string, mixed> $attributes of the request
     *
     * @return array<string, mixed>
     */
    private static function parameters(\Closure $controller, array $arguments, array $attributes): array
    {
        $names = array_map(static fn (\ReflectionParameter $one): string => $one->getName(), (new \ReflectionFunction($controller))->getParameters());
        $count = min(count($names), count($arguments));
        $named = $count === 0 ? [] : array_combine(array_slice($names, 0, $count), array_slice(array_values($arguments), 0, $count));
        $rows = array_filter($named, static fn (mixed $one): bool => is_object($one) && RowKey::isRow($one));
        return $rows + $attributes + $named;
    }
}
