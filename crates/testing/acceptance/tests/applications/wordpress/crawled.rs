//! The same blog while crawlers have the only place at PHP: its users sign in, and their pages come. WordPress
//! confirms a session by the login cookie of its answer to the login form, and the plugin by its field.

use super::Blog;
use crate::held_place::{HeldPlace, ONE_PLACE, cookies, is_deferred, send};
use acceptance::{counter, until};
use harness::Request;

#[test]
fn users_sign_in_and_see_their_pages_while_the_site_is_crawled() {
    let blog = Blog::start(|wordpress| {
        HeldPlace::install(&wordpress.root());
        ONE_PLACE.to_owned()
    });
    let waits = || counter(&blog.pagewell, "origin_queue");
    let take = |number| HeldPlace::take(blog.client(), &blog.wordpress.root(), number);

    let held = take(1);
    is_deferred(&blog.get("/?s=crawled"));
    let form = Request::form("/wp-login.php", "log=admin&pwd=secret-of-admin&testcookie=1")
        .header("Cookie", "wordpress_test_cookie=WP%20Cookie%20check");
    let login = send(blog.client(), form);
    until("the login waits", || waits() >= 1);
    is_deferred(&blog.get("/?s=crawled-again"));
    held.release();
    let login = login.join().expect("it ended");
    assert_eq!(login.status, 302, "{}", login.text());
    let cookies = cookies(&login);
    assert!(cookies.contains("wordpress_logged_in_"), "{cookies}");

    // Their pages wait for a place as long as it takes. With an invented login they do not.
    let held = take(2);
    let profile = |cookies: &str| Request::get("/wp-admin/profile.php").header("Cookie", cookies);
    let own = send(blog.client(), profile(&cookies));
    until("the user's page waits", || waits() >= 1);
    let invented = cookies.replace("=admin%7C", "=admin%7C1");
    assert_ne!(invented, cookies);
    is_deferred(&blog.client().send(&profile(&invented)).expect("an answer"));
    assert!(waits() >= 1, "it waits on");
    held.release();
    let own = own.join().expect("it ended");
    assert_eq!((own.status, own.text().contains("user-login")), (200, true), "{}", own.text());
}
