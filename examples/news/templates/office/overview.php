<?php

/**
 * The list of articles to edit: $office, $news, $page, and whether there are $more.
 */

declare(strict_types=1);

use News\Template;

$notice = $office->notice();
?>
<h1>Office</h1>
<?php if ($notice !== '') { ?><p class="notice" role="status"><?= $e($notice) ?></p><?php } ?>
<div class="tools"><a class="button" href="/office/new/">Write an article</a>
<form method="post" action="/office/out/"><input type="hidden" name="token" value="<?= $e($office->token()) ?>"><button class="plain">Sign out</button></form></div>
<table>
<tr><th>Article<th>Topic<th>Published</tr>
<?php foreach ($news as $one) { ?>
<tr><td><a href="/office/news/<?= $one['id'] ?>/"><?= $e($one['title']) ?></a><td><?= $e($one['topic']) ?><td><?= $one['published'] === null ? '<mark>draft</mark>' : Template::date($one['published']) ?></tr>
<?php } ?>
</table>
<nav class="pages">
<?php if ($page > 1) { ?><a href="/office/?page=<?= $page - 1 ?>">← Newer</a><?php } ?>
<span>Page <?= $page ?></span>
<?php if ($more) { ?><a href="/office/?page=<?= $page + 1 ?>">Older →</a><?php } ?>
</nav>
