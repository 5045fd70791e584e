<?php

/**
 * Removes the plugin's data from the database, for each blog of a network: the options of Journal,
 * and one scheduled event.
 *
 * WordPress runs it when the plugin is deleted.
 */

declare(strict_types=1);

use Pagewell\WordPress\Purge\Journal;

defined('WP_UNINSTALL_PLUGIN') || exit;

foreach (['Tags', 'Purge/Pending', 'Purge/Journal'] as $class) {
    require_once __DIR__ . "/src/$class.php";
}

foreach (is_multisite() ? get_sites(['fields' => 'ids', 'number' => 0]) : [0] as $blog) {
    $blog === 0 || switch_to_blog($blog);
    Journal::remove();
    wp_clear_scheduled_hook('pagewell_retry');
    $blog === 0 || restore_current_blog();
}
