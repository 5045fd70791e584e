<?php

/**
 * The purger for Drupal's module Purge, with stand-ins for what it asks of Purge.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Drupal;

use Drupal\pagewell\Plugin\Purge\Purger\PagewellPurger;
use Drupal\purge\Plugin\Purge\Invalidation\Invalidation;
use Drupal\purge\Plugin\Purge\Invalidation\InvStatesInterface;
use Pagewell\Configuration;
use Pagewell\Core\Exception\InvalidationRefused;
use Pagewell\Core\Exception\PagewellUnreachable;
use Pagewell\Core\InvalidationClient;
use Pagewell\Core\InvalidationResult;
use Pagewell\RequestScope;
use Pagewell\Testing\RecordingClient;
use PHPUnit\Framework\TestCase;

final class DrupalPurgeTest extends TestCase
{
    private const PURGER = __DIR__ . '/../../drupal/pagewell/src/Plugin/Purge/Purger/PagewellPurger.php';

    /** @var list<string> */
    private array $log = [];

    public static function setUpBeforeClass(): void
    {
        require_once __DIR__ . '/../../tests/stand-ins/drupal-purge.php';
        require_once self::PURGER;
    }

    protected function tearDown(): void
    {
        Configuration::reset();
        RequestScope::begin();
    }

    public function testOneCallForAllThatIsOffered(): void
    {
        $client = new RecordingClient();
        $offered = [new Invalidation('tag', 'node:4'), new Invalidation('url', 'https://blog.test/a?b=1'), new Invalidation('path', 'news/1'), new Invalidation('path', ''), new Invalidation('tag', 'Malmö')];
        $this->purge($client, $offered);
        self::assertCount(1, $client->calls());
        self::assertSame(['node:4', 'Malm%C3%B6'], $client->calls()[0]->tags);
        self::assertSame(['https://blog.test/a?b=1', '/news/1', '/'], $client->calls()[0]->urls);
        self::assertFalse($client->calls()[0]->all);
        self::assertSame([InvStatesInterface::SUCCEEDED], self::states($offered));
        $this->purge($client, [new Invalidation('everything')]);
        self::assertTrue($client->calls()[1]->all);
        $url = new class () {
            public function toString(): string
            {
                return 'https://blog.test/b';
            }
        };
        $this->purge($client, [new Invalidation('url', $url)]);
        self::assertSame(['https://blog.test/b'], $client->calls()[2]->urls);
        $GLOBALS['base_path'] = '/below/';
        $this->purge($client, [new Invalidation('path', 'news/1')]);
        unset($GLOBALS['base_path']);
        self::assertSame(['/below/news/1'], $client->calls()[3]->urls);
        self::assertSame([], $this->log);
    }

    public function testWhatCannotBeSentIsTriedAgain(): void
    {
        $client = new RecordingClient();
        $client->fail(new PagewellUnreachable('Pagewell is not at 127.0.0.1:1.'));
        $offered = [new Invalidation('tag', 'node:4'), new Invalidation('tag', 'node:5')];
        $this->purge($client, $offered);
        self::assertSame([InvStatesInterface::FAILED], self::states($offered));
        self::assertSame(['Pagewell is not at 127.0.0.1:1.'], $this->log, 'it is asked once, not for each of them');
        $this->purge(false, $offered);
        self::assertSame([InvStatesInterface::FAILED], self::states($offered), 'PAGEWELL_ADMIN=off');
    }

    public function testOneThatIsWrongFailsAlone(): void
    {
        $client = new class () implements InvalidationClient {
            public function invalidate(\Pagewell\Core\Invalidation $invalidation): InvalidationResult
            {
                return in_array('not a URL', $invalidation->urls, true) ? throw new InvalidationRefused('unreadable-url', 'It is no URL.', 400) : new InvalidationResult();
            }
        };
        $offered = [new Invalidation('tag', 'node:4'), new Invalidation('url', 'not a URL'), new Invalidation('tag', ''), new Invalidation('regex', '.*')];
        $this->purge($client, $offered);
        self::assertSame([InvStatesInterface::SUCCEEDED, InvStatesInterface::FAILED, InvStatesInterface::FAILED, InvStatesInterface::FAILED], array_column($offered, 'state'));
        self::assertCount(3, $this->log);
    }

    public function testPurgeFindsItByItsAnnotation(): void
    {
        self::assertSame(1, preg_match('/@PurgePurger\(\s+\*   id = "pagewell",.*types = \{"tag", "url", "path", "everything"\},\s+\* \)/s', (string) file_get_contents(self::PURGER)));
    }

    /** @param list<Invalidation> $offered */
    private function purge(InvalidationClient|false $client, array $offered): void
    {
        Configuration::set($client);
        RequestScope::begin();
        $purger = new PagewellPurger();
        $purger->log = new class ($this->log) {
            /** @param list<string> $lines */
            public function __construct(private array &$lines)
            {
            }

            /** @param array<string, string> $values */
            public function error(string $text, array $values): void
            {
                $this->lines[] = $values['reason'];
            }
        };
        $purger->invalidate($offered);
    }

    /**
     * @param list<Invalidation> $offered
     *
     * @return list<int>
     */
    private static function states(array $offered): array
    {
        return array_values(array_unique(array_column($offered, 'state')));
    }
}
