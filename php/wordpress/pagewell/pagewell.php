<?php

/**
 * Plugin Name:       Pagewell
 * Description:       For sites behind the page cache Pagewell. Pages are cached until the data that they depend on changes; a change purges the pages that show it.
 * Version:           0.1.0
 * Requires at least: 6.1
 * Requires PHP:      8.1
 * License:           MIT OR Apache-2.0
 * License URI:       https://opensource.org/license/mit
 * Text Domain:       pagewell
 * Domain Path:       /languages
 *
 * Starts the two halves of the plugin: pages that are rendered, and data that is written. There is
 * nothing to configure; see README.md beside this file.
 *
 *     src/Read    what a page depends on, and whether it may be cached
 *     src/Write   which names a write changes
 *     src/Purge   how purges reach Pagewell: at once, or later from the database
 *     src/Admin   screens of the administration
 *     src/Cli     commands of WP-CLI
 *     src/Core    php/core, which php/build-plugin copies
 *     src         what reading and writing share: names, URLs, sitemaps
 */

declare(strict_types=1);

namespace Pagewell\WordPress;

use Pagewell\WordPress\Admin\AdminBar;
use Pagewell\WordPress\Admin\Screen;
use Pagewell\WordPress\Admin\SiteHealth;
use Pagewell\WordPress\Cli\Commands;
use Pagewell\WordPress\Core\Front;
use Pagewell\WordPress\Purge\Changes;
use Pagewell\WordPress\Read\CacheHeaders;
use Pagewell\WordPress\Read\ViewCounters;

defined('ABSPATH') || exit;

/** The version of the plugin, which is that of the program. */
const VERSION = '0.1.0';

spl_autoload_register(static function (string $class): void {
    $name = str_starts_with($class, __NAMESPACE__ . '\\') ? substr($class, strlen(__NAMESPACE__) + 1) : '';
    if (preg_match('/^((Admin|Cli|Core|Core\\\\Exception|Purge|Read|Write)\\\\)?[A-Za-z]+$/D', $name) === 1 && is_file($file = __DIR__ . '/src/' . strtr($name, '\\', '/') . '.php')) {
        require $file;
    }
});

// A render that only Pagewell sees, to compare a stored page with: it starts no scheduled events, and is no view.
if (Front::isReference()) {
    defined('DISABLE_WP_CRON') || define('DISABLE_WP_CRON', true);
    ViewCounters::pause();
}

Changes::listen();
add_action('init', static fn (): bool => load_plugin_textdomain('pagewell', false, basename(__DIR__) . '/languages'));
Screen::register();
AdminBar::register();
SiteHealth::register();
Commands::register();
if (($_SERVER['REQUEST_METHOD'] ?? '') === 'GET' && PHP_SAPI !== 'cli' && !is_admin() && !wp_doing_cron()) {
    CacheHeaders::begin();
}
