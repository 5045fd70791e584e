<?php

/**
 * The changes of WordPressPagesTest on a site whose pages all have widgets: the classic ones, and those
 * that are blocks.
 */

declare(strict_types=1);

namespace Pagewell\Tests\WordPress;

use Pagewell\Tests\Support\RealWordPress;

final class WidgetPagesTest extends WordPressPagesTest
{
    protected const RATIO_MAX = 1.15;

    protected static function prepare(RealWordPress $blog): void
    {
        $widgets = [
            'recent-posts' => ['title' => '', 'number' => 5], 'recent-comments' => ['title' => '', 'number' => 5], 'archives' => ['title' => ''], 'categories' => ['title' => ''],
            'block' => ['content' => '<!-- wp:latest-posts {"postsToShow":3} /--><!-- wp:categories /--><!-- wp:tag-cloud /-->'],
        ];
        $places = [];
        foreach ($widgets as $name => $settings) {
            $places[] = "$name-2";
            $blog->command("update_option('widget_$name', [2 => " . var_export($settings, true) . ", '_multiwidget' => 1]);");
        }
        $blog->command('update_option("sidebars_widgets", ["wp_inactive_widgets" => [], "sidebar-1" => ' . var_export($places, true) . ', "array_version" => 3]);');
    }
}
