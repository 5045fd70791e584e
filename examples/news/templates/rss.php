<?php

/**
 * The feed (RSS 2.0): $news, and the $origin that links begin with.
 */

declare(strict_types=1);

echo '<?xml version="1.0" encoding="utf-8"?>', "\n";
?>
<rss version="2.0">
<channel>
<title>The Wrackham Post</title>
<link><?= $e($origin) ?>/</link>
<description>News from Wrackham and the coast</description>
<language>en</language>
<?php foreach ($news as $one) { ?>
<item>
<title><?= $e($one['title']) ?></title>
<link><?= $e($origin) ?>/news/<?= $one['id'] ?>/</link>
<guid><?= $e($origin) ?>/news/<?= $one['id'] ?>/</guid>
<category><?= $e($one['topic']) ?></category>
<pubDate><?= (new DateTimeImmutable($one['published']))->format(DATE_RSS) ?></pubDate>
<description><?= $e($one['summary']) ?></description>
</item>
<?php } ?>
</channel>
</rss>
