<?php

/**
 * Questions whether the visitor has a phone (wp_is_mobile): does the page differ by the answer?
 *
 *     the toolbar of a visitor           only its class would differ: it is the same for all
 *     a module of the administration     asked while plugins are loaded, from a directory `admin`: no page shows it
 *     anybody else                       the page may differ: one copy does not suffice
 *
 * `wp pagewell explain --readers` names those who count.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Read;

/**
 * Listens to the filter `wp_is_mobile`.
 *
 * @internal
 */
final class DeviceQuestions
{
    private static bool $isDecisive = false;

    /** Whether the page may differ by the kind of device. */
    public static function areDecisive(): bool
    {
        return self::$isDecisive;
    }

    /** Filter `wp_is_mobile`. */
    public static function asked(mixed $isMobile): mixed
    {
        $calls = debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS, 30);
        $at = array_search('wp_is_mobile', array_column($calls, 'function'), true);
        $asker = $at === false ? '' : strtr((string) ($calls[$at]['file'] ?? ''), '\\', '/');
        if (($calls[(int) $at + 1]['class'] ?? '') === 'WP_Admin_Bar') {
            return $isMobile && is_user_logged_in();
        }
        if (!self::isOfAdministration($asker)) {
            self::$isDecisive = true;
            Readers::add("wp_is_mobile:$asker");
        }
        return $isMobile;
    }

    private static function isOfAdministration(string $file): bool
    {
        return did_action('template_redirect') === 0 && preg_match('~/wp-content/(mu-)?plugins/.*/(wp-)?admin/|/wp-admin/~i', $file) === 1;
    }
}
