<?php

/**
 * Which block or widget is being rendered, and with that what it shows of the posts that it lists.
 *
 * A block of WordPress that lists posts reads whole rows, and shows titles and URLs. The frames say so
 * for those whose code is known, as do callers on the stack for functions without a block. Whatever
 * else such a block shows (an excerpt, a picture) passes through the hooks of Sources.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Read;

use Pagewell\WordPress\Observer;
use Pagewell\WordPress\SitemapPages;

/**
 * The frames of the running request, the innermost last.
 *
 * @internal
 */
final class Frames
{
    /** Blocks and widgets that show titles, URLs, dates and authors of posts; with the attributes by which they show texts. */
    private const OF_TITLES = ['core/latest-posts' => 'displayPostContent', 'WP_Widget_Recent_Posts' => ''];

    /** Blocks and widgets that list terms; with the attribute by which they show the numbers of posts. */
    private const OF_TERMS = ['core/categories' => 'showPostCounts', 'WP_Widget_Categories' => 'count'];

    /** The loop of the latest posts since WordPress 7.1, from the hook `the_post` outwards. */
    private const LOOP_OF_TITLES = ['WP_Query::setup_postdata', 'WP_Query::the_post', 'render_block_core_latest_posts'];

    /** How far up the stack a caller is looked for. */
    private const CALLERS = 21;

    /** @var list<array{string, array<mixed>}> name, attributes */
    private static array $frames = [];

    /**
     * Renders a block.
     *
     * @param array<mixed> $attributes
     */
    public static function within(string $name, array $attributes, \Closure $render): mixed
    {
        self::$frames[] = [$name, $attributes];
        try {
            return Observer::pass($render);
        } finally {
            array_pop(self::$frames);
        }
    }

    /**
     * A classic widget is rendered in a frame of its own: filter `widget_display_callback`. Not those of
     * the_widget(), which prepares them after this filter.
     */
    public static function widget(mixed $instance, mixed $widget, mixed $arguments): mixed
    {
        if (!is_array($instance) || !$widget instanceof \WP_Widget || !isset((self::OF_TITLES + self::OF_TERMS)[$widget::class]) || $widget->is_preview() || self::isIn('the_widget')) {
            return $instance;
        }
        self::within($widget::class, $instance, static fn () => $widget->widget((array) $arguments, $instance));
        // It is rendered.
        return false;
    }

    /** The innermost block or widget; `page` outside of them. */
    public static function name(): string
    {
        return (string) preg_replace('~[^A-Za-z0-9_/-]~', '', (end(self::$frames) ?: ['page'])[0]);
    }

    /** Whether the posts of a query are shown by title and URL only. */
    public static function isOfTitles(): bool
    {
        [$name, $attributes] = end(self::$frames) ?: ['', []];
        return isset(self::OF_TITLES[$name]) && empty($attributes[self::OF_TITLES[$name]]);
    }

    /**
     * Whether a loop runs in which posts are shown by title and URL only: hook `the_post`, and hooks of functions
     * that it calls.
     */
    public static function isLoopOfTitles(string ...$first): bool
    {
        return self::isOfTitles() && self::after(...$first, ...self::LOOP_OF_TITLES) !== [];
    }

    /** Whether a list of terms may show how many posts they have. */
    public static function hasNumbers(): bool
    {
        [$name, $attributes] = end(self::$frames) ?: ['', []];
        $isOfUrls = SitemapPages::name() !== '';
        return !$isOfUrls && !(isset(self::OF_TERMS[$name]) && empty($attributes[self::OF_TERMS[$name]]));
    }

    /** Whether WordPress asks which classes the body has: whether a page has children. */
    public static function isOfBodyClass(): bool
    {
        return self::isIn('get_body_class');
    }

    /** Whether this function or method (`Class::method`) is running. */
    public static function isIn(string $caller): bool
    {
        return in_array($caller, self::callers(), true);
    }

    /**
     * Returns the callers of the running hook after these, or none if others have called it. So code of a
     * plugin that runs within a function of WordPress does not count as that function.
     *
     * @return list<string>
     */
    public static function after(string ...$first): array
    {
        $callers = self::callers();
        foreach ($callers as $at => $caller) {
            if (preg_match('/^(apply_filters|do_action)(_ref_array)?$/', $caller) === 1) {
                return array_slice($callers, $at + 1, count($first)) === $first ? [...array_slice($callers, $at + 1 + count($first)), ''] : [];
            }
        }
        return [];
    }

    /** Whether WordPress loads the terms of posts into its object cache, and shows nothing yet: hooks `get_term`, `get_terms`. */
    public static function isInAdvance(): bool
    {
        return self::after('get_term', 'get_object_term_cache', 'wp_queue_posts_for_term_meta_lazyload') !== []
            || self::after('get_term', 'WP_Term_Query::populate_terms', 'WP_Term_Query::get_terms', 'WP_Term_Query::query', 'get_terms', 'wp_get_object_terms', 'update_object_term_cache') !== []
            || self::after('get_terms', 'wp_get_object_terms', 'update_object_term_cache') !== [];
    }

    /** Whether WordPress loads the sticky posts of the query for the front page: hook `posts_pre_query`. */
    public static function isOfSticky(): bool
    {
        return self::after('WP_Query::get_posts', 'WP_Query::query', 'get_posts', 'WP_Query::get_posts', 'WP_Query::query', 'WP::query_posts') !== [];
    }

    /** Whether a plugin listens to one of these hooks. */
    public static function isFiltered(string ...$hooks): bool
    {
        foreach ($hooks as $hook) {
            if (has_filter($hook) !== false) {
                return true;
            }
        }
        return false;
    }

    /**
     * The functions and methods (`Class::method`) on the stack, the innermost first.
     *
     * @return list<string>
     */
    public static function callers(): array
    {
        return array_map(static fn (array $frame): string => (isset($frame['class']) ? "$frame[class]::" : '') . $frame['function'], debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS, self::CALLERS));
    }
}
