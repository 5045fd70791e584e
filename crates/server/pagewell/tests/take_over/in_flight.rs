//! Changes that are in flight when a process ends: a slow write whose client waits or has disconnected. Either
//! the process that then has the pages applies the change, or no stored page is used. A change that cannot be
//! published is not acknowledged. The test plays the origin, so that it outlives all processes and answers
//! writes on command.

use super::{Story, ended, shown, truth};
use acceptance::{Raw, Site, asked_again, client, counter, is_hit, until};
use harness::{Pagewell, PrivateDir, Request, Response, Signal};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

/// Longer than any test.
const LONG: &str = "1h";
/// Over before anything has happened.
const SHORT: &str = "50ms";

/// An origin whose pages show the current value. Those below `/truth` have its tag.
struct Origin {
    address: String,
    truth: Arc<AtomicU64>,
    writes: Receiver<TcpStream>,
}

impl Origin {
    fn new() -> Origin {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound").to_string();
        let (truth, (sender, writes)) = (Arc::new(AtomicU64::new(0)), channel());
        let shown = truth.clone();
        // It ends with the test process.
        std::thread::spawn(move || serve(&listener, &shown, &sender));
        Origin { address, truth, writes }
    }

    /// The next write, which waits for its response.
    fn write(&self) -> TcpStream {
        self.writes.recv_timeout(super::BOUND).expect("a write")
    }

    /// Carries out the write, and responds if the client is still connected.
    fn carry_out(&self, mut write: TcpStream) {
        self.truth.fetch_add(1, Ordering::SeqCst);
        let fields = "Cache-Group-Invalidation: \"truth\"\r\n";
        let _ = write.write_all(answer(fields, "written").as_bytes());
    }
}

fn serve(listener: &TcpListener, truth: &AtomicU64, writes: &Sender<TcpStream>) {
    for stream in listener.incoming() {
        let mut stream = stream.expect("a connection");
        let head = asked_again(&mut stream);
        if head.starts_with("post") {
            writes.send(stream).expect("the test waits");
            continue;
        }
        let tag = if head.starts_with("get /truth") { "truth" } else { "other" };
        let fields = format!("Cache-Control: max-age=86400\r\nCache-Groups: \"{tag}\"\r\n");
        let content = format!("truth={};", truth.load(Ordering::SeqCst));
        // The client may have disconnected.
        let _ = stream.write_all(answer(&fields, &content).as_bytes());
    }
}

fn answer(fields: &str, content: &str) -> String {
    let length = content.len();
    format!(
        "HTTP/1.1 200 OK\r\nConnection: close\r\n{fields}Content-Length: {length}\r\n\r\n{content}"
    )
}

/// A site with such an origin.
struct Stage {
    origin: Origin,
    story: Story,
}

impl Stage {
    fn new() -> Stage {
        let site = Site::new(&[]);
        Stage { origin: Origin::new(), story: Story { site, config: String::new() } }
    }

    fn config(&self, drain: &str) -> String {
        let (site, origin) = (&self.story.site, &self.origin.address);
        let directory = site.at("snapshots");
        let text = format!(
            "site.origin = \"http://{origin}\"\n[limits]\ndrain = {drain:?}\nhalf_closed_timeout = \"1ms\"\n\
             [snapshot]\ndirectory = {directory:?}\nunwatched = \"serve\"\n"
        );
        let file = site.at(&format!("{drain}.toml"));
        std::fs::write(&file, text).expect("written");
        file.display().to_string()
    }

    /// Starts the first process, with two cached pages.
    fn begin(&self, drain: &str) -> Pagewell {
        let args = ["--memory", "64M", "--config", &self.config(drain)];
        let first = Pagewell::start(super::binary(), &args).expect("pagewell starts");
        for path in ["/truth", "/other"] {
            until("the page is stored", || is_hit(&get(&first, path)));
        }
        first
    }

    fn command(&self, before: &Pagewell, drain: &str) -> Command {
        let mut command = Command::new(super::binary());
        command.args(["serve", "--memory", "64M", "--config", &self.config(drain)]);
        command.args(["--listen", &shown(before.address())]);
        command.args(["--admin", &shown(before.admin())]);
        command
    }

    /// Starts a process that takes over, including the pages.
    fn take_over(&self, before: &Pagewell, drain: &str) -> Pagewell {
        let mut command = self.command(before, drain);
        let next = started(command.arg("--take-over"));
        until("the pages are put in", || counter(&next, "snapshot_pages") == 2);
        // If the previous process may not wait, it may already have ended, with all pages.
        let is_there = is_hit(&get(&next, "/other"));
        until("they are there, or lost", || is_there || next.log().contains("predecessor-lost"));
        next
    }

    /// Starts a process at the same addresses, and waits until it has loaded the remaining snapshots.
    fn start(&self, before: &Pagewell) -> Pagewell {
        let next = started(&mut self.command(before, LONG));
        until("what was left is taken up", || {
            let ready = harness::Client::new(next.admin().clone()).get("/v1/ready");
            ready.is_ok_and(|answer| answer.status == 200)
        });
        next
    }

    /// A write that has reached the origin.
    fn write(&self, pagewell: &Pagewell) -> (Raw, TcpStream) {
        let request = "POST /write HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n";
        (Raw::with(pagewell, request), self.origin.write())
    }

    /// A write that has reached the origin, and whose client has disconnected.
    fn write_and_leave(&self, pagewell: &Pagewell) -> TcpStream {
        let (client, write) = self.write(pagewell);
        drop(client);
        until("he has left", || counter(pagewell, "connections") == 0);
        write
    }
}

fn started(command: &mut Command) -> Pagewell {
    let dir = PrivateDir::temporary("next").expect("a directory can be made");
    Pagewell::start_command(dir, command).expect("it starts")
}

fn get(pagewell: &Pagewell, path: &str) -> Response {
    let request = Request::new("GET", path).header("Host", "a.test");
    client(pagewell).send(&request).expect("an answer")
}

fn shows(pagewell: &Pagewell, n: u64) -> bool {
    truth(&get(pagewell, "/truth").text()) == n
}

fn told_to_stop(pagewell: &Pagewell) {
    pagewell.signal(Signal::TERM);
    until("nobody new is let in", || !pagewell.address().accepts());
}

#[test]
fn an_old_control_connection_reports_the_handover() {
    let stage = Stage::new();
    let first = stage.begin(LONG);
    let mut kept = harness::Client::new(first.admin().clone());
    assert_eq!(kept.get("/v1/ready").expect("an answer").status, 200);
    // It is running until its write is complete.
    let (_visitor, write) = stage.write(&first);
    let _next = stage.take_over(&first, LONG);
    let answer = kept.get("/v1/ready").expect("an answer");
    assert_eq!(answer.status, 503);
    assert!(answer.text().contains(r#""reasons":["handed-over"]"#), "{}", answer.text());
    stage.origin.carry_out(write);
}

#[test]
fn a_write_that_takes_longer_than_the_old_process_takes_the_pages_with_it() {
    let stage = Stage::new();
    let first = stage.begin(SHORT);
    let (mut client, write) = stage.write(&first);
    let next = stage.take_over(&first, LONG);
    ended(first);
    assert_eq!(client.rest(), "", "nothing is acknowledged");
    stage.origin.carry_out(write);
    until("what is not known counts as changed", || shows(&next, 1));
    assert!(next.log().contains("predecessor-lost"), "{}", next.log());
}

#[test]
fn a_write_that_is_answered_at_the_last_moment_counts() {
    let stage = Stage::new();
    let first = stage.begin(SHORT);
    let mut idle = Raw::with(&first, "GET /other HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert_eq!(idle.answer().status, 200);
    let (mut client, write) = stage.write(&first);
    let next = stage.take_over(&first, LONG);
    // Its time is over, and it is about to end.
    assert_eq!(idle.rest(), "");
    stage.origin.carry_out(write);
    match client.rest() {
        cut if cut.is_empty() => {}
        answered => {
            assert!(answered.contains("written"), "{answered}");
            assert!(shows(&next, 1), "it was acknowledged");
        }
    }
    ended(first);
    until("what is not known counts as changed", || shows(&next, 1));
}

#[test]
fn a_write_of_a_disconnected_client_is_sent_to_the_successor() {
    let stage = Stage::new();
    let mut first = stage.begin(LONG);
    let write = stage.write_and_leave(&first);
    let next = stage.take_over(&first, LONG);
    assert_eq!(first.wait(std::time::Duration::ZERO), harness::Wait::Running);
    stage.origin.carry_out(write);
    ended(first);
    assert!(shows(&next, 1));
    assert!(is_hit(&get(&next, "/other")), "nothing else has changed");
    assert!(!next.log().contains("predecessor-lost"), "{}", next.log());
}

#[test]
fn a_write_whose_visitor_has_left_and_which_takes_too_long_takes_the_pages_with_it() {
    let stage = Stage::new();
    let first = stage.begin(SHORT);
    let write = stage.write_and_leave(&first);
    let next = stage.take_over(&first, LONG);
    ended(first);
    stage.origin.carry_out(write);
    until("what is not known counts as changed", || shows(&next, 1));
}

#[test]
fn a_stop_waits_for_a_write_whose_visitor_has_left() {
    let stage = Stage::new();
    let first = stage.begin(LONG);
    let write = stage.write_and_leave(&first);
    told_to_stop(&first);
    stage.origin.carry_out(write);
    let mut next = stage.command(&first, LONG);
    ended(first);
    let next = started(&mut next);
    until("the other page is put in", || counter(&next, "snapshot_pages") == 1);
    assert!(is_hit(&get(&next, "/other")));
    assert!(shows(&next, 1));
}

#[test]
fn a_stop_that_cannot_wait_so_long_leaves_nothing_to_be_relied_on() {
    for has_left in [true, false] {
        let stage = Stage::new();
        let first = stage.begin(SHORT);
        let (client, write) = if has_left {
            (None, stage.write_and_leave(&first))
        } else {
            let (client, write) = stage.write(&first);
            (Some(client), write)
        };
        told_to_stop(&first);
        let mut next = stage.command(&first, LONG);
        ended(first);
        assert!(client.is_none_or(|mut client| client.rest().is_empty()));
        stage.origin.carry_out(write);
        let next = started(&mut next);
        assert!(shows(&next, 1), "{}", next.log());
        assert_eq!(counter(&next, "snapshot_pages"), 0);
    }
}

#[test]
fn a_successor_stops_after_its_predecessor_so_that_the_third_gets_all_changes() {
    let stage = Stage::new();
    let first = stage.begin(LONG);
    let (mut client, write) = stage.write(&first);
    let second = stage.take_over(&first, LONG);
    told_to_stop(&second);
    stage.origin.carry_out(write);
    assert_eq!(client.answer().content, "written");
    ended(first);
    let mut third = stage.command(&second, LONG);
    ended(second);
    let third = started(&mut third);
    until("the other page is put in", || counter(&third, "snapshot_pages") == 1);
    assert!(is_hit(&get(&third, "/other")));
    assert!(shows(&third, 1));
}

#[test]
fn a_change_that_the_third_process_misses_is_not_acknowledged() {
    let stage = Stage::new();
    let first = stage.begin(LONG);
    let (mut client, write) = stage.write(&first);
    let second = stage.take_over(&first, SHORT);
    told_to_stop(&second);
    let mut third = stage.command(&second, LONG);
    ended(second);
    let third = started(&mut third);
    until("it remembers", || is_hit(&get(&third, "/truth")));
    assert_eq!(counter(&third, "snapshot_pages"), 0, "there was nothing to be relied on");
    stage.origin.carry_out(write);
    assert_eq!(client.rest(), "", "it is not acknowledged: the third does not know it");
    ended(first);
}

#[test]
fn a_change_that_a_killed_successor_misses_is_not_acknowledged() {
    let stage = Stage::new();
    let first = stage.begin(LONG);
    let (mut client, write) = stage.write(&first);
    let mut second = stage.take_over(&first, LONG);
    second.kill();
    // The journal records a change in flight, but only the first process knows which one.
    let third = stage.start(&second);
    assert_eq!(counter(&third, "snapshots_refused"), 1, "{}", third.log());
    assert!(!is_hit(&get(&third, "/truth")));
    stage.origin.carry_out(write);
    assert_eq!(client.rest(), "");
    ended(first);
}
