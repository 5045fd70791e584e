<?php

/**
 * The search: $word (empty before anything was asked), the $news found, and whether there
 * are $more than these.
 */

declare(strict_types=1);

use News\Template;

?>
<h1><?= $word === '' ? 'Search' : 'Search: ' . $e($word) ?></h1>
<form class="search" action="/search/"><input type="search" name="q" maxlength="60" aria-label="Word" value="<?= $e($word) ?>" required> <button>Search</button></form>
<?php if ($word === '') { ?>
<p class="summary">Try <a href="/search/ferry/">ferry</a>, <a href="/search/library/">library</a> or <a href="/search/storm/">storm</a>.</p>
<?php } elseif ($news === []) { ?>
<p class="empty">Nothing in the paper has that word in it.</p>
<?php } else { ?>
<p class="summary"><?= $more ? 'The latest ' . count($news) . ' of many' : (count($news) === 1 ? 'One' : count($news)) ?> with that word.</p>
<?= Template::render('list', ['news' => $news]) ?>
<?php } ?>
