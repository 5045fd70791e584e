<?php

/**
 * A list of articles: $news, and $lead if the first one is to stand out.
 */

declare(strict_types=1);

use News\Template;

?>
<ol class="list<?= ($lead ?? false) ? ' lead' : '' ?>">
<?php foreach ($news as $one) { ?>
<li><a href="/news/<?= $one['id'] ?>/"><small><?= $e($one['topic']) ?></small>
<h2><?= $e($one['title']) ?></h2></a>
<p><?= $e($one['summary']) ?></p>
<time><?= Template::date($one['published']) ?></time></li>
<?php } ?>
</ol>
