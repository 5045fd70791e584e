//! Changes that WordPress cannot publish at once are published later: Pagewell is away, or a change is added while others
//! are published.
//!
//! Tests share the blog of the others.

use super::{KEPT, blog};

#[test]
fn without_pagewell_a_write_succeeds_and_is_published_later() {
    let blog = blog();
    let away = "putenv('PAGEWELL_ADMIN=127.0.0.1:1'); require 'wp-load.php';
                wp_update_post(['ID' => get_page_by_path('about')->ID, 'post_content' => 'Moved.']);
                echo 'done';";
    assert_eq!(blog.wordpress.command(away).expect("the write succeeds"), "done");
    assert_eq!(blog.hits(), KEPT, "nobody has told");
    blog.command("do_action('pagewell_changed', 'something:else');");
    assert_eq!(blog.new_pages(), ["/about/"], "what was pending is told with the next change");
    assert!(blog.text("/about/").contains("Moved."));
    assert_eq!(blog.command("echo json_encode(get_option('pagewell_pending'));"), "false");
}

/// One process sends the pending invalidations while another adds more.
#[test]
fn invalidations_added_meanwhile_are_published_later() {
    let blog = blog();
    let left = blog.command(
        r"\Pagewell\WordPress\Purge\Journal::keep(['a']);
          $kept = \Pagewell\WordPress\Purge\Journal::pending();
          $other = 'require \'wp-load.php\'; Pagewell\WordPress\Purge\Journal::keep([\'b\']);';
          exec(escapeshellarg(PHP_BINARY) . ' -r ' . escapeshellarg($other));
          \Pagewell\WordPress\Purge\Journal::sent('control', ['a'], $kept);
          wp_cache_flush();
          echo json_encode(\Pagewell\WordPress\Purge\Journal::pending()->tags);",
    );
    assert_eq!(left, "[\"b\"]");
}
