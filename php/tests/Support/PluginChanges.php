<?php

/**
 * Plugins for custom fields and for SEO, as PluginsTest tries them: the set-up, the pages and the changes.
 */

declare(strict_types=1);

namespace Pagewell\Tests\Support;

final class PluginChanges
{
    public const FIELDS = 'acf_import_field_group(["key" => "group_ship", "title" => "Ship", "location" => [[["param" => "post_type", "operator" => "==", "value" => "post"]]], "fields" => [["key" => "field_depth", "name" => "depth", "label" => "Depth", "type" => "text", "default_value" => "none"], ["key" => "field_kind", "name" => "kind", "label" => "Kind", "type" => "select", "choices" => ["s" => "Small", "b" => "Big"], "return_format" => "label"], ["key" => "field_next", "name" => "next", "label" => "Next", "type" => "relationship"]]]);'
        . ' acf_import_field_group(["key" => "group_more", "title" => "More", "location" => [[["param" => "taxonomy", "operator" => "==", "value" => "category"]]], "fields" => [["key" => "field_sign", "name" => "sign", "label" => "Sign", "type" => "text"]]]); update_field("field_depth", "3 m", $id("ferry")); update_field("field_kind", "s", $id("ferry")); update_field("field_next", [$id("tug")], $id("ferry"));';
    public const FIELDS_SHOWN = 'add_filter("the_content", function ($c) { if (!function_exists("get_field") || !in_the_loop()) { return $c; } $p = get_the_ID(); $o = get_field_object("depth", $p) ?: []; $n = array_map(fn ($x) => get_the_title($x), (array) (get_field("next", $p) ?: [])); $t = get_the_category($p); $u = get_post($p)->post_author;'
        . ' return $c . "<p>" . ($o["label"] ?? "?") . ": " . get_field("depth", $p) . ", " . get_field("kind", $p) . "; next: " . implode(", ", $n) . "; sign: " . ($t ? get_field("sign", $t[0]) : "") . "; of: " . get_field("ship", "user_$u") . "; all: " . get_field("tide", "option") . "</p>"; });';
    public const FIELDS_PAGES = ['/', '/ferry/', '/gull/', '/tug/', '/tern/', '/category/ships/', '/feed/', '/about/', '/author/ada/'];
    public const FIELDS_CHANGES = [
        'a field' => 'update_field("field_depth", "4 m", $id("ferry"));',
        'a choice' => 'update_field("field_kind", "b", $id("ferry"));',
        'another next' => 'update_field("field_next", [$id("tern"), $id("gull")], $id("ferry"));',
        'the next has another title' => 'wp_update_post(["ID" => $id("tern"), "post_title" => "Terns again"]);',
        'a field of a term' => 'update_field("field_sign", "Anchor", "category_" . get_term_by("slug", "ships", "category")->term_id);',
        'a field of a user' => 'update_field("ship", "Argo", "user_$ada");',
        'a field of the site' => '$saves("acf-options"); update_field("tide", "high", "option");',
        'a label' => '$f = acf_get_field("field_depth"); $f["label"] = "Draught"; acf_update_field($f);',
        'a default' => '$f = acf_get_field("field_depth"); $f["default_value"] = "unknown"; acf_update_field($f);',
        'names of choices' => '$f = acf_get_field("field_kind"); $f["choices"] = ["s" => "Tiny", "b" => "Huge"]; acf_update_field($f);',
        'a group is off' => 'acf_update_field_group_active_status(acf_get_field_group("group_ship")["ID"], false);',
        'a group is on' => 'acf_update_field_group_active_status(acf_get_field_group("group_ship")["ID"], true);',
        'a field goes' => 'delete_field("kind", $id("ferry"));',
        'a group goes' => 'acf_delete_field_group("group_more");',
    ];

    public const SEO = '';
    public const SEO_PAGES = ['/', '/ferry/', '/gull/', '/about/', '/category/ships/', '/author/ada/', '/robots.txt', '/feed/', '/?s=ferry', '/no-such-page/'];
    public const SEO_CHANGES = [
        'a title' => 'update_post_meta($id("ferry"), "_genesis_title", "Late ferries");',
        'a description' => 'tsf()->data()->plugin()->post()->update_single_meta_item("_genesis_description", "Of ferries.", $id("ferry"));',
        'not for robots' => 'tsf()->data()->plugin()->post()->update_single_meta_item("_genesis_noindex", 1, $id("gull"));',
        'a title of a term' => 'tsf()->data()->plugin()->term()->update_single_meta_item("doctitle", "All ships", get_term_by("slug", "ships", "category")->term_id);',
        'a title of the front page' => '$saves("theseoframework-settings"); tsf()->data()->plugin()->update_option("homepage_title", "Home of ships");',
        'a separator' => '$saves("theseoframework-settings"); tsf()->data()->plugin()->update_option("title_separator", "pipe");',
        'authors are not for robots' => '$saves("theseoframework-settings"); tsf()->data()->plugin()->update_option("author_noindex", 1);',
        'a name of an author' => 'tsf()->data()->plugin()->user()->update_single_meta_item("twitter_page", "@ada", $ada);',
        'a post' => 'wp_insert_post(["post_title" => "A seal", "post_name" => "seal", "post_status" => "publish", "post_content" => "Of seals."]);',
        'a post goes' => 'wp_trash_post($id("seal"));',
        'a text' => 'wp_update_post(["ID" => $id("about", "page"), "post_content" => "Who we were."]);',
        'the site has another name' => 'update_option("blogname", "The Blog of Harbours");',
    ];
}
