<?php

/**
 * Three articles picked by chance: $news.
 */

declare(strict_types=1);

use News\Template;

?>
<h1>Lucky dip</h1>
<p class="summary">Three from the archive, another three each time.</p>
<?= Template::render('list', ['news' => $news]) ?>
<p><a class="button" href="/random/">Dip again</a></p>
