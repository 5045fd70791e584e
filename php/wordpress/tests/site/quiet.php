<?php

/**
 * A plugin that WordPress always loads: the tests' WordPress sends no mail, and lets one address
 * write several comments within a moment.
 */

add_filter('comment_flood_filter', '__return_false', PHP_INT_MAX);

add_shortcode('authors', fn () => wp_list_authors(['echo' => false, 'optioncount' => true, 'exclude_admin' => false]));

function wp_mail(): bool
{
    return true;
}
