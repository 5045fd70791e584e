<?php

/**
 * Every page of the theme: its posts, and around them what it has kept.
 */

?>
<!DOCTYPE html>
<html>
<head><?php wp_head(); ?></head>
<body>
<?php while (have_posts()) { the_post(); ?>
    <article><h2><a href="<?php the_permalink(); ?>"><?php the_title(); ?></a></h2><?php the_content(); ?></article>
<?php } ?>
<aside>
    <ol><?php foreach (cached_latest() as $id) { ?><li><a href="<?php echo esc_url((string) get_permalink($id)); ?>"><?php echo esc_html(get_the_title($id)); ?></a></li><?php } ?></ol>
    <?php echo is_singular() ? '' : cached_sidebar(); ?>
    <p>By <?php echo esc_html(cached_authors()); ?></p>
</aside>
<nav><?php echo cached_menu(); ?></nav>
<?php wp_footer(); ?>
</body>
</html>
