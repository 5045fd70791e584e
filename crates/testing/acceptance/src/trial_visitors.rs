//! Visitors of a trial beside those of a test (`PAGEWELL_TRIAL`, `make trial`): the test gets hits, as nine in ten
//! addresses do. After each of its requests two other visitors send the same one; they get the answers of the
//! application, which Pagewell compares with its pages. `php/tests/Support/TrialVisitors.php` is the same for PHP.
//!
//! `PAGEWELL_TRIAL` is the budget of the comparisons: `100%`, or `default`. Without it nothing of this happens.

use crate::{advance, counter};
use harness::{Address, Client, Pagewell, Request};
use serde_json::Value;
use socket2::{Domain, Socket, Type};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The first lines of a configuration; nothing without a trial.
pub fn trial_config() -> String {
    let budget = match std::env::var("PAGEWELL_TRIAL").as_deref() {
        Err(_) | Ok("") => return String::new(),
        Ok("default") => String::new(),
        Ok(budget) => format!("trial.budget = {budget:?}\n"),
    };
    format!("mode = \"trial\"\ntrial.serve = \"90%\"\n{budget}")
}

/// The report of the only trial of a running Pagewell.
///
/// # Panics
/// The control interface does not answer with JSON.
pub fn trial_report(pagewell: &Pagewell) -> Value {
    let answer = Client::new(pagewell.admin().clone()).get("/v1/trial").expect("an answer");
    let mut all: Value = serde_json::from_slice(&answer.content).expect("JSON");
    all["trials"][0].take()
}

/// The findings of a trial that nobody accepted, each as `class pattern`: the wrong pages if `is_wrong`, else the notices.
pub fn trial_found(pagewell: &Pagewell, is_wrong: bool) -> Vec<String> {
    let wrong = ["broken-promise", "leak", "leak-or-aged", "aged", "late", "by-the-clock"];
    let text = |problem: &Value, name: &str| problem[name].as_str().unwrap_or_default().to_owned();
    let report = trial_report(pagewell);
    let problems = report["problems"].as_array().expect("a trial").iter();
    problems
        .filter(|problem| problem["is_accepted"] != true)
        .map(|problem| (text(problem, "class"), text(problem, "pattern")))
        .filter(|(class, _)| wrong.contains(&class.as_str()) == is_wrong)
        .map(|(class, pattern)| format!("{class} {pattern}"))
        .collect()
}

/// The differences that a trial has not explained although it had renders, or that differ from a page that is not stored
/// again, each as `reason pattern`. Others are printed: the machine may have had no time, or a change ended the page.
pub fn trial_suspects(pagewell: &Pagewell) -> Vec<String> {
    let report = trial_report(pagewell);
    let with_reason = |pattern: &Value| {
        let pattern = pattern.as_str().unwrap_or_default();
        format!("{} {pattern}", report["suspect_reasons"][pattern].as_str().unwrap_or("unknown"))
    };
    let all = report["suspects"].as_array().expect("a trial").iter().map(with_reason);
    let is_by_renders = |suspect: &String| {
        let reasons = ["cause-unknown ", "render-failed ", "not-stored "];
        reasons.iter().any(|reason| suspect.starts_with(reason))
    };
    let (by_renders, others): (Vec<String>, Vec<String>) = all.partition(is_by_renders);
    others.iter().for_each(|suspect| println!("trial, not explained: {suspect}"));
    by_renders
}

/// Visitors that send the requests of a test again, from other addresses.
pub struct TrialVisitors {
    addresses: Vec<Ipv4Addr>,
    sent: AtomicUsize,
}

impl TrialVisitors {
    /// Starts a Pagewell with its visitors, if there is a trial. It is started again if the address of the test is by
    /// chance not among those that get hits.
    pub fn start(start: impl Fn() -> Pagewell) -> (Pagewell, Option<TrialVisitors>) {
        loop {
            let pagewell = start();
            if trial_config().is_empty() {
                return (pagewell, None);
            }
            let mut visitors = TrialVisitors { addresses: Vec::new(), sent: AtomicUsize::new(0) };
            (1..=40).for_each(|n| knock(&pagewell, Ipv4Addr::new(127, 1, 0, n)));
            let all = (1..=250).map(|n| Ipv4Addr::new(127, 2, 0, n));
            visitors.addresses = all.filter(|at| is_in_trial(&pagewell, *at)).take(4).collect();
            if !is_in_trial(&pagewell, Ipv4Addr::LOCALHOST) {
                return (pagewell, Some(visitors));
            }
        }
    }

    /// Sends a request of the test again, as two other visitors.
    pub fn visit(&self, pagewell: &Pagewell, request: &Request, host: &str) {
        for _ in 0..2 {
            let n = self.sent.fetch_add(1, Ordering::Relaxed);
            let bytes = request.clone().header("Connection", "close").to_bytes(host);
            if bytes.starts_with(b"GET ") {
                send(pagewell, self.addresses[n % self.addresses.len()], &bytes);
            } else {
                knock(pagewell, Ipv4Addr::new(127, 1, 0, (n % 200) as u8 + 1));
            }
        }
    }

    /// Waits until all comparisons have ended, prints the figures, and expects that something was compared, if any page was
    /// stored, and nothing is wrong or differs without an explanation.
    ///
    /// # Panics
    /// The report has a wrong page, a suspect as of [`trial_suspects`], or no comparison of the stored ones.
    pub fn found_nothing(&self, pagewell: &Pagewell) {
        let (mut last, mut same) = (0, 0);
        for round in 0..1_200 {
            std::thread::sleep(Duration::from_millis(50));
            let (answers, watched) =
                (counter(pagewell, "trial_answers"), counter(pagewell, "audit_watched"));
            if watched > 0 && round % 20 == 19 {
                // A purge within a minute would have been late.
                advance(pagewell, 61);
            }
            same = if answers == last && watched == 0 { same + 1 } else { 0 };
            if same >= 20 {
                break;
            }
            last = answers;
        }
        let report = trial_report(pagewell);
        println!("trial: {report:#}");
        let compared = report["compared"].as_u64().expect("a number");
        let may_be_none = counter(pagewell, "stored") == 0;
        assert!(compared > 0 || may_be_none, "nothing was compared: {}", pagewell.log());
        assert_eq!(trial_found(pagewell, true), [""; 0], "{}", pagewell.log());
        assert_eq!(trial_suspects(pagewell), [""; 0], "{}", pagewell.log());
    }
}

/// A request that Pagewell refuses, so that no address makes more than half of the requests.
fn knock(pagewell: &Pagewell, from: Ipv4Addr) {
    send(pagewell, from, b"GET / HTTP/1.1\r\nHost: no host\r\nConnection: close\r\n\r\n");
}

fn is_in_trial(pagewell: &Pagewell, address: Ipv4Addr) -> bool {
    let call = serde_json::json!({ "url": "/", "from": address }).to_string();
    pagewell.explain(&call).expect("an explanation").to_string().contains("is in a trial")
}

fn send(pagewell: &Pagewell, from: Ipv4Addr, bytes: &[u8]) {
    let Address::Tcp(address) = pagewell.address() else { panic!("not TCP") };
    let socket = Socket::new(Domain::for_address(*address), Type::STREAM, None).expect("a socket");
    socket.bind(&SocketAddr::from((from, 0)).into()).expect("an address of this machine");
    socket.connect(&(*address).into()).expect("it accepts connections");
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(crate::BOUND)).expect("can be set");
    stream.write_all(bytes).expect("it is sent");
    // The answer is for nobody.
    let _ = stream.read_to_end(&mut Vec::new());
}
