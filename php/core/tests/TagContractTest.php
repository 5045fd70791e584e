<?php

/**
 * Tags as the library writes them and as the change of a row names them: contract/tags.json, which the change
 * stream's own tests read as well.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Core;

use Pagewell\Core\Tag;
use PHPUnit\Framework\TestCase;

final class TagContractTest extends TestCase
{
    public function testTagsAreThoseOfTheContract(): void
    {
        $text = file_get_contents(__DIR__ . '/../../../contract/tags.json');
        $vectors = json_decode((string) $text, true, flags: JSON_THROW_ON_ERROR)['tags'];
        self::assertNotEmpty($vectors);
        foreach ($vectors as ['kind' => $kind, 'id' => $id, 'tag' => $tag]) {
            self::assertSame($tag, Tag::one($kind, $id));
        }
    }
}
