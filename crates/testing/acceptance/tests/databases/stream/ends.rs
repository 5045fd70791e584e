//! A node stops, is killed, restarts or hands over: the others do not wait for a node that is gone, and its
//! pending invalidations are published.

use super::{
    Machines, ONE, TWO, binary, counter, get, invalidate, is_hit, is_late, output, post, shows,
    stored, until,
};
use harness::{Address, Pagewell, Signal, Wait};
use std::io::{BufRead, BufReader, Write};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

fn stopped(pagewell: &mut Pagewell) {
    pagewell.signal(Signal::TERM);
    assert!(matches!(pagewell.wait(PATIENCE), Wait::Ended(_)), "{}", pagewell.log());
}

/// Until a node notices that it receives nothing, it may serve stored pages. The others wait for it as long.
#[test]
fn writes_do_not_wait_for_a_node_that_is_gone() {
    let machines = Machines::new();
    // Shorter than the time for which the others wait for a node that leaves without an announcement.
    let bound = "lag_max = \"2s\"\nbarrier = \"6s\"";
    let here = machines.machine(bound, "");
    let mut stopped = machines.machine(bound, "");
    let mut killed = machines.machine(bound, "");
    [&stopped, &killed].into_iter().for_each(|one| stored(one, ONE));
    let is_late = || is_late(&post(&here, "/write.php?n=1&to=x"));
    until("they are waited for", || machines.readers() == [3, 0]);
    until("nobody is late", || !is_late());
    stopped.signal(Signal::TERM);
    assert!(matches!(stopped.wait(Duration::from_secs(60)), Wait::Ended(_)), "it ends");
    assert_eq!(machines.readers(), [2, 1]);
    assert!(!is_late());
    killed.kill();
    assert!(is_late());
    until("it is given up", || !is_late());
    // A process that starts later does not wait for it.
    until("it is removed", || machines.readers()[0] == 1);
}

/// Invalidations that are pending while a node runs are published when it stops.
#[test]
fn a_stopping_node_publishes_its_pending_changes() {
    let mut machines = Machines::new();
    let mut here = machines.machine("barrier = \"100ms\"", "[limits]\ndrain = \"60s\"\n");
    machines.stream.stop();
    assert!(invalidate(&here, "{\"tags\":[\"file:1\"]}").contains("late"));
    here.signal(Signal::TERM);
    until("it is told to stop", || here.log().contains("event=\"stopping\""));
    machines.stream.start_again().expect("it starts");
    assert!(matches!(here.wait(Duration::from_secs(60)), Wait::Ended(_)), "it ends");
    assert!(machines.entries().contains("file:1"), "{}", here.log());
    // If they cannot be published, this is logged.
    let mut here = machines.machine("barrier = \"100ms\"", "[limits]\ndrain = \"500ms\"\n");
    machines.stream.stop();
    assert!(invalidate(&here, "{\"tags\":[\"file:1\"]}").contains("late"));
    here.signal(Signal::TERM);
    assert!(matches!(here.wait(Duration::from_secs(60)), Wait::Ended(_)), "it ends");
    assert!(here.log().contains("cluster-not-published"), "{}", here.log());
}

#[test]
fn a_restarted_node_applies_the_changes_it_missed() {
    let machines = Machines::new();
    let directory = machines.site.at("snapshots");
    let tables = format!("[snapshot]\ndirectory = {directory:?}\nunwatched = \"serve\"\n");
    let mut pagewell = machines.machine("", &tables);
    [ONE, TWO].iter().for_each(|path| stored(&pagewell, path));
    pagewell.signal(Signal::TERM);
    assert!(matches!(pagewell.wait(Duration::from_secs(60)), Wait::Ended(_)), "it ends");
    machines.truth(1, "new");
    machines.stream.command(&["XADD", "pagewell", "*", "tag", "file:1"]).expect("an entry");
    let pagewell = machines.machine("", &tables);
    until("pages are put in", || counter(&pagewell, "snapshot_pages") > 0);
    assert_eq!(get(&pagewell, ONE).text(), "1=new", "{}", pagewell.log());
    assert!(is_hit(&get(&pagewell, TWO)), "{}", pagewell.log());
    assert_eq!(counter(&pagewell, "database_gaps"), 0);
}

/// Every other node is notified, whichever looks first.
#[test]
fn a_leaving_node_makes_no_write_late() {
    let machines = Machines::new();
    let mut all: Vec<Pagewell> = (0..4).map(|_| machines.machine("", "")).collect();
    for _ in 0..3 {
        until("nobody is late", || {
            all.iter().all(|one| !is_late(&post(one, "/write.php?n=1&to=x")))
        });
        stopped(&mut all.remove(0));
        for one in &all {
            assert!(!is_late(&post(one, "/write.php?n=1&to=y")), "{}", one.log());
        }
    }
}

/// It serves no stored pages any more, so the others do not wait for it while it waits for its clients.
#[test]
fn a_stopping_node_with_a_request_makes_no_write_late() {
    let machines = Machines::new();
    machines.site.file("slow.php", "<?php note('begun'); wait_for('go'); echo 'done';");
    let here = machines.machine("", "");
    let mut there = machines.machine("", "[limits]\ndrain = \"60s\"\n");
    [&here, &there].iter().for_each(|one| stored(one, ONE));
    let target = there.address().clone();
    let slow = std::thread::spawn(move || {
        let write = harness::Request::form("/slow.php", "");
        harness::Client::new(target).send(&write).expect("an answer")
    });
    machines.site.wait_for("begun");
    there.signal(Signal::TERM);
    until("it takes its leave", || machines.readers() == [1, 1]);
    assert!(!is_late(&post(&here, "/write.php?n=1&to=new")), "{}", there.log());
    machines.site.note("go");
    let done = slow.join().expect("it has asked");
    assert!(done.text() == "done" && !is_late(&done), "{}", there.log());
    assert!(matches!(there.wait(PATIENCE), Wait::Ended(_)), "{}", there.log());
}

/// An account of the server that can be locked, so that one node alone is cut off.
const ACCOUNT: [&str; 7] = ["ACL", "SETUSER", "one", "on", ">x", "~*", "+@all"];

/// Two nodes with cached pages. The first one keeps a snapshot and uses an account of its own.
struct CutOffNode {
    machines: Machines,
    config: String,
    here: Pagewell,
    there: Pagewell,
}

impl CutOffNode {
    fn new() -> CutOffNode {
        CutOffNode::with("drain = \"300ms\"")
    }

    fn with(limits: &str) -> CutOffNode {
        let machines = Machines::new();
        machines.stream.command(&ACCOUNT).expect("an account");
        let directory = machines.site.at("snapshots");
        let config = format!(
            "[cluster]\nurl = \"redis://one:x@127.0.0.1:{}\"\nbarrier = \"100ms\"\n\
             [limits]\n{limits}\n\
             [snapshot]\ndirectory = {directory:?}\nunwatched = \"serve\"\nevery = \"1s\"\n",
            machines.stream.port()
        );
        let (here, there) = (machines.site.serve(&config), machines.machine("", ""));
        [&here, &there].iter().for_each(|one| stored(one, ONE));
        until("they know each other", || machines.readers() == [2, 0]);
        CutOffNode { machines, config, here, there }
    }

    /// Locks the account of the first node, so that it cannot publish.
    fn cut(&self) {
        for command in [&["ACL", "SETUSER", "one", "off"][..], &["CLIENT", "KILL", "USER", "one"]] {
            self.machines.stream.command(command).expect("it is shut out");
        }
    }

    /// Whether the first node has published all changes, and has removed the mark for pending ones.
    fn has_published_all(&self) -> bool {
        let mark = self.machines.site.at("snapshots").join("site.unpublished");
        counter(&self.here, "cluster_pending") == 0 && !mark.exists()
    }

    fn changed_late(&self) {
        self.machines.truth(1, "new");
        assert!(invalidate(&self.here, "{\"tags\":[\"file:1\"]}").contains("late"));
        assert!(is_hit(&get(&self.there, ONE)), "it has not been told");
    }

    /// Restarts the first node, which publishes the pending invalidations of the process before.
    fn is_told_by_the_next(&mut self) {
        self.machines.stream.command(&ACCOUNT).expect("an account");
        self.here = self.machines.site.serve(&self.config);
        shows(&self.there, ONE, "1=new");
        assert!(self.here.log().contains("cluster-left-pending"), "{}", self.here.log());
        // They are published only once.
        stored(&self.there, TWO);
        until("all is told", || self.has_published_all());
        stopped(&mut self.here);
        self.here = self.machines.site.serve(&self.config);
        assert!(!self.here.log().contains("cluster-left-pending"), "{}", self.here.log());
        assert!(is_hit(&get(&self.there, TWO)));
    }
}

#[test]
fn pending_changes_of_a_killed_process_are_published_by_the_next() {
    let mut cut = CutOffNode::new();
    cut.cut();
    cut.changed_late();
    cut.here.kill();
    cut.is_told_by_the_next();
}

/// A delete command without an answer is pending for the next command with an answer, which is then reported as
/// late.
#[test]
fn quiet_memcached_deletes_are_published_by_the_next_process() {
    let said = format!("delete {ONE} noreply\r\nversion\r\n");
    let mut cut = CutOffNode::new();
    let socket = cut.machines.site.at("memcached.sock");
    stopped(&mut cut.here);
    cut.config += &format!("[memcached]\nlisten = \"unix:{}\"\n", socket.display());
    cut.here = cut.machines.site.serve(&cut.config);
    until("they know each other", || cut.machines.readers()[0] == 2);
    stored(&cut.there, ONE);
    cut.cut();
    cut.machines.truth(1, "new");
    let mut port = std::os::unix::net::UnixStream::connect(&socket).expect("it listens");
    port.write_all(said.as_bytes()).expect("it is read");
    let mut answer = String::new();
    BufReader::new(port).read_line(&mut answer).expect("it is answered");
    assert!(answer.starts_with("VERSION "), "{answer}");
    assert_eq!(counter(&cut.here, "cluster_late"), 1, "{said}");
    cut.here.kill();
    cut.is_told_by_the_next();
}

#[test]
fn pending_changes_of_a_stopped_process_are_published_by_the_next() {
    let mut cut = CutOffNode::new();
    cut.cut();
    cut.changed_late();
    stopped(&mut cut.here);
    assert!(cut.here.log().contains("cluster-not-published"), "{}", cut.here.log());
    cut.is_told_by_the_next();
}

/// A write that is still at the origin.
fn write_in_flight(cut: &CutOffNode) -> std::thread::JoinHandle<()> {
    cut.machines.site.file("slow.php", "<?php note('begun'); wait_for('never');");
    let target = cut.here.address().clone();
    let asking = std::thread::spawn(move || {
        // The response is lost.
        let _ = harness::Client::new(target).send(&harness::Request::form("/slow.php", ""));
    });
    cut.machines.site.wait_for("begun");
    cut.machines.truth(1, "new");
    asking
}

/// The changes of an unanswered write are unknown.
#[test]
fn writes_in_flight_at_a_kill_are_published_by_the_next_process() {
    let mut cut = CutOffNode::new();
    until("a snapshot is written", || counter(&cut.here, "snapshots_written") > 0);
    let asking = write_in_flight(&cut);
    cut.here.kill();
    asking.join().expect("it has asked");
    cut.is_told_by_the_next();
}

#[test]
fn writes_in_flight_at_a_stop_are_published_by_the_next_process() {
    let mut cut = CutOffNode::new();
    let asking = write_in_flight(&cut);
    stopped(&mut cut.here);
    asking.join().expect("it has asked");
    cut.is_told_by_the_next();
}

#[test]
fn writes_in_flight_at_an_immediate_stop_are_published_by_the_next_process() {
    let mut cut = CutOffNode::with("drain = \"1h\"");
    until("a snapshot is written", || counter(&cut.here, "snapshots_written") > 0);
    let asking = write_in_flight(&cut);
    cut.here.signal(Signal::TERM);
    until("it is told to stop", || cut.here.log().contains("event=\"stopping\""));
    stopped(&mut cut.here);
    asking.join().expect("it has asked");
    cut.is_told_by_the_next();
}

/// A call whose client disconnects still causes a change.
#[test]
fn changes_of_disconnected_clients_are_published_by_the_next_process() {
    let mut cut = CutOffNode::new();
    until("a snapshot is written", || counter(&cut.here, "snapshots_written") > 0);
    cut.cut();
    cut.machines.truth(1, "new");
    let Address::Tcp(admin) = *cut.here.admin() else { panic!("a TCP address") };
    let mut call = std::net::TcpStream::connect(admin).expect("it listens");
    let what = "{\"tags\":[\"file:1\"]}";
    let length = what.len();
    let head =
        "POST /v1/invalidate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    write!(call, "{head}Content-Length: {length}\r\n\r\n{what}").expect("it is said");
    until("it is applied", || counter(&cut.here, "cluster_pending") == 1);
    drop(call);
    until("it is waited for no longer", || counter(&cut.here, "cluster_late") == 1);
    cut.here.kill();
    cut.is_told_by_the_next();
}

/// The old process does not publish after the hand-over, so the new process publishes instead.
#[test]
fn pending_changes_after_a_take_over_are_published_by_the_successor() {
    let mut cut = CutOffNode::new();
    cut.machines.site.file(
        "slow.php",
        "<?php note('begun'); wait_for('go'); header('Cache-Group-Invalidation: \"file:1\"');",
    );
    let target = cut.here.address().clone();
    let slow = std::thread::spawn(move || {
        let _ = harness::Client::new(target).send(&harness::Request::form("/slow.php", ""));
    });
    cut.machines.site.wait_for("begun");
    let next = cut.machines.site.take_over(&cut.config, &cut.here);
    cut.cut();
    cut.machines.truth(1, "new");
    cut.machines.site.note("go");
    slow.join().expect("it has asked");
    let mut first = std::mem::replace(&mut cut.here, next);
    assert!(matches!(first.wait(PATIENCE), Wait::Ended(_)), "{}", first.log());
    cut.machines.stream.command(&ACCOUNT).expect("an account");
    shows(&cut.there, ONE, "1=new");
}

/// The response to a failed write also reports that the other nodes may not have received its changes.
#[test]
fn a_failed_write_may_be_late() {
    let machines = Machines::new();
    machines.site.file("dies.php", "<?php posix_kill(getmypid(), 9);");
    let here = machines.machine("barrier = \"100ms\"", "");
    let there = machines.machine("", "");
    until("they know each other", || machines.readers() == [2, 0]);
    until("no write is late", || !is_late(&post(&here, "/write.php?n=1&to=x")));
    there.freeze();
    let failed = super::ask(&here, harness::Request::form("/dies.php", ""));
    assert!(failed.status == 502 && is_late(&failed), "{}", failed.text());
    there.signal(Signal::CONT);
}

/// It may end before its leave is published, unless it waits for that.
#[test]
fn a_node_without_requests_publishes_its_leave_too() {
    let machines = Machines::new();
    let config = machines.config("", "[site]\norigin = \"http://127.0.0.1:9\"\n");
    for round in 1..=5 {
        let file = machines.site.config(&config, "").display().to_string();
        let args = ["--memory", "64M", "--config", &file];
        let mut one = Pagewell::start(binary(), &args).expect("it starts");
        until("it reads", || machines.readers() == [1, round - 1]);
        stopped(&mut one);
        assert_eq!(machines.readers(), [0, round]);
    }
}

#[test]
fn a_killed_idle_node_has_nothing_to_publish() {
    let mut cut = CutOffNode::new();
    stored(&cut.there, TWO);
    until("a snapshot is written", || counter(&cut.here, "snapshots_written") > 0);
    until("no write is late", || !is_late(&post(&cut.here, "/write.php?n=1&to=new")));
    // A write that was late has left its mark until its change is published.
    until("all is told", || cut.has_published_all());
    cut.here.kill();
    cut.here = cut.machines.site.serve(&cut.config);
    assert!(!cut.here.log().contains("cluster-left-pending"), "{}", cut.here.log());
    assert!(is_hit(&get(&cut.there, TWO)));
}

/// A process that follows the stream must not wait for one that waits until it stops to follow.
#[test]
fn a_take_over_works_while_the_stream_is_busy() {
    let machines = Machines::new();
    let directory = machines.site.at("snapshots");
    let tables = format!("[snapshot]\ndirectory = {directory:?}\nunwatched = \"serve\"\n");
    let config = machines.config("", &tables);
    let mut here = machines.site.serve(&config);
    let there = machines.machine("", "");
    [&here, &there].iter().for_each(|one| stored(one, ONE));
    for round in 1..=3 {
        let mut next = busy(&machines, || machines.site.take_over(&config, &here));
        std::mem::swap(&mut here, &mut next);
        assert!(matches!(next.wait(PATIENCE), Wait::Ended(_)), "{}", next.log());
        assert!(!next.log().contains("take-over-failed"), "{}", next.log());
        assert!(!here.log().contains("predecessor-lost"), "{}", here.log());
        let new = format!("round{round}");
        until("they are even", || !is_late(&post(&here, &format!("/write.php?n=1&to={new}"))));
        assert_eq!(get(&there, ONE).text(), format!("1={new}"), "{}", there.log());
        assert_eq!(get(&here, ONE).text(), format!("1={new}"), "{}", here.log());
        machines.truth(1, "by hand");
        machines.stream.command(&["XADD", "pagewell", "*", "tag", "file:1"]).expect("an entry");
        shows(&here, ONE, "1=by hand");
        shows(&there, ONE, "1=by hand");
        assert_eq!(counter(&here, "database_gaps"), 0, "{}", here.log());
    }
}

/// Runs `doing` while many entries are added.
fn busy<T>(machines: &Machines, doing: impl FnOnce() -> T) -> T {
    let script = "for i=1,200 do redis.call('XADD','pagewell','*','tag','none:'..i) end";
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Acquire) {
                machines.stream.command(&["EVAL", script, "0"]).expect("they are put there");
            }
        });
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(doing));
        is_done.store(true, Ordering::Release);
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// A check does not register as a node, so nobody waits for it.
#[test]
fn a_check_makes_no_write_late() {
    let machines = Machines::new();
    let here = machines.machine("", "");
    until("it reads", || machines.readers() == [1, 0]);
    let root = format!("[site]\nroot = {:?}\n", machines.site.root());
    let file = machines.site.config(&machines.config("", &root), "");
    let (text, good) = output(Command::new(binary()).args(["check", "--config"]).arg(&file));
    assert!(good, "{text}");
    assert_eq!(machines.readers(), [1, 0]);
    assert!(!is_late(&post(&here, "/write.php?n=1&to=new")));
    // It reports the missing privileges of the account.
    for (may_not, part) in [("-xadd", "xadd"), ("-hset", "hset"), ("-hgetall", "hgetall")] {
        let account = ["ACL", "SETUSER", "one", "reset", "on", ">x", "~*", "+@all", may_not];
        machines.stream.command(&account).expect("an account");
        let url = format!("redis://one:x@127.0.0.1:{}", machines.stream.port());
        let file = machines.site.config(&format!("[cluster]\nurl = {url:?}\n{root}"), "");
        let (text, good) = output(Command::new(binary()).args(["check", "--config"]).arg(&file));
        assert!(!good && text.contains("NOPERM") && text.contains(part), "{may_not}: {text}");
    }
}
