<?php

/**
 * The handlers of the MediaWiki extension: whatever fails in one of them, visitors get the page, and it is not stored.
 */

declare(strict_types=1);

namespace Pagewell\Tests\MediaWiki;

use Pagewell\Tests\Support\RealMediaWiki;
use PHPUnit\Framework\TestCase;

final class MediaWikiObserverTest extends TestCase
{
    private const EXTENSION = __DIR__ . '/../../mediawiki/Pagewell';

    /** The extension's class with handlers that fail, and a call of one of them within each page, as of a hook of MediaWiki. */
    private const FAILING = 'spl_autoload_register( static function ( $class ) { if ( $class === "Pagewell\\\\MediaWiki\\\\Observer" ) {'
        . ' $code = str_replace( \'$this->handlers->$handler(...$arguments)\', \'$handler === $GLOBALS["failing"] ? throw new \Error("in a test") : $this->handlers->$handler(...$arguments)\', file_get_contents( "%s/src/Observer.php" ), $count );'
        . ' $count === 1 || exit( "the class is another one" ); eval( substr( $code, 5 ) ); } }, true, true );'
        . ' $wgHooks["BeforePageDisplay"][] = static function () { Pagewell\MediaWiki\Observer::{"of%s"}()->{$GLOBALS["failing"]}( null, null, null, null, null, null, null, null ); };';

    public function testAHandlerThatFailsEndsNoPage(): void
    {
        $extension = json_decode((string) file_get_contents(self::EXTENSION . '/extension.json'), true);
        $factories = ['reads' => 'Reads', 'api' => 'Api', 'parsed' => 'Parser', 'files' => 'Files', 'pages' => 'Pages', 'site' => 'Site'];
        self::assertSame(array_keys($factories), array_keys($extension['HookHandlers']));
        $wiki = RealMediaWiki::start();
        try {
            $wiki->edit('Ferry', 'The ferry to [[the island]] {{ROOTPAGENAME}}');
            [, $fields] = $wiki->plain('/index.php/Ferry', 'Via: 1.1 pagewell');
            self::assertArrayNotHasKey('x-pagewell-refusal', $fields, 'it is stored if nothing fails');
            self::assertGreaterThan(30, count($extension['Hooks']));
            foreach ($extension['Hooks'] as $hook => $handlers) {
                foreach ((array) $handlers as $handler) {
                    $method = 'on' . strtr(ucfirst($hook), ':-', '__');
                    $wiki->set("\$GLOBALS['failing'] = '$method'; " . sprintf(self::FAILING, realpath(self::EXTENSION), $factories[$handler]));
                    [$content, $fields] = $wiki->plain('/index.php/Ferry', 'Via: 1.1 pagewell');
                    self::assertStringContainsString('The ferry to', $content, "$hook: $handler");
                    self::assertStringContainsString('</html>', $content, "$hook: $handler");
                    self::assertSame(['unobserved'], $fields['x-pagewell-refusal'] ?? [], "$hook: $handler");
                }
            }
        } finally {
            $wiki->stop();
        }
    }
}
