//! A cluster: nodes share invalidations through a stream. An invalidation on one node applies on all nodes,
//! whatever its source. A node that misses entries purges its pages. Invalidations that cannot be published
//! stay pending.
//!
//! Two Pagewells in front of one site, each with its own cache, and a real Valkey or Redis. The data are in
//! files that the scripts of both sites read.

mod ends;
mod failover;
mod nodes;
mod trial;
mod unpublished;

use crate::paper::{ask, get, post, shows, stored};
use acceptance::{Site, advance, binary, cache_status, counter, is_hit, until};
use harness::{Pagewell, Request, Response, Signal, Valkey};
use std::fs;
use std::process::Command;

/// Shows a file, and has its tag.
const PAGE: &str = r#"<?php
header('Cache-Control: max-age=3600, stale-while-revalidate=3600');
$n = basename($_GET['n']);
header("Cache-Groups: \"file:$n\"");
if (isset($_GET['mine'])) {
    header('Cache-Control: private, max-age=3600', true);
}
echo "$n=", @file_get_contents(getenv('NOTES') . "/truth-$n");
"#;

/// Changes a file, and invalidates it by its response.
const WRITE: &str = r#"<?php
$n = basename($_GET['n']);
$file = getenv('NOTES') . "/truth-$n";
file_put_contents("$file.new", $_GET['to']);
rename("$file.new", $file);
if (isset($_GET['held'])) {
    note('written');
    wait_for('go');
}
if (!isset($_GET['silent'])) {
    header("Cache-Group-Invalidation: \"file:$n\"");
}
echo 'written';
"#;

struct Machines {
    site: Site,
    stream: Valkey,
}

impl Machines {
    fn new() -> Machines {
        let site = Site::new(&[("page.php", PAGE), ("write.php", WRITE)]);
        (1..=9).for_each(|n| truth(&site, n, "old"));
        Machines { site, stream: Valkey::start(&[]).expect("a server") }
    }

    /// The configuration of a node. If `more` does not set the time limits, they are longer than a busy machine
    /// needs: a write is answered when all nodes have applied it. A node that leaves without an announcement makes
    /// writes late.
    fn config(&self, more: &str, tables: &str) -> String {
        let socket = self.stream.socket().display();
        let lag = if more.contains("lag") { "" } else { "lag_max = \"30s\"\n" };
        let barrier = if more.contains("barrier") { "" } else { "barrier = \"20s\"\n" };
        format!(
            "[cluster]\nurl = \"redis://localhost?socket={socket}\"\n{lag}{barrier}{more}\n{tables}"
        )
    }

    /// Starts a node. `more` is configuration for the stream; other tables follow.
    fn machine(&self, more: &str, tables: &str) -> Pagewell {
        self.site.serve(&self.config(more, tables))
    }

    /// Starts two nodes with these pages in their caches.
    fn both(&self, pages: &[&str]) -> [Pagewell; 2] {
        let both = [self.machine("", ""), self.machine("", "")];
        both.iter().for_each(|one| pages.iter().for_each(|path| stored(one, path)));
        both
    }

    /// Changes a file without an invalidation.
    fn truth(&self, n: u32, text: &str) {
        truth(&self.site, n, text);
    }

    /// The number of nodes that are registered as reading, and of those that have left.
    fn readers(&self) -> [usize; 2] {
        let all = self.stream.command(&["HVALS", "pagewell/read"]).expect("a list");
        let (gone, there): (Vec<&str>, Vec<&str>) =
            all.lines().filter(|line| !line.is_empty()).partition(|line| line.starts_with("gone"));
        [there.len(), gone.len()]
    }

    fn entries(&self) -> String {
        self.stream.command(&["XRANGE", "pagewell", "-", "+"]).expect("a list")
    }
}

fn truth(site: &Site, n: u32, text: &str) {
    fs::write(site.at("notes").join(format!("truth-{n}")), text).expect("it is written");
}

/// Waits until this number of gaps is counted; a request may find its page purged before.
fn has_gaps(pagewell: &Pagewell, count: u64) {
    until("the gap is counted", || counter(pagewell, "database_gaps") == count);
}

fn is_late(response: &Response) -> bool {
    cache_status(response).contains("changes-late")
}

fn invalidate(pagewell: &Pagewell, what: &str) -> String {
    let answer = pagewell.invalidate(what).expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text()
}

const ONE: &str = "/page.php?n=1";
const TWO: &str = "/page.php?n=2";

#[test]
fn an_invalidation_on_one_node_applies_on_all() {
    let machines = Machines::new();
    let [here, there] = machines.both(&[ONE, TWO]);
    let said: [(&str, &dyn Fn()); 7] = [
        ("control", &|| drop(invalidate(&here, "{\"tags\":[\"file:1\"]}"))),
        ("an address", &|| drop(invalidate(&here, "{\"urls\":[\"/page.php?n=1\"]}"))),
        ("an answer", &|| drop(post(&here, "/write.php?n=1&to=new"))),
        ("a write to its address", &|| drop(post(&here, ONE))),
        ("a purge", &|| drop(ask(&here, Request::new("PURGE", ONE)))),
        ("a key", &|| {
            let purge = Request::new("PURGE", "/").header("xkey", "file:1");
            assert_eq!(ask(&here, purge).status, 200);
        }),
        ("by hand", &|| {
            let put = ["XADD", "pagewell", "*", "url", "https://paper.test/page.php?n=1"];
            machines.stream.command(&put).expect("an entry");
        }),
    ];
    for (round, (how, say)) in said.into_iter().enumerate() {
        let new = format!("round{round}");
        machines.truth(1, &new);
        assert!(is_hit(&get(&there, ONE)), "{how}");
        say();
        // A writing script changes the file itself.
        let new = if how == "an answer" { "new".to_owned() } else { new };
        if how == "by hand" {
            shows(&there, ONE, &format!("1={new}"));
            shows(&here, ONE, &format!("1={new}"));
        }
        // No wait is needed: the write was acknowledged when the other node had applied it.
        assert_eq!(get(&there, ONE).text(), format!("1={new}"), "{how}: {}", there.log());
        assert_eq!(get(&here, ONE).text(), format!("1={new}"), "{how}");
        stored(&there, ONE);
        stored(&here, ONE);
        assert!(is_hit(&get(&there, TWO)), "{how}: {}", there.log());
    }
    // An expression over URLs has no tag: every page is purged.
    machines.truth(2, "new");
    let expression = Request::new("BAN", "/").header("x-ban-url", "^/page.php");
    assert_eq!(ask(&here, expression).status, 200);
    assert_eq!(get(&there, TWO).text(), "2=new");
    until("by hand; nobody hears himself", || counter(&here, "cluster_received") == 1);
    assert_eq!(counter(&here, "cluster_published"), 7, "{}", machines.entries());
    assert_eq!(counter(&there, "cluster_received"), 8);
    for one in [&here, &there] {
        assert_eq!((counter(one, "database_gaps"), counter(one, "cluster_pending")), (0, 0));
    }
    let why = there.explain("{\"url\":\"/page.php?n=1\"}").expect("an explanation").to_string();
    assert!(why.contains("an entry of the stream") || why.contains("the node "), "{why}");
}

#[test]
fn a_soft_invalidation_applies_on_all_nodes() {
    let machines = Machines::new();
    let [here, there] = machines.both(&[ONE]);
    machines.truth(1, "new");
    let told = invalidate(&here, "{\"tags\":[\"file:1\"],\"soft\":true}");
    assert!(told.contains("\"marked\":1") && !told.contains("late"), "{told}");
    assert_eq!(counter(&there, "cluster_received"), 1);
    // The stale page once more, while it is refreshed.
    assert_eq!(get(&there, ONE).text(), "1=old");
    shows(&there, ONE, "1=new");
}

#[test]
fn a_clients_write_purges_its_private_copies_on_all_nodes() {
    let machines = Machines::new();
    let private = "[private]\nenabled = true\ncookies = [\"sid\"]\n";
    let [here, there] = [machines.machine("", private), machines.machine("", private)];
    let mine = |pagewell: &Pagewell, who: &str| {
        let cookie = format!("sid={who}-0123456789abcdef");
        ask(pagewell, Request::get("/page.php?n=1&mine").header("Cookie", &cookie))
    };
    let has = |who| until("a copy is kept", || is_hit(&mine(&there, who)));
    has("anna");
    has("bert");
    machines.truth(1, "new");
    let write = Request::form("/write.php?n=7&to=x&silent", "")
        .header("Cookie", "sid=anna-0123456789abcdef");
    assert_eq!(ask(&here, write).status, 200);
    assert_eq!(mine(&there, "anna").text(), "1=new", "{}", machines.entries());
    assert_eq!(mine(&there, "bert").text(), "1=old", "{}", machines.entries());
}

/// Writes through one node after the other, and reads from all nodes after each write; `between` is called
/// before each write. Once a write has been acknowledged no node shows older data, unless the response is
/// marked as late. Returns the number of writes that were not late.
fn write_and_read(all: &[Pagewell], writes: u32, mut between: impl FnMut(u32)) -> u32 {
    let number = |response: &Response| {
        response.text().trim_start_matches("1=").parse::<u32>().unwrap_or_default()
    };
    let mut in_time = 0;
    for n in 1..=writes {
        between(n);
        let writer = &all[n as usize % all.len()];
        let written = post(writer, &format!("/write.php?n=1&to={n}"));
        let late = is_late(&written);
        in_time += u32::from(!late);
        for reader in all {
            let shown = number(&get(reader, ONE));
            assert!(shown == n || late, "{shown} after {n}: {}", reader.log());
        }
    }
    all.iter().for_each(|one| shows(one, ONE, &format!("1={writes}")));
    in_time
}

#[test]
fn clients_read_their_own_writes_on_every_node() {
    let machines = Machines::new();
    let all = [(); 3].map(|()| machines.machine("", ""));
    // A very busy node may be late.
    assert!(write_and_read(&all, 300, |_| {}) > 200);
    for one in &all {
        assert_eq!(counter(one, "database_gaps"), 0, "{}", one.log());
        until("all is received", || counter(one, "cluster_received") == 200);
        assert!(counter(one, "hits") > 0, "{}", one.log());
    }
}

/// Repeatedly, connections are closed, and the stream or all other data of the server is deleted.
#[test]
fn faults_of_the_stream_show_no_outdated_page() {
    let machines = Machines::new();
    let all = [(); 3].map(|()| machines.machine("barrier = \"500ms\"", ""));
    let faults: [&[&str]; 4] = [
        &["CLIENT", "KILL", "TYPE", "normal"],
        &["DEL", "pagewell"],
        &["FLUSHALL"],
        &["XTRIM", "pagewell", "MAXLEN", "0"],
    ];
    let in_time = write_and_read(&all, 200, |n| {
        if n.is_multiple_of(10) {
            let fault = faults[n as usize / 10 % faults.len()];
            machines.stream.command(fault).expect("it is done");
        }
    });
    assert!(in_time > 20, "{in_time}");
    until("one has a gap", || all.iter().any(|one| counter(one, "database_gaps") > 0));
}

#[test]
fn an_unreachable_stream_makes_writes_late() {
    let mut machines = Machines::new();
    let bound = "lag_max = \"500ms\"\nbarrier = \"200ms\"";
    let [here, there] = [machines.machine(bound, ""), machines.machine(bound, "")];
    [&here, &there].into_iter().for_each(|one| stored(one, ONE));
    machines.stream.stop();
    // The write is still answered, with a note.
    let said = post(&here, "/write.php?n=1&to=new");
    assert!(is_late(&said), "{}", cache_status(&said));
    assert!(invalidate(&here, "{\"tags\":[\"file:2\"]}").contains("\"late\":true"));
    let (text, _) = run(&here, &["invalidate", "--tag", "file:3"]);
    assert!(text.contains("the cluster's other nodes"), "{text}");
    assert!(counter(&here, "cluster_pending") >= 3);
    until("pages of before are not shown any more", || get(&there, ONE).text() == "1=new");
    until("nor kept", || !is_hit(&get(&there, ONE)));
    until("one says so", || there.log().contains("database-away"));
    until("the other says so", || here.log().contains("cluster-pending"));
    // An empty server, which knows nothing of the past.
    machines.stream.start_again().expect("it starts");
    for one in [&here, &there] {
        stored(one, ONE);
        until("it says so", || one.log().contains("another-server"));
    }
    until("all is told", || counter(&here, "cluster_pending") == 0);
    assert!(machines.entries().contains("file:2") && machines.entries().contains("file:3"));
    machines.truth(1, "newer");
    invalidate(&here, "{\"tags\":[\"file:1\"]}");
    shows(&there, ONE, "1=newer");
}

/// The server has lost the position of each node, and one node has not noticed yet: writes wait for it.
#[test]
fn writes_wait_for_a_node_whose_position_was_lost() {
    let machines = Machines::new();
    let bound = "barrier = \"100ms\"";
    let [here, there] = [machines.machine(bound, ""), machines.machine(bound, "")];
    [&here, &there].into_iter().for_each(|one| stored(one, ONE));
    until("no write is late", || !is_late(&post(&here, "/write.php?n=2&to=x")));
    there.freeze();
    machines.stream.command(&["DEL", "pagewell/read"]).expect("it is gone");
    assert!(is_late(&post(&here, "/write.php?n=1&to=new")));
    there.signal(Signal::CONT);
    shows(&there, ONE, "1=new");
    until("nobody is late", || !is_late(&post(&here, "/write.php?n=2&to=y")));
}

#[test]
fn entries_removed_before_they_are_read_are_a_gap() {
    let machines = Machines::new();
    let pagewell = machines.machine("", "");
    let put = |what: &str| {
        machines.stream.command(&["XADD", "pagewell", "*", "tag", what]).expect("an entry");
    };
    put("other");
    let lost: [(&str, &[&[&str]]); 3] = [
        ("trimmed", &[&["XADD", "pagewell", "MAXLEN", "1", "*", "tag", "other"]]),
        ("deleted", &[&["DEL", "pagewell"]]),
        ("begun anew", &[&["DEL", "pagewell"], &["XADD", "pagewell", "*", "tag", "other"]]),
    ];
    for (gaps, (what, commands)) in (1..).zip(lost) {
        stored(&pagewell, ONE);
        let received = || counter(&pagewell, "cluster_received");
        let before = received();
        put("other");
        put("other");
        until("all is read", || received() >= before + 2);
        machines.truth(1, what);
        // For a reader, the change and its deletion happen at the same time.
        let change: &[&str] = &["XADD", "pagewell", "*", "tag", "file:1"];
        transaction(&machines.stream, &[&[change], commands].concat());
        shows(&pagewell, ONE, &format!("1={what}"));
        has_gaps(&pagewell, gaps);
        assert!(pagewell.log().contains("position-ahead"), "{}", pagewell.log());
    }
}

/// A wait for an entry includes the entries before it, even if they have been deleted.
#[test]
fn a_gap_is_detected_before_later_entries_apply() {
    let machines = Machines::new();
    let [here, there] = machines.both(&[ONE]);
    let put: &[&str] = &["XADD", "pagewell", "*", "tag", "file:1"];
    let gone: [&[&[&str]]; 3] = [
        &[put, &["XTRIM", "pagewell", "MAXLEN", "0"]],
        &[put, &["DEL", "pagewell"]],
        &[
            &["XADD", "pagewell", "9999999999999-0", "tag", "file:1"],
            &["XDEL", "pagewell", "9999999999999-0"],
        ],
    ];
    for (round, commands) in (1..).zip(gone) {
        let new = format!("round{round}");
        machines.truth(1, &new);
        transaction(&machines.stream, commands);
        if !is_late(&post(&here, "/write.php?n=2&to=x")) {
            assert_eq!(get(&there, ONE).text(), format!("1={new}"), "{}", there.log());
        }
        shows(&there, ONE, &format!("1={new}"));
        has_gaps(&there, round);
        stored(&there, ONE);
    }
}

/// Ids are times, and the clock of another server may be behind.
#[test]
fn a_position_in_another_server_does_not_count() {
    let mut machines = Machines::new();
    let [here, there] = [(); 2].map(|()| machines.machine("barrier = \"200ms\"", ""));
    [&here, &there].into_iter().for_each(|one| stored(one, ONE));
    let put = ["XADD", "pagewell", "9999999999999-0", "tag", "file:2"];
    machines.stream.command(&put).expect("an entry");
    until("both have it", || {
        [&here, &there].iter().all(|one| counter(one, "cluster_received") == 1)
    });
    until("no write is late", || !is_late(&post(&here, "/write.php?n=3&to=x")));
    there.freeze();
    machines.stream.stop();
    machines.stream.start_again().expect("it starts");
    until("it is told", || {
        post(&here, "/write.php?n=1&to=new");
        counter(&here, "cluster_pending") == 0
    });
    assert!(is_late(&post(&here, "/write.php?n=1&to=new")), "{}", machines.entries());
    there.signal(Signal::CONT);
    shows(&there, ONE, "1=new");
}

/// An entry that is in the stream is published, even if the server cannot be queried.
#[test]
fn an_entry_is_published_once() {
    let machines = Machines::new();
    let here = machines.machine("barrier = \"100ms\"", "");
    until("it reads", || machines.readers() == [1, 0]);
    transaction(&machines.stream, &[&["DEL", "pagewell/read"], &["SET", "pagewell/read", "x"]]);
    for number in 1..=3 {
        invalidate(&here, "{\"tags\":[\"file:1\"]}");
        until("it is told", || counter(&here, "cluster_published") == number);
    }
    assert_eq!(machines.stream.command(&["XLEN", "pagewell"]).expect("a number"), "3");
}

#[test]
fn an_invalid_entry_is_skipped() {
    let machines = Machines::new();
    let pagewell = machines.machine("", "");
    stored(&pagewell, ONE);
    machines.truth(1, "new");
    let script = "redis.call('XADD', 'pagewell', '*', 'tag', string.rep('x', 70000000))";
    machines.stream.command(&["EVAL", script, "0"]).expect("it is put there");
    shows(&pagewell, ONE, "1=new");
    has_gaps(&pagewell, 1);
    stored(&pagewell, ONE);
    machines.stream.command(&["XADD", "pagewell", "*", "tag", "file:1"]).expect("an entry");
    until("it is read on", || counter(&pagewell, "cluster_received") == 1);
}

/// Executes these commands as one transaction.
fn transaction(stream: &Valkey, commands: &[&[&str]]) {
    let script: Vec<String> = commands
        .iter()
        .map(|words| {
            let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
            format!("redis.call({})", words.join(","))
        })
        .collect();
    stream.command(&["EVAL", &script.join(" "), "0"]).expect("it runs");
}

/// As described in the guide, with an account that has only the privileges listed there.
#[test]
fn an_account_of_its_own_is_enough() {
    let guide = fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../docs/guide/several-machines.md"
    ));
    let guide = guide.expect("the guide");
    let line = guide.lines().find(|line| line.starts_with("ACL SETUSER")).expect("a line");
    let machines = Machines::new();
    machines.stream.command(&line.split(' ').collect::<Vec<_>>()).expect("an account");
    let url = format!("redis://pagewell:secret@127.0.0.1:{}/1", machines.stream.port());
    let config = format!("[cluster]\nurl = {url:?}\nlag_max = \"1s\"\nbarrier = \"5s\"\n");
    let [here, there] = [machines.site.serve(&config), machines.site.serve(&config)];
    [&here, &there].into_iter().for_each(|one| stored(one, ONE));
    post(&here, "/write.php?n=1&to=new");
    assert_eq!(get(&there, ONE).text(), "1=new", "{}{}", here.log(), there.log());
    // The commands used when a node leaves and is removed.
    drop(there);
    let all = || machines.stream.command(&["-n", "1", "HVALS", "pagewell/read"]).expect("a list");
    assert_eq!(all().matches("gone").count(), 1);
    assert!(!is_late(&post(&here, "/write.php?n=1&to=newer")));
    until("it is forgotten", || all().matches("gone").count() == 0);
}

#[test]
fn unusable_settings_report_the_reason() {
    let machines = Machines::new();
    let password = Valkey::start(&["--requirepass", "secret"]).expect("a server");
    machines.stream.command(&["SET", "pagewell", "x"]).expect("a value");
    let port = password.port();
    for (url, part) in [
        (
            format!("redis://localhost?socket={}", machines.stream.socket().display()),
            "wrong kind of value",
        ),
        (format!("redis://127.0.0.1:{port}"), "NOAUTH"),
        (format!("redis://:wrong@127.0.0.1:{port}"), "WRONGPASS"),
    ] {
        let root = format!("[site]\nroot = {:?}", machines.site.root());
        let file = machines.site.config(&format!("[cluster]\nurl = {url:?}\n{root}"), "");
        let (text, good) = check(&file.display().to_string());
        assert!(!good && text.contains(part), "{url}: {text}");
    }
    let url = format!("redis://:secret@127.0.0.1:{port}/3");
    let root = format!("[site]\nroot = {:?}", machines.site.root());
    let file = machines.site.config(&format!("[cluster]\nurl = {url:?}\n{root}"), "");
    let (text, good) = check(&file.display().to_string());
    assert!(good, "{text}");
}

fn check(file: &str) -> (String, bool) {
    output(Command::new(binary()).args(["check", "--config", file]))
}

fn run(pagewell: &Pagewell, args: &[&str]) -> (String, bool) {
    output(Command::new(binary()).args(args).args(["--admin", &pagewell.admin().to_string()]))
}

fn output(command: &mut Command) -> (String, bool) {
    let output = command.output().expect("it runs");
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8_lossy(&text).into_owned(), output.status.success())
}

#[test]
fn a_page_that_the_audit_of_one_node_finds_wrong_twice_is_purged_on_all() {
    let machines = Machines::new();
    let audited = format!("audit = \"1 in 1\"\n{}", machines.config("", ""));
    let (here, there) = (machines.site.serve(&audited), machines.machine("", ""));
    stored(&here, ONE);
    stored(&there, ONE);
    advance(&here, 11);
    machines.truth(1, "new");
    let count = |name: &str| counter(&here, name);
    assert_eq!(get(&here, ONE).text(), "1=old");
    until("it is found wrong", || count("audit_suspected") == 1);
    advance(&here, 61);
    until("it still is", || count("audit_broken_promises") == 1);
    assert!(is_hit(&get(&there, ONE)), "one detection decides nothing");
    assert_eq!(get(&here, ONE).text(), "1=old");
    until("it is purged", || count("audit_purged") == 1);
    shows(&there, ONE, "1=new");
    shows(&here, ONE, "1=new");
}
