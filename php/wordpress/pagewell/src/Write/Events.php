<?php

declare(strict_types=1);

/**
 * Maps WordPress hooks to changes: one table, hook by hook.
 *
 * The functions are in PostEvents (posts, their terms and meta), TermEvents, CommentEvents and
 * SiteEvents (users, menus, options, theme, plugins). Each compares the visible state before and
 * after, and names the difference; an invisible change has no effect. Names are in Tags.
 *
 * Other plugins call these hooks, too, sometimes with other arguments than WordPress. So this file
 * is not strict about types (ids come as strings). A function that fails changes everything
 * (`site`) rather than nothing, and never prevents the write.
 */

namespace Pagewell\WordPress\Write;

use Pagewell\WordPress\Purge\Changes;
use Pagewell\WordPress\Purge\Queue;
use Pagewell\WordPress\Tags;

/**
 * The table of hooks.
 *
 * @internal
 */
final class Events
{
    /** Hook → number of arguments, function. */
    public const TABLE = [
        // A post appears, disappears, or is written: post:ID, text:ID, and the lists it is in, was in, or moves in.
        'transition_post_status' => [3, [PostEvents::class, 'turned']],
        'post_updated' => [3, [PostEvents::class, 'updated']],
        'attachment_updated' => [3, [PostEvents::class, 'updated']],
        'add_attachment' => [1, [PostEvents::class, 'appeared']],
        'before_delete_post' => [2, [PostEvents::class, 'deleted']],
        'delete_attachment' => [2, [PostEvents::class, 'deleted']],
        // Its terms: text:ID, in:TERM, terms:TAXONOMY. Its meta: post:ID. Sticky: list:post.
        'set_object_terms' => [6, [PostEvents::class, 'termsSet']],
        'deleted_term_relationships' => [3, [PostEvents::class, 'termsTaken']],
        'added_post_meta' => [3, [PostEvents::class, 'metaWritten']],
        'updated_post_meta' => [3, [PostEvents::class, 'metaWritten']],
        'deleted_post_meta' => [3, [PostEvents::class, 'metaDeleted']],
        'post_stuck' => [1, [PostEvents::class, 'stuck']],
        'post_unstuck' => [1, [PostEvents::class, 'stuck']],
        // Terms: term:ID, terms:TAXONOMY, filled:TAXONOMY, tree:TAXONOMY, slug:TAXONOMY/NAME, in:TERM and those above.
        'created_term' => [3, [TermEvents::class, 'created']],
        'edit_terms' => [2, [TermEvents::class, 'edited']],
        'edited_term' => [3, [TermEvents::class, 'editedTerm']],
        'pre_delete_term' => [2, [TermEvents::class, 'edited']],
        'delete_term' => [5, [TermEvents::class, 'deleted']],
        'edit_term_taxonomy' => [2, [TermEvents::class, 'beforeCount']],
        'edited_term_taxonomy' => [2, [TermEvents::class, 'counted']],
        'added_term_meta' => [2, [TermEvents::class, 'metaWritten']],
        'updated_term_meta' => [2, [TermEvents::class, 'metaWritten']],
        'deleted_term_meta' => [2, [TermEvents::class, 'metaWritten']],
        // Comments that are approved, or were: comments:POST, comments, latest:NUMBER.
        'wp_insert_comment' => [2, [CommentEvents::class, 'written']],
        'transition_comment_status' => [3, [CommentEvents::class, 'turned']],
        'wp_update_comment_data' => [2, [CommentEvents::class, 'moved']],
        'edit_comment' => [1, [CommentEvents::class, 'edited']],
        'wp_update_comment_count' => [3, [CommentEvents::class, 'counted']],
        'added_comment_meta' => [3, [CommentEvents::class, 'metaWritten']],
        'updated_comment_meta' => [3, [CommentEvents::class, 'metaWritten']],
        'deleted_comment_meta' => [3, [CommentEvents::class, 'metaWritten']],
        // Users, their meta: user:ID, users, by:ID. Their roles: role:ID, roles.
        'user_register' => [1, [SiteEvents::class, 'userWritten']],
        'profile_update' => [2, [SiteEvents::class, 'profileUpdated']],
        'added_user_meta' => [3, [SiteEvents::class, 'userMetaWritten']],
        'updated_user_meta' => [3, [SiteEvents::class, 'userMetaWritten']],
        'deleted_user_meta' => [3, [SiteEvents::class, 'userMetaWritten']],
        'delete_user' => [2, [SiteEvents::class, 'userDeleted']],
        'remove_user_from_blog' => [3, [SiteEvents::class, 'userRemoved']],
        'wpmu_delete_user' => [1, [SiteEvents::class, 'userWritten']],
        // Menus: menu:ID, menus.
        'wp_create_nav_menu' => [1, [SiteEvents::class, 'menuWritten']],
        'wp_update_nav_menu' => [1, [SiteEvents::class, 'menuWritten']],
        'wp_delete_nav_menu' => [1, [SiteEvents::class, 'menuWritten']],
        'wp_update_nav_menu_item' => [1, [SiteEvents::class, 'menuWritten']],
        // Options: site, and the additional effects of a few of them. Everything: site.
        'added_option' => [2, [Options::class, 'added']],
        'updated_option' => [3, [Options::class, 'updated']],
        'delete_option' => [1, [Options::class, 'deleted']],
        'deleted_transient' => [1, [Options::class, 'transientDeleted']],
        'switch_theme' => [0, [SiteEvents::class, 'siteChanged']],
        'customize_save_after' => [0, [SiteEvents::class, 'siteChanged']],
        'permalink_structure_changed' => [0, [SiteEvents::class, 'siteChanged']],
        'activated_plugin' => [2, [SiteEvents::class, 'pluginTurned']],
        'deactivated_plugin' => [2, [SiteEvents::class, 'pluginTurned']],
        'admin_init' => [0, [SiteEvents::class, 'administrationBegins']],
        'add_link' => [0, [SiteEvents::class, 'siteChanged']],
        'edit_link' => [0, [SiteEvents::class, 'siteChanged']],
        'delete_link' => [0, [SiteEvents::class, 'siteChanged']],
        // A plugin has removed files that pages name (style sheets, scripts), or asks page caches to forget all pages.
        'autoptimize_action_cachepurged' => [0, [SiteEvents::class, 'siteChanged']],
        'elementor/core/files/clear_cache' => [0, [SiteEvents::class, 'siteChanged']],
        'fl_builder_cache_cleared' => [0, [SiteEvents::class, 'siteChanged']],
        'et_core_page_resource_auto_clear' => [0, [SiteEvents::class, 'siteChanged']],
        'after_rocket_clean_minify' => [0, [SiteEvents::class, 'siteChanged']],
        'rocket_after_clean_used_css' => [0, [SiteEvents::class, 'siteChanged']],
        'w3tc_flush_after_minify' => [0, [SiteEvents::class, 'siteChanged']],
        'w3tc_flush_all' => [0, [SiteEvents::class, 'siteChanged']],
        'litespeed_purge_all' => [0, [SiteEvents::class, 'siteChanged']],
        'litespeed_purged_all' => [0, [SiteEvents::class, 'siteChanged']],
        'rt_nginx_helper_purge_all' => [0, [SiteEvents::class, 'siteChanged']],
        'cache_enabler_clear_complete_cache' => [0, [SiteEvents::class, 'siteChanged']],
        'cachify_flush_cache' => [0, [SiteEvents::class, 'siteChanged']],
        // In a network, all pages of all blogs: network. All pages of one of them: its site.
        'upgrader_process_complete' => [0, [SiteEvents::class, 'networkChanged']],
        'update_site_option' => [1, [SiteEvents::class, 'networkOptionWritten']],
        'wp_update_site' => [2, [SiteEvents::class, 'blogWritten']],
        'wp_delete_site' => [1, [SiteEvents::class, 'blogWritten']],
        // Posts for which no other hook reports a change until the request ends.
        'clean_post_cache' => [2, [DirectPostWrites::class, 'cleaned']],
        'deleted_post' => [2, [DirectPostWrites::class, 'deleted']],
        'deleted_user' => [2, [DirectPostWrites::class, 'inherited']],
        'shutdown' => [0, [self::class, 'end']],
        // Names from another plugin: do_action('pagewell_changed', 'post:4').
        'pagewell_changed' => [100, [Changes::class, 'add']],
    ];

    /** Registers the table. */
    public static function listen(): void
    {
        foreach (self::TABLE as $hook => [$arguments, $function]) {
            add_action($hook, static fn (mixed ...$given) => self::hear($hook, $function, $given), 10, $arguments);
        }
    }

    /** Handles the rest before the changes are sent (Changes), once only. */
    public static function end(): void
    {
        CommentEvents::end();
        DirectPostWrites::end();
    }

    /** @return mixed the first argument, because some of the hooks are filters */
    private static function hear(string $hook, array $function, array $given): mixed
    {
        try {
            Queue::during($hook, $given, static fn () => call_user_func_array($function, $given));
        } catch (\Throwable $fault) {
            Changes::add(Tags::SITE);
            error_log("pagewell: the hook $hook was called with unexpected arguments; all pages are purged: {$fault->getMessage()}");
        }
        return $given[0] ?? null;
    }
}
