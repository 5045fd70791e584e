<?php

/**
 * A plugin that WordPress always loads: the tests' WordPress sends no mail, and lets one address
 * write several comments within a moment.
 */

add_filter('comment_flood_filter', '__return_false', PHP_INT_MAX);

function wp_mail(): bool
{
    return true;
}
