//! The same blog with database-driven invalidation, using the rules that `pagewell changes suggest --for
//! wordpress` prints. SQL at the prompt refreshes the pages that show the changed data. Changes that no page
//! shows purge nothing.

use super::{Blog, KEPT};
use harness::Response;
use std::process::Command;

/// With the rules of `pagewell changes suggest --for wordpress`, pages are exact whichever program writes.
#[test]
fn sql_at_the_prompt_invalidates_with_a_followed_database() {
    let blog = Blog::start(|wordpress| {
        let database = wordpress.database();
        database.create_follower("localhost", "wordpress").expect("an account");
        let socket = database.socket().display();
        let url = format!("mysql://follower:secret@localhost/wordpress?socket={socket}");
        let suggest = ["changes", "suggest", "--for", "wordpress", &url];
        let printed = Command::new(acceptance::binary()).args(suggest).output().expect("it runs");
        assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
        let rules = String::from_utf8(printed.stdout).expect("text");
        format!("[[database]]\nurl = {url:?}\nbarrier = \"1m\"\nlag_max = \"1m\"\n{rules}")
    });
    acceptance::until("it is followed", || blog.keeps("/gull/"));
    refill(&blog, &[]);
    let sql = |text: &str| {
        blog.wordpress.database().sql_in("wordpress", text).expect("it is done");
    };
    let seen = |what: &str, path: &str, is_new: &dyn Fn(&Response) -> bool| {
        acceptance::until(&format!("{what} on {path}"), || is_new(&blog.get(path)));
        refill(&blog, &["/tug/"]);
    };
    let shows = |words: &'static str| move |page: &Response| page.text().contains(words);

    // Rows that no page shows purge nothing. The next change in the log is applied after them.
    let gull = blog.id("gull");
    sql(&format!(
        "INSERT INTO wp_options (option_name, option_value) VALUES ('_transient_x', '1'), ('cron_x', '2');
         UPDATE wp_options SET option_value = '3' WHERE option_name = '_transient_x';
         INSERT INTO wp_postmeta (post_id, meta_key, meta_value) VALUES ({gull}, '_edit_lock', '1:1');
         UPDATE wp_posts SET comment_count = comment_count, to_ping = 'x' WHERE ID = {gull};
         INSERT INTO wp_usermeta (user_id, meta_key, meta_value) VALUES (1, 'session_tokens', 'x');
         INSERT INTO wp_posts (post_title, post_status, post_content, post_excerpt, to_ping, pinged, post_content_filtered)
         VALUES ('a draft', 'draft', '', '', '', '', '');"
    ));
    sql("UPDATE wp_posts SET post_title = 'About boats' WHERE post_name = 'about'");
    acceptance::until("the title is new", || shows("About boats")(&blog.get("/about/")));
    assert!(blog.hits().contains(&"/feed/"), "{:?}", blog.hits());
    refill(&blog, &[]);

    sql("UPDATE wp_posts SET post_content = 'White wings' WHERE post_name = 'gull'");
    seen("a text", "/gull/", &shows("White wings"));
    sql("UPDATE wp_posts SET post_title = 'Herring gull' WHERE post_name = 'gull'");
    seen("a title", "/", &shows("Herring gull"));
    seen("a title", "/category/birds/", &shows("Herring gull"));
    sql("UPDATE wp_options SET option_value = 'Harbour' WHERE option_name = 'blogname'");
    for path in KEPT {
        seen("the name of the site", path, &shows("Harbour"));
    }
    sql("UPDATE wp_users SET display_name = 'Ada the first' WHERE user_login = 'ada'");
    seen("a name", "/author/ada/", &shows("Ada the first"));
    sql("UPDATE wp_terms SET name = 'Vessels' WHERE slug = 'ships'");
    seen("a term", "/category/ships/", &shows("Vessels"));
    sql(&format!(
        "INSERT INTO wp_comments (comment_post_ID, comment_author, comment_content, comment_approved)
         VALUES ({gull}, 'Joe', 'By the prompt', '1')"
    ));
    seen("a comment", "/gull/", &shows("By the prompt"));
    assert!(blog.text("/category/ships/").contains("/tug/"));
    sql("UPDATE wp_posts SET post_status = 'private' WHERE post_name = 'tug'");
    let is_gone = |page: &Response| !page.text().contains("/tug/");
    for path in ["/", "/category/ships/", "/feed/"] {
        seen("a post that went", path, &is_gone);
    }
    acceptance::until("it is gone", || blog.get("/tug/").status == 404);
    acceptance::audit_found_nothing(&blog.pagewell, &[]);
}

/// Waits until all pages are cached but those that may be gone. WordPress runs scheduled tasks behind a page view; what
/// they write may purge pages once more.
fn refill(blog: &Blog, gone: &[&str]) {
    for path in KEPT.into_iter().filter(|path| !gone.contains(path)) {
        acceptance::until(&format!("{path} is cached"), || blog.keeps(path));
    }
}
