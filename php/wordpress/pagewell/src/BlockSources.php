<?php

/**
 * From the lists of pages and the blocks that WordPress renders to what the page is made from.
 *
 * get_pages() asks the database past WP_Query, and does not say what for. Where only titles and
 * addresses are shown (wp_list_pages(), the block core/page-list) that is known beforehand. Each function
 * returns its first argument: their hooks (Sources) are filters.
 */

declare(strict_types=1);

namespace Pagewell\WordPress;

/** What lists of pages and blocks show. */
final class BlockSources
{
    private static bool $titlesFollow = false;

    /** A list of pages follows, of which only titles and addresses are shown. */
    public static function titlesFollow(mixed $excluded): mixed
    {
        self::$titlesFollow = true;
        return $excluded;
    }

    /** A type of block is made known. The navigation renders its lists of pages without a hook before them. */
    public static function registered(mixed $block, mixed $name): mixed
    {
        $render = is_array($block) ? $block['render_callback'] ?? null : null;
        if ($name === 'core/page-list' && is_callable($render)) {
            $block['render_callback'] = static function (mixed ...$given) use ($render): mixed {
                self::$titlesFollow = true;
                return $render(...$given);
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
        $isWide = !empty($asked['meta_key']) || !empty($asked['meta_value']) || str_contains($order, 'modified');
        $titles = self::$titlesFollow && !$isWide && !str_contains($order, 'comment');
        self::$titlesFollow = false;
        // Which there are, and in which order, says nothing of their texts.
        Page::uses(($isWide ? 'every:' : 'names:') . $type, ...(str_contains($order, 'comment') ? ['comments'] : []));
        foreach ((array) $posts as $post) {
            $titles ? Page::usesName((int) ($post->ID ?? 0)) : Page::usesText((int) ($post->ID ?? 0));
        }
        return $posts;
    }

    /**
     * A block that several posts share is a post of its own; a link of a navigation is not there while its page
     * is not published; a calendar is not there while nothing is.
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
