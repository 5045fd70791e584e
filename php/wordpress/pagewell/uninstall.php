<?php

/**
 * Removes what the plugin has left in the database: two options and one planned event.
 *
 * Run by WordPress when the plugin is deleted, and by nobody else.
 */

declare(strict_types=1);

defined('WP_UNINSTALL_PLUGIN') || exit;

delete_option('pagewell_told');
delete_option('pagewell_pending');
wp_clear_scheduled_hook('pagewell_retry');
