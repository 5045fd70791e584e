//! The same blog while crawlers have the only place at PHP: its users sign in, and their pages come. WordPress
//! confirms a session by the login cookie of its answer to the login form, and the plugin by its field.

use super::Blog;
use acceptance::{cache_status, counter, until};
use harness::{Client, PrivateDir, Request, Response};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::thread::{self, JoinHandle};

/// Has its place until the test says so.
const HELD: &str = "<?php header('Cache-Control: no-store');
    $number = (int) $_GET['number'];
    touch(__DIR__ . \"/held/$number\");
    while (!file_exists(__DIR__ . \"/held/released-$number\")) { usleep(2000); clearstatcache(); }";

/// A request that has the only place.
struct HeldPlace {
    request: JoinHandle<Response>,
    released: PathBuf,
}

impl HeldPlace {
    fn take(blog: &Blog, number: u32) -> HeldPlace {
        let held = blog.wordpress.root().join("held");
        let request = send(blog.client(), Request::get(&format!("/held.php?number={number}")));
        until("the place is taken", || held.join(number.to_string()).exists());
        HeldPlace { request, released: held.join(format!("released-{number}")) }
    }

    fn release(self) {
        std::fs::write(self.released, "").expect("it can be written");
        assert_eq!(self.request.join().expect("it ended").status, 200);
    }
}

/// Sends a request in a separate thread.
fn send(mut client: Client, request: Request) -> JoinHandle<Response> {
    thread::spawn(move || client.send(&request).expect("an answer"))
}

#[test]
fn users_sign_in_and_see_their_pages_while_the_site_is_crawled() {
    let dir = PrivateDir::temporary("crawled").expect("a directory");
    let blog = Blog::start(|wordpress| {
        std::fs::write(wordpress.root().join("held.php"), HELD).expect("it can be written");
        let held = wordpress.root().join("held");
        std::fs::create_dir(&held).expect("it can be made");
        // The scripts may run as another user.
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(&held, open).expect("it can be opened");
        let file = dir.path().join("pagewell.toml");
        let text = "[misses]\nmode = \"protect\"\n[limits]\norigin_connections = 1\n";
        std::fs::write(&file, text).expect("it can be written");
        vec![format!("--config={}", file.display())]
    });
    let waits = || counter(&blog.pagewell, "origin_queue");
    let is_deferred = |response: &Response| {
        assert_eq!(response.status, 503, "{}", response.text());
        assert!(cache_status(response).contains("deferred"), "{}", cache_status(response));
    };

    let held = HeldPlace::take(&blog, 1);
    is_deferred(&blog.get("/?s=crawled"));
    let form = Request::form("/wp-login.php", "log=admin&pwd=secret-of-admin&testcookie=1")
        .header("Cookie", "wordpress_test_cookie=WP%20Cookie%20check");
    let login = send(blog.client(), form);
    until("the login waits", || waits() >= 1);
    is_deferred(&blog.get("/?s=crawled-again"));
    held.release();
    let login = login.join().expect("it ended");
    assert_eq!(login.status, 302, "{}", login.text());
    let pairs = login.all("set-cookie").filter_map(|line| line.split(';').next());
    let cookies = pairs.collect::<Vec<_>>().join("; ");
    assert!(cookies.contains("wordpress_logged_in_"), "{cookies}");

    // Their pages wait for a place as long as it takes. With an invented login they do not.
    let held = HeldPlace::take(&blog, 2);
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
