<?php

/**
 * Reads what controllers state: attributes, the interface MadeFrom, Symfony's routes.
 *
 * A controller is named `Class`, or `Class::method` where one class has several actions. Nothing is
 * made of a class but its reflection.
 */

declare(strict_types=1);

namespace Pagewell\Dependencies;

use Pagewell\FreshFor;
use Pagewell\MadeFrom;
use Pagewell\NotCached;
use Pagewell\Pages;
use Pagewell\Uses;
use Pagewell\Writes;

/** From code to statements. */
final class Reader
{
    /** What a controller states, its class's words included; nothing where there is no such class or method. */
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
     * The controllers that a class makes: itself where it states something as a whole, otherwise
     * each of its actions. One that states nothing anywhere is one that is not declared.
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
            // Of a class that speaks for itself, a method that says nothing is no action of its own.
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
        $stated = $class->implementsInterface(MadeFrom::class) ? array_values($class->getMethod('madeFrom')->invoke(null)) : [];
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

    /** @return list<string> the paths of attributes called Route, without loading what they belong to */
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
