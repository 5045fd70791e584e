<?php

/**
 * The frame of every page: head, masthead, foot.
 *
 * Sees $title and $content (HTML). The foot says when the page was made and from what, so
 * that one can watch it being kept. The masthead bears no date of today: it would be wrong
 * tomorrow, and nothing would have changed.
 */

declare(strict_types=1);

$tags = Pagewell\RequestScope::current()->tags();
?>
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title><?= $title === '' ? '' : $e($title) . ' · ' ?>The Wrackham Post</title>
<link rel="stylesheet" href="/style.css?v=<?= filemtime(__DIR__ . '/../public/style.css') ?>">
<link rel="icon" href="/favicon.svg">
<link rel="alternate" type="application/rss+xml" href="/rss.xml">
<header>
<a class="name" href="/">The Wrackham Post</a>
<nav><a href="/">News</a> <a href="/letters/">Letters</a> <a href="/random/">Lucky dip</a> <a href="/search/">Search</a></nav>
</header>
<main>
<?= $content ?>
</main>
<footer>Made at <?= date_create()->format('H:i:s.v') ?> <?= $tags === [] ? 'for you alone' : 'from <code>' . $e(implode(', ', array_filter($tags, static fn (string $tag): bool => !str_ends_with($tag, ':*')))) . '</code>' ?> · <a href="/rss.xml">Feed</a> · <a href="/office/">Office</a></footer>
