//! A script of a crawler that has the only place at PHP for as long as a test wants, and what waits behind it.

use acceptance::{cache_status, until};
use harness::{Client, Request, Response};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

/// The configuration of one place, which is rationed. A request of a user may wait for it as long as a test takes.
pub const ONE_PLACE: &str = "[misses]\nmode = \"protect\"\n[limits]\norigin_connections = 1\norigin_queue_timeout = \"60s\"\n";

/// Has its place until the test says so.
const HELD: &str = "<?php header('Cache-Control: no-store');
    $number = (int) $_GET['number'];
    touch(__DIR__ . \"/held/$number\");
    while (!file_exists(__DIR__ . \"/held/released-$number\")) { usleep(2000); clearstatcache(); }";

/// A request that has the only place.
pub struct HeldPlace {
    request: JoinHandle<Response>,
    released: PathBuf,
}

impl HeldPlace {
    /// Adds the script to a site with this document root.
    pub fn install(root: &Path) {
        fs::write(root.join("held.php"), HELD).expect("it can be written");
        let held = root.join("held");
        fs::create_dir(&held).expect("it can be made");
        // The scripts may run as another user.
        fs::set_permissions(&held, fs::Permissions::from_mode(0o777)).expect("it can be opened");
    }

    /// Takes the place. `number` differs from that of all others.
    pub fn take(client: Client, root: &Path, number: u32) -> HeldPlace {
        let held = root.join("held");
        let request = send(client, Request::get(&format!("/held.php?number={number}")));
        until("the place is taken", || held.join(number.to_string()).exists());
        HeldPlace { request, released: held.join(format!("released-{number}")) }
    }

    /// Gives it to the next.
    pub fn release(self) {
        fs::write(self.released, "").expect("it can be written");
        assert_eq!(self.request.join().expect("it ended").status, 200);
    }
}

/// Sends a request in a separate thread.
pub fn send(mut client: Client, request: Request) -> JoinHandle<Response> {
    thread::spawn(move || client.send(&request).expect("an answer"))
}

/// The cookies that a response sets, as the next request has them.
pub fn cookies(response: &Response) -> String {
    let pairs = response.all("set-cookie").filter_map(|line| line.split(';').next());
    pairs.filter(|pair| !pair.ends_with("=deleted")).collect::<Vec<_>>().join("; ")
}

/// Asserts that a request was deferred.
pub fn is_deferred(response: &Response) {
    assert_eq!(response.status, 503, "{}", response.text());
    assert!(cache_status(response).contains("deferred"), "{}", cache_status(response));
}
