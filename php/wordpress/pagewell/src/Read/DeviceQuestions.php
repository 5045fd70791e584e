<?php

/**
 * Questions whether the visitor has a phone (wp_is_mobile): does the page differ by the answer?
 *
 *     the toolbar of a visitor           only its class would differ: it is the same for all
 *     a module of the administration     asked while plugins are loaded, from a directory `admin`: no page shows it
 *     the one of Ultimate Member         it only sends caching fields to phones: the page is the same for all
 *     anybody else                       the page may differ: one copy does not suffice
 *
 * `wp pagewell explain --readers` names those who count.
 */

declare(strict_types=1);

namespace Pagewell\WordPress\Read;

use Pagewell\WordPress\Core\Front;

/**
 * Listens to the filters `wp_is_mobile` and `user_can_richedit`.
 *
 * @internal
 */
final class DeviceQuestions
{
    /** Functions that ask on each page and change none, by their plugin. A name such as avoid_cache() alone proves nothing. */
    private const HARMLESS = ['Ultimate Member' => 'um\common\Screen::avoid_mobile_cache'];

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
        $caller = $calls[(int) $at + 1] ?? [];
        if (($caller['class'] ?? '') === 'WP_Admin_Bar') {
            return $isMobile && is_user_logged_in();
        }
        $isHarmless = in_array(($caller['class'] ?? '') . '::' . ($caller['function'] ?? ''), self::HARMLESS, true);
        if (!$isHarmless && !self::isOfAdministration($asker)) {
            self::$isDecisive = true;
            Readers::add("wp_is_mobile:$asker");
        }
        return $isMobile;
    }

    /**
     * Filter `user_can_richedit`: which browser is it? All browsers in use can show the editor. With it, WordPress asks for
     * a phone, so that the page has a copy for each kind of device, or none.
     */
    public static function editor(mixed $can): mixed
    {
        return Front::isInFront() && !is_user_logged_in() ? true : $can;
    }

    private static function isOfAdministration(string $file): bool
    {
        return did_action('wp_loaded') === 0 && preg_match('~/wp-content/(mu-)?plugins/.*/(wp-)?admin/|/wp-admin/~i', $file) === 1;
    }
}
