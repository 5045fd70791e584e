<?php

/**
 * The form for an article: $office, $news (id 0: a new one), its $comments, and the $fault of
 * what was sent.
 */

declare(strict_types=1);

use News\Libraries\News;
use News\Template;

$notice = $office->notice();
$isNew = $news['id'] === 0;
?>
<p><a href="/office/">← Office</a></p>
<h1><?= $isNew ? 'Write an article' : 'Edit' ?></h1>
<?php if ($notice !== '') { ?><p class="notice" role="status"><?= $e($notice) ?><?php if ($news['published'] !== null) { ?> <a href="/news/<?= $news['id'] ?>/">See it</a><?php } ?></p><?php } ?>
<?php if ($fault !== '') { ?><p class="fault" role="alert"><?= $e($fault) ?></p><?php } ?>
<form method="post" action="<?= $isNew ? '/office/new/' : "/office/news/{$news['id']}/" ?>">
<input type="hidden" name="token" value="<?= $e($office->token()) ?>">
<label>Topic <select name="topic">
<?php foreach (News::TOPICS as $topic) { ?><option<?= $topic === $news['topic'] ? ' selected' : '' ?>><?= $e($topic) ?></option><?php } ?>
</select></label>
<label>Title <input name="title" maxlength="200" required value="<?= $e($news['title']) ?>"></label>
<label>Summary <textarea name="summary" rows="2" maxlength="500" required><?= $e($news['summary']) ?></textarea></label>
<label>Text <textarea name="body" rows="14" required><?= $e($news['body']) ?></textarea></label>
<label>Author <input name="author" maxlength="80" required value="<?= $e($news['author']) ?>"></label>
<label class="check"><input type="checkbox" name="publish" value="yes"<?= $news['published'] !== null ? ' checked' : '' ?>> Published</label>
<button>Save</button>
</form>
<?php if ($comments !== []) { ?>
<h2>Comments</h2>
<?php foreach ($comments as $comment) { ?>
<div class="comment"><b><?= $e($comment['author']) ?></b> <time><?= Template::date($comment['written'], true) ?></time>
<p><?= $e($comment['body']) ?></p>
<form method="post" action="/office/comments/<?= $comment['id'] ?>/"><input type="hidden" name="token" value="<?= $e($office->token()) ?>"><button class="plain">Remove</button></form></div>
<?php } ?>
<?php } ?>
