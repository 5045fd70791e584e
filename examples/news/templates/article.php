<?php

/**
 * One article: $news, its $comments, and $draft, what a reader has typed and what is wrong
 * with it (null when nothing was typed).
 */

declare(strict_types=1);

use News\Template;

?>
<article>
<small><?= $e($news['topic']) ?></small>
<h1><?= $e($news['title']) ?></h1>
<p class="summary"><?= $e($news['summary']) ?></p>
<p class="by"><?= $e($news['author']) ?>, <time><?= Template::date($news['published']) ?></time></p>
<?php foreach (Template::paragraphs($news['body']) as $paragraph) { ?>
<p><?= $e($paragraph) ?></p>
<?php } ?>
</article>
<section>
<h2>Comments</h2>
<?php foreach ($comments as $comment) { ?>
<div class="comment" id="c<?= $comment['id'] ?>"><b><?= $e($comment['author']) ?></b> <time><?= Template::date($comment['written'], true) ?></time>
<p><?= $e($comment['body']) ?></p></div>
<?php } ?>
<form method="post" action="/news/<?= $news['id'] ?>/">
<?php if ($draft !== null) { ?><p class="fault" role="alert"><?= $e($draft['fault']) ?></p><?php } ?>
<label>Name <input name="author" maxlength="60" required<?= $draft === null ? '' : ' value="' . $e($draft['author']) . '"' ?>></label>
<label>Comment <textarea name="body" rows="4" maxlength="2000" required><?= $e($draft['body'] ?? '') ?></textarea></label>
<button>Send</button>
</form>
</section>
