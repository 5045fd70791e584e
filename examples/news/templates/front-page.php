<?php

/**
 * The list of articles: $news, $page of $pages.
 */

declare(strict_types=1);

use News\Template;

$link = static fn (int $to): string => $to === 1 ? '/' : "/page/$to/";
?>
<?php if ($page > 1) { ?><h1>From the archive</h1><?php } ?>
<?php if ($news === []) { ?><p class="empty">Nothing has been published yet.</p><?php } ?>
<?= Template::render('list', ['news' => $news, 'lead' => $page === 1]) ?>
<nav class="pages">
<?php if ($page > 1) { ?><a rel="prev" href="<?= $link($page - 1) ?>">← Newer</a><?php } ?>
<span>Page <?= $page ?> of <?= $pages ?></span>
<?php if ($page < $pages) { ?><a rel="next" href="<?= $link($page + 1) ?>">Older →</a><?php } ?>
</nav>
