<?php

/**
 * The configuration of the WordPress that the tests start: all of it comes from the environment.
 *
 * Nothing leaves the machine: no updates, no mail (see quiet.php), and WP-Cron runs only when a
 * test runs it.
 */

define('DB_NAME', 'wordpress');
define('DB_USER', 'wordpress');
define('DB_PASSWORD', getenv('WP_DB_PASSWORD'));
define('DB_HOST', 'localhost:' . getenv('WP_DB_SOCKET'));
define('DB_CHARSET', 'utf8mb4');
define('DB_COLLATE', '');

foreach (['AUTH_KEY', 'SECURE_AUTH_KEY', 'LOGGED_IN_KEY', 'NONCE_KEY', 'AUTH_SALT', 'SECURE_AUTH_SALT', 'LOGGED_IN_SALT', 'NONCE_SALT'] as $name) {
    define($name, hash('sha256', $name . getenv('WP_DB_PASSWORD')));
}

if (getenv('WP_NETWORK') === '1') {
    define('MULTISITE', true);
    define('SUBDOMAIN_INSTALL', true);
    define('DOMAIN_CURRENT_SITE', 'blog.test');
    define('PATH_CURRENT_SITE', '/');
    define('SITE_ID_CURRENT_SITE', 1);
    define('BLOG_ID_CURRENT_SITE', 1);
} else {
    define('WP_HOME', 'http://blog.test');
    define('WP_SITEURL', 'http://blog.test');
}
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('AUTOMATIC_UPDATER_DISABLED', true);
define('DISABLE_WP_CRON', true);
define('WP_DEBUG', getenv('WP_DEBUG') !== '0');
define('WP_DEBUG_DISPLAY', false);
(string) getenv('PAGEWELL_ADMIN') === '' || define('PAGEWELL_ADMIN', getenv('PAGEWELL_ADMIN'));

$table_prefix = 'wp_';

defined('ABSPATH') || define('ABSPATH', __DIR__ . '/');
require_once ABSPATH . 'wp-settings.php';
