<?php

/**
 * The commands `wp pagewell`: status, purge, explain.
 *
 * WP-CLI reads their help from the comments of the methods. Each ends with a message; after a
 * failure the exit status is 1.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Cli;

use Pagewell\WordPress\Admin\PageState;
use Pagewell\WordPress\Core\Invalidation;
use Pagewell\WordPress\Purge\Changes;
use Pagewell\WordPress\Purge\ControlClient;
use Pagewell\WordPress\Purge\Journal;
use Pagewell\WordPress\Purge\Pending;
use Pagewell\WordPress\Read\Readers;
use Pagewell\WordPress\Tags;

/**
 * Shows and purges the pages that Pagewell caches.
 *
 * @internal
 */
final class Commands
{
    /** Adds the commands, if this is WP-CLI. */
    public static function register(): void
    {
        if (defined('WP_CLI') && constant('WP_CLI') && class_exists('WP_CLI')) {
            \WP_CLI::add_command('pagewell', self::class);
        }
    }

    /**
     * Shows whether Pagewell answers, which changes wait, and which were sent recently.
     *
     * ## EXAMPLES
     *
     *     $ wp pagewell status
     *     Control interface: 127.0.0.1:8081 answers
     *     Changes not sent yet: none
     *     Success: Changes reach Pagewell.
     *
     * @param list<string>          $arguments
     * @param array<string, string> $options
     */
    public function status(array $arguments, array $options): void
    {
        $fault = ControlClient::health();
        $pending = Journal::pending()->tags;
        \WP_CLI::line('Control interface: ' . ($fault ?? ControlClient::address() . ' answers'));
        \WP_CLI::line('Changes not sent yet: ' . ($pending === [] ? 'none' : implode(', ', array_slice($pending, 0, 12)) . (count($pending) > 12 ? sprintf(' and %d more', count($pending) - 12) : '')));
        if ($pending !== [] && $fault === null) {
            \WP_CLI::warning('Pages with these tags may be old. The next change sends them, or WP-Cron within a minute; at once: wp cron event run pagewell_retry');
        }
        foreach (array_slice(Journal::recent(), 0, 5) as $entry) {
            \WP_CLI::line(gmdate('Y-m-d H:i:s', $entry['at']) . ' UTC, ' . ($entry['way'] === 'answer' ? 'on a response: ' : 'by the control interface: ') . implode(', ', $entry['tags']));
        }
        if (ControlClient::isOff()) {
            \WP_CLI::success('Changes reach Pagewell on responses only: those of commands and WP-Cron wait for the next write in the administration.');
            return;
        }
        $fault === null ? \WP_CLI::success('Changes reach Pagewell.') : \WP_CLI::error('Changes do not reach Pagewell. Name its address by PAGEWELL_ADMIN in wp-config.php.');
    }

    /**
     * Purges pages: all of the site, or those of URLs, of posts, or with tags.
     *
     * ## OPTIONS
     *
     * [<url>...]
     * : Paths below the site's address, or URLs. In a network, the same path of every blog is purged.
     *
     * [--post=<ids>]
     * : Every page that shows one of these posts, separated by commas.
     *
     * [--tag=<tags>]
     * : Every page with one of these tags, separated by commas.
     *
     * [--all]
     * : Every page of the site.
     *
     * ## EXAMPLES
     *
     *     $ wp pagewell purge --all
     *     Success: 42 pages purged.
     *
     *     $ wp pagewell purge /about/ --post=4
     *     Success: 3 pages purged.
     *
     * @param list<string>               $arguments
     * @param array<string, string|bool> $options
     */
    public function purge(array $arguments, array $options): void
    {
        $tags = isset($options['all']) ? [Tags::SITE] : [];
        foreach (self::list($options['post'] ?? '') as $id) {
            get_post((int) $id) instanceof \WP_Post || \WP_CLI::error("There is no post $id.");
            $tags[] = 'post:' . (int) $id;
            $tags[] = 'text:' . (int) $id;
            $tags[] = 'name:' . (int) $id;
        }
        array_push($tags, ...self::list($options['tag'] ?? ''));
        if ($tags === [] && $arguments === []) {
            \WP_CLI::error('Nothing is named to purge: write URLs, --post, --tag or --all.');
        }
        $tags = array_map(Tags::full(...), $tags);
        $urls = array_map(self::url(...), $arguments);
        $purged = ControlClient::purge(new Invalidation($tags, $urls));
        if (is_string($purged)) {
            $tags === [] || Changes::postpone($tags, $purged);
            \WP_CLI::error("The pages were not purged: $purged." . ($tags === [] ? '' : ' The plugin tries again with the next change, or within a minute of WP-Cron.'));
        }
        Journal::sent('control', [...$tags, ...$urls], new Pending());
        \WP_CLI::success(match ($purged) {
            0 => '0 pages purged. No cached page has this URL or tag: ' . implode(', ', [...$urls, ...$tags]) . '.',
            1 => '1 page purged.',
            default => "$purged pages purged.",
        });
    }

    /**
     * Explains whether a page is cached, on what it depends, and why it is not cached.
     *
     * ## OPTIONS
     *
     * <url>
     * : A path below the site's address, or a URL.
     *
     * [--readers]
     * : Renders the page once more, and shows which block or widget reads what.
     *
     * ## EXAMPLES
     *
     *     $ wp pagewell explain /about/
     *     http://blog.example/about/
     *       hit          It is answered from the cache.
     *       depends on   site, text:2
     *
     * @param list<string>          $arguments
     * @param array<string, string> $options
     */
    public function explain(array $arguments, array $options): void
    {
        $found = ControlClient::explain(self::url($arguments[0] ?? ''));
        if (is_string($found)) {
            \WP_CLI::error("$found.");
        }
        array_map(\WP_CLI::line(...), $found->lines());
        if (isset($options['readers'])) {
            $response = wp_remote_get(add_query_arg(Readers::PARAMETER, Readers::key(), $found->url), ['redirection' => 0, 'timeout' => 30]);
            is_wp_error($response) && \WP_CLI::error('The page cannot be rendered: ' . rtrim($response->get_error_message(), '.') . '.');
            $readers = array_filter((array) wp_remote_retrieve_header($response, 'x-pagewell-readers'), 'strlen');
            $readers === [] && \WP_CLI::error('The response, with status ' . wp_remote_retrieve_response_code($response) . ', names no readers: the plugin does not offer this page to Pagewell.');
            foreach ($readers as $line) {
                \WP_CLI::line('  read by      ' . implode(': ', explode(' ', $line, 2)));
            }
        }
    }

    private static function url(string $page): string
    {
        return PageState::urlOf($page) ?? \WP_CLI::error("'$page' is no page of this site: write a path, such as /about/, or a URL that begins with " . home_url('/') . '.');
    }

    /** @return list<string> */
    private static function list(mixed $text): array
    {
        return is_string($text) ? preg_split('/[\s,]+/', $text, -1, PREG_SPLIT_NO_EMPTY) ?: [] : [];
    }
}
