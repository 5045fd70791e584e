<?php

/**
 * Reads the declarations of controllers: attributes, the interface HasDependencies, Symfony's routes.
 *
 * A controller is named `Class`, or `Class::method` if a class has several actions. No class is
 * instantiated.
 */

declare(strict_types=1);

namespace Pagewell\Dependencies;

use Pagewell\Attribute\FreshFor;
use Pagewell\Attribute\NotCached;
use Pagewell\Attribute\Pages;
use Pagewell\Attribute\Uses;
use Pagewell\Attribute\Writes;
use Pagewell\HasDependencies;

/**
 * Reads declarations from code.
 *
 * @internal
 */
final class Reader
{
    /**
     * Returns the declarations of a controller, including those of its class; empty if the class or
     * method does not exist.
     */
    public static function of(string $controller): Statement
    {
        [$class, $method] = explode('::', $controller, 2) + [1 => '__invoke'];
        if (!class_exists($class)) {
            return new Statement();
        }
        $reflection = new \ReflectionClass($class);
        $statement = self::ofClass($reflection);
        return $reflection->hasMethod($method) ? $statement->and(self::ofElement($reflection->getMethod($method))) : $statement;
    }

    /**
     * Returns the controllers in a class: the class itself if it has a declaration, otherwise each
     * of its actions. A class without any declaration is one undeclared controller.
     *
     * @param class-string $class
     *
     * @return array<string, Statement> by controller
     */
    public static function controllers(string $class): array
    {
        $reflection = new \ReflectionClass($class);
        if (!$reflection->isInstantiable() || $reflection->isEnum()) {
            return [];
        }
        $whole = self::ofClass($reflection);
        $actions = [];
        $stated = false;
        foreach ($reflection->getMethods(\ReflectionMethod::IS_PUBLIC) as $method) {
            if (!self::isAction($method, $class)) {
                continue;
            }
            $own = self::ofElement($method);
            $says = $own->isDeclared() || $own->pages !== [];
            $stated = $stated || $says;
            // In a class with a declaration, a method without one is not an action of its own.
            if ($says || !$whole->isDeclared()) {
                $prefix = $whole->pages[0] ?? '';
                $pages = array_map(static fn (string $page): string => self::joined($prefix, $page), $own->pages);
                $actions["$class::{$method->name}"] = $whole->and($own)->at(...($pages === [] ? $whole->pages : $pages));
            }
        }
        return $stated ? $actions : [$class => $whole];
    }

    private static function isAction(\ReflectionMethod $method, string $class): bool
    {
        return !$method->isStatic() && !$method->isAbstract() && $method->class === $class
            && ($method->name === '__invoke' || !str_starts_with($method->name, '__'));
    }

    private static function ofClass(\ReflectionClass $class): Statement
    {
        $statement = new Statement();
        for ($at = $class; $at !== false; $at = $at->getParentClass()) {
            $statement = self::ofElement($at)->and($statement);
        }
        $stated = $class->implementsInterface(HasDependencies::class) ? array_values($class->getMethod('dependencies')->invoke(null)) : [];
        return $statement->and(new Statement($stated));
    }

    private static function ofElement(\ReflectionClass|\ReflectionMethod $element): Statement
    {
        $all = static fn (string $attribute): array => array_map(static fn (\ReflectionAttribute $found): object => $found->newInstance(), $element->getAttributes($attribute));
        $names = static fn (array $stated): array => array_merge([], ...array_map(static fn (Uses|Writes $one): array => $one->names, $stated));
        return new Statement(
            $names($all(Uses::class)),
            $names($all(Writes::class)),
            ($all(FreshFor::class)[0] ?? null)?->seconds,
            ($all(NotCached::class)[0] ?? null)?->why,
            [...($all(Pages::class)[0] ?? new Pages())->addresses, ...self::routes($element)],
        );
    }

    /** @return list<string> the paths of attributes named Route, without loading their classes */
    private static function routes(\ReflectionClass|\ReflectionMethod $element): array
    {
        $pages = [];
        foreach ($element->getAttributes() as $attribute) {
            if (str_ends_with($attribute->getName(), '\Route')) {
                $path = $attribute->getArguments()['path'] ?? $attribute->getArguments()[0] ?? [];
                array_push($pages, ...array_values((array) $path));
            }
        }
        return $pages;
    }

    private static function joined(string $prefix, string $page): string
    {
        return $prefix === '' ? $page : rtrim($prefix, '/') . '/' . ltrim($page, '/');
    }
}
