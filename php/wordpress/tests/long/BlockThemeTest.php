<?php

/**
 * A site with a block theme, changed as the site editor does, by the REST API: after each change every
 * page is the same as WordPress renders it at that moment.
 */

declare(strict_types=1);

namespace Pagewell\Tests\WordPress;

use Pagewell\Tests\Support\BlogPages;
use Pagewell\Tests\Support\PageComparison;
use Pagewell\Tests\Support\RealPagewell;
use Pagewell\Tests\Support\RealWordPress;
use Pagewell\Tests\Support\WordPressEditor;
use PHPUnit\Framework\TestCase;

final class BlockThemeTest extends TestCase
{
    private const THEME = 'twentytwentythree';

    private const PAGES = [
        '/', '/feed/', '/ferry/', '/gull/', '/tern/', '/about/', '/pattern/', '/nested/', '/loop/', '/loop/?query-1-page=2', '/lightbox/', '/find/', '/menu/', '/category/ships/', '/author/ada/', '/2026/03/', '/?s=ferry',
        '/missing/', '/robots.txt', '/wp-sitemap.xml', '/wp-sitemap-posts-post-1.xml', '/wp-sitemap-posts-page-1.xml', '/wp-sitemap-users-1.xml', '/wp-json/wp/v2/posts?_embed', '/wp-json/wp/v2/pages', '/wp-json/wp/v2/types',
    ];

    /** Pages with blocks that the site editor offers. */
    private const CONTENTS = [
        'nested' => '<!-- wp:group --><div class="wp-block-group"><!-- wp:block {"ref":PATTERN} /--></div><!-- /wp:group -->',
        'pattern' => '<!-- wp:block {"ref":PATTERN} /-->',
        'loop' => '<!-- wp:query {"queryId":1,"query":{"perPage":2,"postType":"post","order":"desc","orderBy":"date","inherit":false},"enhancedPagination":true} --><div class="wp-block-query"><!-- wp:post-template --><!-- wp:post-title {"isLink":true} /--><!-- wp:post-excerpt /--><!-- wp:post-terms {"term":"category"} /--><!-- /wp:post-template --><!-- wp:query-pagination --><!-- wp:query-pagination-next /--><!-- /wp:query-pagination --></div><!-- /wp:query -->',
        'lightbox' => '<!-- wp:image {"lightbox":{"enabled":true}} --><figure class="wp-block-image"><img src="http://blog.test/quay.png" alt=""/></figure><!-- /wp:image -->',
        'find' => '<!-- wp:search {"label":"Find","buttonPosition":"button-only","isSearchFieldHidden":true} /-->',
        'menu' => '<!-- wp:navigation {"ref":NAVIGATION,"overlayMenu":"always"} /-->',
    ];

    private static ?RealWordPress $blog = null;

    private static ?RealPagewell $pagewell = null;

    private static WordPressEditor $editor;

    private static PageComparison $comparison;

    public static function setUpBeforeClass(): void
    {
        self::$blog = RealWordPress::settled();
        self::$blog->command('switch_theme("' . self::THEME . '"); delete_option("theme_switched");');
        self::$blog->command('flush_rewrite_rules();');
        self::$pagewell = self::$blog->behind();
        self::$editor = new WordPressEditor(self::$pagewell);
        $pattern = self::$editor->rest('POST', 'wp/v2/blocks', ['title' => 'Notice', 'content' => '<!-- wp:paragraph --><p>Low tide.</p><!-- /wp:paragraph -->', 'status' => 'publish'])['id'];
        $navigation = self::$editor->rest('POST', 'wp/v2/navigation', ['title' => 'Main', 'content' => '<!-- wp:navigation-link {"label":"About","type":"page","kind":"post-type","id":9,"url":"http://blog.test/about/"} /-->', 'status' => 'publish'])['id'];
        foreach (self::CONTENTS as $name => $content) {
            $content = strtr($content, ['PATTERN' => $pattern, 'NAVIGATION' => $navigation]);
            self::$editor->rest('POST', 'wp/v2/pages', ['title' => $name, 'slug' => $name, 'content' => $content, 'status' => 'publish', 'comment_status' => 'closed']);
        }
        self::$comparison = new PageComparison(new BlogPages(self::$pagewell), self::PAGES);
    }

    public static function tearDownAfterClass(): void
    {
        self::$pagewell?->stop();
        self::$blog?->stop();
        self::$pagewell = self::$blog = null;
    }

    public function testAfterEachChangeOfTheSiteEditorAllPagesAreAsWordPressMakesThem(): void
    {
        foreach ($this->changes() as $happens => [$change, $isSeen]) {
            $changed = count(self::$comparison->changed);
            $change();
            self::$comparison->after($happens);
            self::assertSame($isSeen, count(self::$comparison->changed) > $changed, "$happens: " . implode(', ', array_slice(self::$comparison->changed, $changed)));
        }
        self::assertSame([[], []], [self::$comparison->old, self::$comparison->unstored], 'no page is old, and all are stored');
        getenv('SHOW') && fwrite(STDERR, self::$comparison->report());
    }

    public function testAPatternPurgesThePagesThatShowIt(): void
    {
        $purged = count(self::$comparison->purged);
        $this->change('blocks', 'notice', ['content' => '<!-- wp:paragraph --><p>Ebb tide.</p><!-- /wp:paragraph -->']);
        self::$comparison->after('a pattern again');
        self::assertSame(['/pattern/ after: a pattern again', '/nested/ after: a pattern again', '/wp-json/wp/v2/pages after: a pattern again'], array_slice(self::$comparison->purged, $purged));
    }

    /** @return array<string, array{\Closure, bool}> the change, and whether any page shows it */
    private function changes(): array
    {
        $editor = self::$editor;
        $theme = self::THEME;
        $text = static fn (string $words): string => "<!-- wp:paragraph --><p>$words</p><!-- /wp:paragraph -->";
        $template = static fn (string $words): array => ['content' => '<!-- wp:template-part {"slug":"header","theme":"' . $theme . '"} /-->' . $text($words) . '<!-- wp:post-title /--><!-- wp:post-content /-->'];
        $styles = static fn (): int => (int) self::$blog->command('wp_set_current_user(1); echo WP_Theme_JSON_Resolver::get_user_global_styles_post_id();');
        return [
            'the template of posts is another one' => [static fn () => $editor->rest('POST', "wp/v2/templates/$theme//single", $template('Of a post')), true],
            'and again' => [static fn () => $editor->rest('POST', "wp/v2/templates/$theme//single", $template('Of one post')), true],
            'a template for one page is new' => [static fn () => $editor->rest('POST', 'wp/v2/templates', ['slug' => 'page-about', 'theme' => $theme, 'title' => 'About', 'status' => 'publish', ...$template('Of us only')]), true],
            'the header is another one' => [static fn () => $editor->rest('POST', "wp/v2/template-parts/$theme//header", ['content' => $text('Head') . '<!-- wp:site-title /--><!-- wp:navigation /-->']), true],
            'the template of posts is the theme\'s again' => [static fn () => $editor->rest('DELETE', "wp/v2/templates/$theme//single?force=true"), true],
            'the styles are others' => [static fn () => $editor->rest('POST', 'wp/v2/global-styles/' . $styles(), ['styles' => ['color' => ['background' => '#123456']]]), true],
            'styles with CSS' => [static fn () => $editor->rest('POST', 'wp/v2/global-styles/' . $styles(), ['styles' => ['css' => '.a { color: red; }', 'color' => ['text' => '#654321']]]), true],
            'a synced pattern is another one' => [fn () => $this->change('blocks', 'notice', ['content' => $text('High tide.')]), true],
            'a synced pattern is a draft' => [fn () => $this->change('blocks', 'notice', ['status' => 'draft']), true],
            'and is published' => [fn () => $this->change('blocks', 'notice', ['status' => 'publish']), true],
            'an unused pattern is new' => [static fn () => $editor->rest('POST', 'wp/v2/blocks', ['title' => 'Unused', 'content' => $text('No one sees it'), 'status' => 'publish']), false],
            'the navigation has another link' => [fn () => $this->change('navigation', 'main', ['content' => '<!-- wp:navigation-link {"label":"Ferry","type":"post","kind":"post-type","id":4,"url":"http://blog.test/ferry/"} /--><!-- wp:page-list /-->']), true],
            'a page that the navigation lists has another title' => [fn () => $this->change('pages', 'find', ['title' => 'Search']), true],
            'a post of a query loop is new' => [static fn () => $editor->rest('POST', 'wp/v2/posts', ['title' => 'Lamp', 'slug' => 'lamp', 'content' => 'Lit.', 'status' => 'publish']), true],
            'and has another text' => [fn () => $this->change('posts', 'lamp', ['content' => 'Not lit.']), true],
            'and goes' => [fn () => $this->change('posts', 'lamp', ['status' => 'draft']), true],
            'a newer navigation replaces the fallback' => [static fn () => $editor->rest('POST', 'wp/v2/navigation', ['title' => 'Other', 'content' => '<!-- wp:navigation-link {"label":"Other","url":"http://other.test/"} /-->', 'status' => 'publish']), true],
            'the site has another title' => [static fn () => $editor->rest('POST', 'wp/v2/settings', ['title' => 'The Quay']), true],
            'posts are on another page' => [static fn () => $editor->rest('POST', 'wp/v2/settings', ['show_on_front' => 'page', 'page_on_front' => 9]), true],
            'and on the front page' => [static fn () => $editor->rest('POST', 'wp/v2/settings', ['show_on_front' => 'posts']), true],
            'search engines shall not come' => [static fn () => self::$blog->command('update_option("blog_public", "0");'), true],
            'and may' => [static fn () => self::$blog->command('update_option("blog_public", "1");'), true],
        ];
    }

    /**
     * Changes the post with this name by the REST API.
     *
     * @param array<string, mixed> $what
     */
    private function change(string $route, string $name, array $what): void
    {
        $id = (int) self::$blog->rows("SELECT ID FROM wp_posts WHERE post_name = '$name' AND post_status <> 'trash' AND post_type NOT IN ('revision', 'nav_menu_item') ORDER BY ID LIMIT 1")[0];
        self::$editor->rest('POST', "wp/v2/$route/$id", $what);
    }
}
