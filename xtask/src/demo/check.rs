//! `cargo xtask demo --check`: runs the commands that the demo prints, and checks their results.
//!
//! The demo runs as a process of its own on a free port, as it would at a terminal. Then it is
//! sent SIGINT, must end with status 0, and none of its processes may be left. Each expectation is one line of
//! the outcome.

use harness::{Address, Client, Deadline, Process, Response, Wait, cpu};
use std::env;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Time for a build, a database and a few thousand articles on a slow machine.
const READY_WITHIN: Duration = Duration::from_secs(600);
const END_WITHIN: Duration = Duration::from_secs(60);
/// Bounds what is soon so.
const SOON: Duration = Duration::from_secs(60);

/// Runs the demo and tries it.
///
/// # Errors
/// The server that did not start, or how many expectations failed.
pub fn check(has_https: bool) -> Result<(), String> {
    let place = harness::PrivateDir::temporary("check").map_err(|error| error.to_string())?;
    let log = place.path().join("demo.log");
    let mut demo = start(&log, has_https)?;
    let address = wait_for_address(&mut demo, &log)?;
    let mut tries = Tries::default();
    let mut client = Client::new(address);
    tries.pages(&mut client);
    tries.by_hand(&mut client, &statement(&log, "5. "));
    if has_https {
        tries.https(&statement(&log, "7. "));
    }
    let started = cpu::descendants(demo.id());
    tries.expect("it runs PHP, MariaDB and Pagewell", started.len() > 5, &format!("{started:?}"));
    demo.signal(harness::Signal::INT);
    let ended = demo.wait(END_WITHIN);
    let in_order = matches!(ended, Wait::Ended(status) if status.success());
    tries.expect("Ctrl-C ends it in good order", in_order, &format!("{ended:?}\n{}", demo.log()));
    let left = left_of(&started);
    tries.expect("nothing is left running", left.is_empty(), &format!("{left:?}"));
    tries.outcome()
}

fn start(log: &Path, has_https: bool) -> Result<Process, String> {
    let this = env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(this);
    command.args(["demo", "--port", "0"]).args(has_https.then_some("--https"));
    Process::spawn("demo", &mut command, log).map_err(|error| error.to_string())
}

fn wait_for_address(demo: &mut Process, log: &Path) -> Result<Address, String> {
    let mut address = None;
    let ready = || {
        let output = std::fs::read_to_string(log).unwrap_or_default();
        // Its last line says that all is up.
        if output.contains("Ctrl-C") {
            let mut words = output.split_whitespace();
            address =
                words.find(|word| word.starts_with("http://")).and_then(|url| url.parse().ok());
        }
        address.is_some()
    };
    demo.wait_ready(READY_WITHIN, ready).map_err(|error| error.to_string())?;
    address.ok_or_else(|| "the demo named no address".to_owned())
}

/// The command that the demo proposes under this number: 5 changes a row, 7 shows the certificate.
fn statement(log: &Path, number: &str) -> String {
    let output = std::fs::read_to_string(log).unwrap_or_default();
    let line = output.lines().find_map(|line| line.trim().strip_prefix(number));
    line.unwrap_or_default().to_owned()
}

fn is_hit(page: &Response) -> bool {
    let status = page.header("cache-status").unwrap_or_default();
    status.split(';').any(|part| part.trim() == "hit")
}

fn left_of(pids: &[u32]) -> Vec<u32> {
    let deadline = Deadline::after(END_WITHIN);
    loop {
        let left: Vec<u32> = pids.iter().copied().filter(|pid| cpu::is_running(*pid)).collect();
        if left.is_empty() || deadline.passed() {
            return left;
        }
        std::thread::yield_now();
    }
}

#[derive(Default)]
struct Tries {
    passed: usize,
    failed: usize,
}

impl Tries {
    /// The walk through the site that the demo proposes.
    fn pages(&mut self, client: &mut Client) {
        // The database may be kept from another day: a comment that was not there before.
        let words = format!("Well said, {}.", std::process::id());
        self.page(client, "/news/4/", "the first request is rendered by PHP", RenderMoment::Now);
        self.page(client, "/news/4/", "the second is a hit", RenderMoment::Before);
        self.page(client, "/news/5/", "another page is rendered by PHP", RenderMoment::Now);
        self.page(client, "/", "the front page is rendered", RenderMoment::Now);
        self.page(client, "/", "the front page is a hit", RenderMoment::Before);
        self.page(
            client,
            "/random/",
            "a page without caching headers is rendered",
            RenderMoment::Now,
        );
        self.page(client, "/random/", "and rendered again each time", RenderMoment::Now);
        let posted =
            client.post("/news/4/", &format!("author=Ada&body={}", words.replace(' ', "+")));
        let status = posted.as_ref().map_or(0, |response| response.status);
        self.expect("a comment is accepted (303)", status == 303, &format!("{posted:?}"));
        let page = self.page(client, "/news/4/", "its page is rendered again", RenderMoment::Now);
        self.expect("and shows the comment", page.text().contains(&words), &page.text());
        self.soon(client, "/news/4/", "and is a hit again", is_hit);
        self.page(client, "/news/5/", "the other page is still cached", RenderMoment::Before);
        self.page(client, "/", "and the front page", RenderMoment::Before);
        let head = client.head("/news/4/").unwrap_or_default();
        self.expect("HEAD has the same status", head.status == 200, &format!("{head:?}"));
    }

    /// The certificate, by the command that it proposes.
    fn https(&mut self, statement: &str) {
        let output = Command::new("sh").args(["-c", statement]).output();
        let said = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        let has = |words| said.as_ref().is_ok_and(|said| said.contains(words));
        let is_right = has("Pebble Intermediate CA") && has("HTTP/2 200");
        self.expect(
            "HTTPS has a certificate of the local authority",
            is_right,
            &format!("{said:?}"),
        );
    }

    /// The row that the demo proposes to change, by the command that it proposes.
    fn by_hand(&mut self, client: &mut Client, statement: &str) {
        let output = Command::new("sh").args(["-c", statement]).output();
        let done = output.as_ref().is_ok_and(|output| output.status.success());
        self.expect("the database's client changes a title", done, &format!("{output:?}"));
        let what = "the page shows it without a purge";
        self.soon(client, "/news/4/", what, |page| page.text().contains("Changed by hand"));
        self.soon(client, "/news/4/", "and comes from memory again", is_hit);
        self.page(client, "/news/5/", "the other page was kept", RenderMoment::Before);
    }

    /// Expects a state within a moment: a page is stored again once every reader of the database sees the row.
    fn soon(
        &mut self,
        client: &mut Client,
        target: &str,
        what: &str,
        is: impl Fn(&Response) -> bool,
    ) {
        let deadline = Deadline::after(SOON);
        loop {
            let page = client.get(target).unwrap_or_default();
            let holds = is(&page);
            if holds || deadline.passed() {
                let seen = page.header("cache-status").unwrap_or_default().to_owned();
                return self.expect(&format!("{target}: {what}"), holds, &seen);
            }
            std::thread::yield_now();
        }
    }

    fn page(
        &mut self,
        client: &mut Client,
        target: &str,
        what: &str,
        made: RenderMoment,
    ) -> Response {
        let got = client.get(target);
        let response = got.as_ref().cloned().unwrap_or_default();
        let status = response.header("cache-status").unwrap_or_default();
        let hit = is_hit(&response);
        let as_expected = response.status == 200 && hit == (made == RenderMoment::Before);
        let seen =
            got.map_or_else(|error| error.to_string(), |got| format!("{} {status}", got.status));
        self.expect(&format!("{target}: {what}"), as_expected, &seen);
        response
    }

    fn expect(&mut self, what: &str, holds: bool, seen: &str) {
        if holds {
            self.passed += 1;
            println!("demo: ok      {what}");
        } else {
            self.failed += 1;
            println!("demo: FAILED  {what}\n    seen: {seen}");
        }
    }

    fn outcome(self) -> Result<(), String> {
        let line = format!("demo: {} passed, {} failed", self.passed, self.failed);
        if self.failed > 0 {
            return Err(line);
        }
        println!("{line}");
        Ok(())
    }
}

/// When a page was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RenderMoment {
    /// For this request.
    Now,
    /// For an earlier one.
    Before,
}
