<?php

/**
 * Dependencies on the lists of pages and the blocks that WordPress renders.
 *
 * get_pages() queries the database without WP_Query, for an unknown purpose. If only titles and
 * URLs are shown (wp_list_pages(), the block core/page-list), that is known in advance. Each
 * function returns its first argument, because its hook (Sources) is a filter.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Read;

/**
 * Records the data shown by lists of pages and by blocks.
 *
 * @internal
 */
final class BlockSources
{
    private static bool $titlesFollow = false;

    /** A list of pages follows that shows only titles and URLs. */
    public static function titlesFollow(mixed $excluded): mixed
    {
        self::$titlesFollow = true;
        return $excluded;
    }

    /** A type of block is registered. The navigation block renders its lists of pages without an earlier hook. */
    public static function registered(mixed $block, mixed $name): mixed
    {
        $render = is_array($block) ? $block['render_callback'] ?? null : null;
        if (is_callable($render)) {
            $block['render_callback'] = static function (mixed ...$given) use ($render, $name): mixed {
                self::$titlesFollow = self::$titlesFollow || $name === 'core/page-list';
                return Frames::within((string) $name, (array) ($given[0] ?? []), static fn (): mixed => $render(...$given));
            };
        }
        return $block;
    }

    /** @param mixed $posts of get_pages() */
    public static function pages(mixed $posts, mixed $asked): mixed
    {
        $asked = (array) $asked;
        $order = (string) ($asked['sort_column'] ?? '');
        $type = $asked['post_type'] ?? 'page';
        $isWide = !empty($asked['authors']) || !empty($asked['meta_key']) || !empty($asked['meta_value']) || str_contains($order, 'modified');
        $titles = (self::$titlesFollow || Frames::isOfBodyClass()) && !$isWide && !str_contains($order, 'comment');
        self::$titlesFollow = false;
        $parent = is_numeric($asked['parent'] ?? null) && empty($asked['include']) ? (int) $asked['parent'] : 0;
        // The members of the list and their order do not depend on their texts.
        Page::uses(match (true) {
            $isWide => "every:$type",
            $parent > 0 => "children:$parent",
            default => "names:$type",
        }, ...(str_contains($order, 'comment') ? ['comments'] : []));
        foreach ((array) $posts as $post) {
            $titles ? Page::usesName((int) ($post->ID ?? 0)) : Page::usesText((int) ($post->ID ?? 0));
        }
        return $posts;
    }

    /**
     * A reusable block is a post of its own. A navigation link is hidden while its page is not
     * published, and a calendar while there are no posts.
     */
    public static function block(mixed $content, mixed $block): mixed
    {
        $attributes = is_array($block) && is_array($block['attrs'] ?? null) ? $block['attrs'] : [];
        match ($block['blockName'] ?? '') {
            'core/block' => Page::usesText((int) ($attributes['ref'] ?? 0)),
            'core/navigation-link', 'core/navigation-submenu' => ($attributes['kind'] ?? '') === 'taxonomy' || Page::usesName((int) ($attributes['id'] ?? 0)),
            'core/calendar' => Page::uses('list:post'),
            default => null,
        };
        return $content;
    }
}
