<?php

/**
 * The latest comments: $letters.
 */

declare(strict_types=1);

use News\Template;

?>
<h1>Letters</h1>
<p class="summary">What readers say, newest first.</p>
<?php if ($letters === []) { ?><p class="empty">Nobody has written yet.</p><?php } ?>
<?php foreach ($letters as $letter) { ?>
<div class="comment"><b><?= $e($letter['author']) ?></b> <time><?= Template::date($letter['written'], true) ?></time>
<p><?= $e($letter['body']) ?></p>
<p class="on">On <a href="/news/<?= $letter['news_id'] ?>/#c<?= $letter['id'] ?>"><?= $e($letter['title']) ?></a></p></div>
<?php } ?>
