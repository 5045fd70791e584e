<?php

/**
 * Tools → Site Health: whether the plugin can do its work.
 *
 *     pagewell_front      did this request come through Pagewell?
 *     pagewell_control    does the control interface answer?
 *     pagewell_pending    do changes wait that could not be sent?
 *     pagewell_arrangement  do pages depend on tags alone, or on the rows of SQL statements as well?
 *     pagewell_other      is another page cache active, whose copies Pagewell cannot purge?
 *
 * The tab Info has the addresses and versions.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Admin;

use Pagewell\WordPress\Core\Exception\InvalidConfiguration;
use Pagewell\WordPress\Core\Explanation;
use Pagewell\WordPress\Core\Front;
use Pagewell\WordPress\Purge\ControlClient;
use Pagewell\WordPress\Purge\Journal;

use const Pagewell\WordPress\VERSION;

/**
 * The checks for Site Health.
 *
 * @internal
 */
final class SiteHealth
{
    /** Adds the checks and the information. */
    public static function register(): void
    {
        add_filter('site_status_tests', self::tests(...));
        add_filter('debug_information', self::information(...));
    }

    /** @param mixed $tests of WordPress */
    private static function tests(mixed $tests): mixed
    {
        if (is_array($tests)) {
            foreach (['front' => self::front(...), 'control' => self::control(...), 'pending' => self::pending(...), 'arrangement' => self::arrangement(...), 'other' => self::other(...)] as $name => $test) {
                $tests['direct']["pagewell_$name"] = ['label' => "Pagewell: $name", 'test' => static fn (): array => ['test' => "pagewell_$name"] + $test()];
            }
        }
        return $tests;
    }

    /** @return array<string, mixed> */
    private static function front(): array
    {
        return Front::isInFront()
            ? self::result('good', __('Pagewell is in front of this site', 'pagewell'), __('This request came through Pagewell, so pages can be cached.', 'pagewell'))
            : self::result('recommended', __('Pagewell is not in front of this site', 'pagewell'), __('This request did not come through Pagewell. Pages are not cached, or the administration has another address than the site.', 'pagewell'));
    }

    /** @return array<string, mixed> */
    private static function control(): array
    {
        if (ControlClient::isOff()) {
            return self::result('recommended', __('The control interface of Pagewell is switched off', 'pagewell'), __('Changes by WP-Cron, WP-CLI and links of the administration are sent with the next write through Pagewell, and pages can be old until then: PAGEWELL_ADMIN is off in wp-config.php.', 'pagewell'));
        }
        $fault = ControlClient::health();
        if ($fault === null) {
            /* translators: %s: an address */
            return self::result('good', __('The control interface of Pagewell answers', 'pagewell'), sprintf(__('It answers at %s.', 'pagewell'), ControlClient::address()));
        }
        /* translators: %s: why the call failed */
        return self::result('critical', __('The control interface of Pagewell does not answer', 'pagewell'), sprintf(__('Changes by WP-Cron, WP-CLI and links of the administration are sent later, and pages can be old until then: %s. Name its address in wp-config.php by PAGEWELL_ADMIN.', 'pagewell'), $fault));
    }

    /** @return array<string, mixed> */
    private static function pending(): array
    {
        $count = count(Journal::pending()->tags);
        if ($count === 0) {
            return self::result('good', __('All changes have reached Pagewell', 'pagewell'), __('No change waits to be sent.', 'pagewell'));
        }
        /* translators: %s: a number of tags */
        return self::result('critical', __('Changes have not reached Pagewell', 'pagewell'), sprintf(__('Tags that wait: %s. Pages that depend on them may be old until Pagewell answers. They are sent with the next change, or within a minute of WP-Cron.', 'pagewell'), number_format_i18n($count)));
    }

    /** @return array<string, mixed> of the front page, because the administration itself is not cached */
    private static function arrangement(): array
    {
        $page = ControlClient::explain(home_url('/'));
        return match (true) {
            !$page instanceof Explanation || !$page->isHit() => self::result('good', __('The front page is not cached at the moment', 'pagewell'), __('So it is not known whether automatic dependencies are on. Request the front page as a visitor, and look again.', 'pagewell')),
            $page->hasReads => self::result('good', __('Pages depend on this plugin and automatic dependencies', 'pagewell'), __('Tags decide for posts, terms, comments and users, the SQL statements for options and the tables of other plugins. Changes of the latter past WordPress (imports, SQL) purge pages, too.', 'pagewell')),
            default => self::result('good', __('Pages depend on this plugin', 'pagewell'), __('Pagewell purges pages by the tags of this plugin. Changes past WordPress (imports, SQL) are not seen.', 'pagewell')),
        };
    }

    /** @return array<string, mixed> */
    private static function other(): array
    {
        return file_exists(WP_CONTENT_DIR . '/advanced-cache.php') && defined('WP_CACHE') && constant('WP_CACHE')
            ? self::result('recommended', __('Another page cache is active', 'pagewell'), __('WP_CACHE is set, and wp-content/advanced-cache.php exists. Turn off the page cache of the other plugin: Pagewell cannot purge the copies that it stores.', 'pagewell'))
            : self::result('good', __('No other page cache is active', 'pagewell'), __('Pagewell has the only copies of pages.', 'pagewell'));
    }

    private static function address(): string
    {
        try {
            return ControlClient::isOff() ? 'off' : ControlClient::address();
        } catch (InvalidConfiguration $fault) {
            return $fault->getMessage();
        }
    }

    /** @return array<string, mixed> */
    private static function result(string $status, string $label, string $text): array
    {
        $link = sprintf('<p><a href="%s">%s</a></p>', esc_url(admin_url('options-general.php?page=pagewell')), esc_html__('Settings of Pagewell', 'pagewell'));
        return ['label' => $label, 'status' => $status, 'badge' => ['label' => __('Performance', 'pagewell'), 'color' => 'blue'], 'description' => '<p>' . esc_html($text) . '</p>', 'actions' => $link];
    }

    /** @param mixed $information of WordPress */
    private static function information(mixed $information): mixed
    {
        if (is_array($information)) {
            $information['pagewell'] = ['label' => 'Pagewell', 'fields' => [
                'version' => ['label' => __('Version of the plugin', 'pagewell'), 'value' => VERSION],
                'front' => ['label' => __('Is Pagewell in front of this site?', 'pagewell'), 'value' => Front::isInFront() ? (string) ($_SERVER['SERVER_SOFTWARE'] ?? '') : __('No', 'pagewell')],
                'address' => ['label' => __('Control interface', 'pagewell'), 'value' => self::address(), 'private' => true],
                'pending' => ['label' => __('Changes not sent yet', 'pagewell'), 'value' => count(Journal::pending()->tags)],
            ]];
        }
        return $information;
    }
}
