//! Zero-downtime restart: a new process replaces the running one while clients send requests and data change.
//! No client is refused, no request is lost, and no response is older than an acknowledged change, even if the
//! new process fails.

#[path = "take_over/database.rs"]
mod database;
#[path = "take_over/in_flight.rs"]
mod in_flight;
#[path = "take_over/trial.rs"]
mod trial;

use acceptance::{BOUND, Raw, Site, binary, cache_status, client, counter, is_hit, until};
use config::Address as Configured;
use harness::{Address, Client, Pagewell, PrivateDir, Request, Signal, Wait, cpu};
use pagewell::take_over::Socket;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Shows the current value, and has its tag.
const PAGE: &str = r#"<?php
keep(3600);
header('Cache-Groups: "truth"');
echo 'truth=', file_get_contents(getenv('NOTES') . '/truth'), ';', str_repeat('.', 4000);
"#;

/// Changes the value, and invalidates it by its response.
const WRITE: &str = r#"<?php
$file = getenv('NOTES') . '/truth';
file_put_contents("$file.write", $_GET['n']);
rename("$file.write", $file);
if (isset($_GET['wait'])) {
    note('written');
    wait_for('go');
}
header('Cache-Group-Invalidation: "truth"');
echo 'written';
"#;

struct Story {
    site: Site,
    config: String,
}

impl Story {
    fn new() -> Story {
        let site = Site::new(&[("page.php", PAGE), ("write.php", WRITE), ("file.txt", "a file")]);
        let directory = site.at("snapshots");
        let config = format!("[snapshot]\ndirectory = {directory:?}\nunwatched = \"serve\"\n");
        let story = Story { site, config };
        story.write(0);
        story
    }

    /// The same, with a process that waits so long for requests in flight when it is replaced.
    fn draining(drain: &str) -> Story {
        let story = Story::new();
        let config = format!("[limits]\ndrain = {drain:?}\n{}", story.config);
        Story { config, ..story }
    }

    /// Writes the value without an invalidation.
    fn write(&self, n: u64) {
        let path = self.site.at("notes").join("truth");
        fs::write(self.site.at("truth.new"), n.to_string()).expect("written");
        fs::rename(self.site.at("truth.new"), path).expect("renamed");
    }

    fn serve(&self) -> Pagewell {
        self.site.serve(&self.config)
    }

    /// The command for the next process, with the addresses that the first one was given.
    fn next(&self, first: &Pagewell) -> Command {
        self.site.next(&self.config, first)
    }

    /// Starts the next process, and waits until it serves.
    fn take_over(&self, first: &Pagewell) -> Pagewell {
        self.site.take_over(&self.config, first)
    }
}

fn shown(address: &Address) -> String {
    tcp(address).to_string()
}

fn tcp(address: &Address) -> SocketAddr {
    let Address::Tcp(address) = address else { panic!("a TCP address") };
    *address
}

fn ended(mut pagewell: Pagewell) {
    match pagewell.wait(BOUND) {
        Wait::Ended(status) => assert!(status.success(), "{status}: {}", pagewell.log()),
        Wait::Running => panic!("it has not ended: {}", pagewell.log()),
    }
}

/// A client that treats every missing response as an error.
struct StrictClient {
    at: SocketAddr,
    open: Option<BufReader<TcpStream>>,
    keeps: bool,
}

/// A response: its status, its head, its content.
type Answer = (u16, String, String);

impl StrictClient {
    fn new(at: SocketAddr, keeps: bool) -> StrictClient {
        StrictClient { at, open: None, keeps }
    }

    fn ask(&mut self, method: &str, target: &str) -> Result<Answer, String> {
        let fault =
            |what: &str, error: std::io::Error| format!("{method} {target}: {what}: {error}");
        let mut connection = match self.open.take() {
            Some(open) => open,
            None => {
                let stream = TcpStream::connect(self.at).map_err(|e| fault("connect", e))?;
                stream.set_read_timeout(Some(BOUND)).map_err(|e| fault("timeout", e))?;
                BufReader::new(stream)
            }
        };
        let request =
            format!("{method} {target} HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n");
        connection.get_mut().write_all(request.as_bytes()).map_err(|e| fault("send", e))?;
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let read = connection.read_line(&mut head).map_err(|e| fault("receive", e))?;
            if read == 0 {
                return Err(format!("{method} {target}: no answer, but {head:?}"));
            }
        }
        let field = |name: &str| {
            let mut lines = head.lines();
            let found = lines
                .find_map(|line| line.to_ascii_lowercase().strip_prefix(name).map(str::to_owned));
            found.map(|value| value.trim().to_owned())
        };
        let length = field("content-length:").and_then(|value| value.parse().ok());
        let content = match length {
            Some(length) => exactly(&mut connection, length),
            None => chunks(&mut connection),
        };
        let content = content.map_err(|e| fault("content", e))?;
        if self.keeps && field("connection:").as_deref() != Some("close") {
            self.open = Some(connection);
        }
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        Ok((status, head, String::from_utf8_lossy(&content).into_owned()))
    }
}

fn exactly(from: &mut impl Read, length: usize) -> std::io::Result<Vec<u8>> {
    let mut content = vec![0; length];
    from.read_exact(&mut content).map(|()| content)
}

fn chunks(from: &mut impl BufRead) -> std::io::Result<Vec<u8>> {
    let mut content = Vec::new();
    loop {
        let mut line = String::new();
        from.read_line(&mut line)?;
        let size = usize::from_str_radix(line.trim(), 16).map_err(std::io::Error::other)?;
        content.extend(exactly(from, size)?);
        from.read_line(&mut line)?;
        if size == 0 {
            return Ok(content);
        }
    }
}

fn truth(content: &str) -> u64 {
    let text = content.strip_prefix("truth=").and_then(|rest| rest.split(';').next());
    text.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no truth: {content:.100}"))
}

/// The state shared by the readers and the writer of a run.
#[derive(Default)]
struct Run {
    is_over: AtomicBool,
    /// The last acknowledged value.
    acknowledged: AtomicU64,
    answers: AtomicU64,
    hits: AtomicU64,
    faults: Mutex<Vec<String>>,
}

impl Run {
    fn read(&self, at: SocketAddr, keeps: bool, n: usize) {
        let mut client = StrictClient::new(at, keeps);
        for round in 0.. {
            if self.is_over.load(Ordering::Acquire) {
                return;
            }
            let before = self.acknowledged.load(Ordering::Acquire);
            let target = format!("/page.php?page={}", (round + n) % 5);
            match client.ask("GET", &target) {
                Ok((200, head, content)) => {
                    let shown = truth(&content);
                    if shown < before {
                        self.fault(format!("outdated: {shown} after {before}: {head}"));
                    }
                    self.answers.fetch_add(1, Ordering::Relaxed);
                    if head.contains("pagewell; hit") {
                        self.hits.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Ok((status, head, _)) => self.fault(format!("{status}: {head}")),
                Err(error) => self.fault(error),
            }
        }
    }

    /// Invalidates by a response of the site and by the control API, alternately.
    fn write(&self, story: &Story, at: SocketAddr, admin: SocketAddr) {
        let mut client = StrictClient::new(at, true);
        for n in 1.. {
            if self.is_over.load(Ordering::Acquire) {
                return;
            }
            if n % 2 == 0 {
                match client.ask("POST", &format!("/write.php?n={n}")) {
                    Ok((200, _, content)) if content == "written" => {}
                    other => self.fault(format!("a write: {other:?}")),
                }
            } else {
                story.write(n);
                let call = Request::new("POST", "/v1/invalidate")
                    .header("Content-Type", "application/json")
                    .content(&b"{\"tags\":[\"truth\"]}"[..]);
                match Client::new(Address::Tcp(admin)).within(BOUND).send(&call) {
                    Ok(answer) if answer.status == 200 => {}
                    other => self.fault(format!("a call: {other:?}")),
                }
            }
            self.acknowledged.store(n, Ordering::Release);
        }
    }

    fn fault(&self, what: String) {
        self.faults.lock().expect("no panic").push(what);
    }
}

/// Stops a run when it is dropped, whatever happens in the test.
struct Ending<'a>(&'a Run);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Release);
    }
}

#[test]
fn repeated_restarts_refuse_no_connection_and_serve_no_old_page() {
    let story = Story::new();
    let mut current = story.serve();
    let (at, admin) = (tcp(current.address()), tcp(current.admin()));
    let run = Run::default();
    std::thread::scope(|threads| {
        let _ending = Ending(&run);
        for n in 0..6 {
            let run = &run;
            threads.spawn(move || run.read(at, n % 2 == 0, n));
        }
        threads.spawn(|| run.write(&story, at, admin));
        for _ in 0..5 {
            let asked = run.answers.load(Ordering::Relaxed);
            until("visitors are served", || run.answers.load(Ordering::Relaxed) > asked + 300);
            let next = story.take_over(&current);
            ended(std::mem::replace(&mut current, next));
        }
        let asked = run.answers.load(Ordering::Relaxed);
        until("visitors are served", || run.answers.load(Ordering::Relaxed) > asked + 300);
    });
    let faults = run.faults.lock().expect("no panic");
    assert!(faults.is_empty(), "{} faults, such as {}\n{}", faults.len(), faults[0], current.log());
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    println!(
        "{} answers, {} of them hits, {} changes, 5 take-overs",
        count(&run.answers),
        count(&run.hits),
        count(&run.acknowledged)
    );
    assert!(count(&run.hits) > 0 && count(&run.acknowledged) > 0);
}

#[test]
fn pages_are_restored_and_late_changes_of_the_old_process_are_applied() {
    let story = Story::draining("50s");
    let first = story.serve();
    let mut idle = StrictClient::new(tcp(first.address()), true);
    let asked = |strict: &mut StrictClient| strict.ask("GET", "/page.php").expect("an answer");
    until("the page is stored", || asked(&mut idle).1.contains("pagewell; hit"));
    // A write is in flight during the restart.
    let mut writing = Raw::with(
        &first,
        "POST /write.php?n=7&wait=1 HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n",
    );
    story.site.wait_for("written");
    let next = story.take_over(&first);
    until("the pages are put in", || counter(&next, "snapshot_pages") == 1);
    let (mut new, before) =
        (client(&next), Request::new("GET", "/page.php").header("Host", "a.test"));
    let old = new.send(&before).expect("an answer");
    assert!(is_hit(&old), "{}", cache_status(&old));
    assert_eq!(truth(&old.text()), 0, "the write is not answered yet");
    // A client with an open connection is forwarded to the new process, and asked to reconnect.
    let (status, head, content) = asked(&mut idle);
    assert_eq!((status, truth(&content)), (200, 7));
    assert!(
        head.contains("fwd=bypass; detail=handed-over") || head.contains("handed-over"),
        "{head}"
    );
    assert!(idle.open.is_none(), "{head}");
    story.site.note("go");
    assert_eq!(writing.answer().content, "written");
    let after = new.send(&before).expect("an answer");
    assert_eq!(truth(&after.text()), 7);
    ended(first);
    assert!(!next.log().contains("predecessor-lost"), "{}", next.log());
    assert!(counter(&next, "invalidations") >= 1);
}

#[test]
fn without_a_predecessor_it_starts_normally() {
    let site = Site::new(&[("file.txt", "a file")]);
    let pagewell = site.serve_with_args(&["--take-over"]);
    assert_eq!(client(&pagewell).get("/file.txt").expect("an answer").text(), "a file");
}

#[test]
fn a_new_process_that_cannot_start_changes_nothing() {
    let story = Story::new();
    let first = story.serve();
    let ask = |pagewell: &Pagewell| client(pagewell).get("/page.php").expect("an answer");
    until("the page is stored", || is_hit(&ask(&first)));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().expect("bound").to_string();
    let failed = story.next(&first).args(["--listen", &taken]).output().expect("it runs");
    assert_eq!(failed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&failed.stderr).contains("another program is listening"));
    until("it is said", || first.log().contains("take-over-refused"));
    assert!(is_hit(&ask(&first)));
    let next = story.take_over(&first);
    ended(first);
    assert_eq!(ask(&next).status, 200);
}

/// Sends a line, and receives one.
fn said(stream: &mut BufReader<std::os::unix::net::UnixStream>, say: &str) -> String {
    stream.get_mut().write_all(format!("{say}\n").as_bytes()).expect("said");
    heard(stream)
}

fn heard(stream: &mut BufReader<std::os::unix::net::UnixStream>) -> String {
    let mut heard = Vec::new();
    stream.read_until(b'\n', &mut heard).expect("heard");
    String::from_utf8_lossy(&heard).into_owned()
}

/// A new process says that it is prepared, and ends before the running one reads that and writes the snapshot.
fn ends_prepared(first: &Pagewell) {
    let mut stream = welcomed(first);
    // One byte comes with each of the two sockets.
    stream.read_exact(&mut [0; 2]).expect("the sockets");
    first.freeze();
    stream.get_mut().write_all(b"prepared\n").expect("said");
    drop(stream);
    first.signal(Signal::CONT);
    until("it is noticed", || first.log().contains("it has ended while the snapshot was written"));
}

/// The connection of a new process to which the running one has listed its sockets.
fn welcomed(first: &Pagewell) -> BufReader<std::os::unix::net::UnixStream> {
    let name = Socket::of(&Configured::Tcp(tcp(first.admin()))).expect("a name");
    let stream = name.connect().expect("it listens").expect("somebody");
    let mut stream = BufReader::new(stream);
    assert_eq!(said(&mut stream, "pagewell take-over 3"), "welcome\n");
    assert!(heard(&mut stream).contains("\"sockets\":[false,false]"));
    stream
}

#[test]
fn a_new_process_that_dies_in_the_middle_leaves_one_that_serves_but_remembers_nothing() {
    let story = Story::new();
    let first = story.serve();
    let ask = |pagewell: &Pagewell| {
        let request = Request::new("GET", "/page.php").header("Host", "a.test");
        client(pagewell).send(&request).expect("an answer")
    };
    until("the page is stored", || is_hit(&ask(&first)));
    let mut stream = welcomed(&first);
    // After the bytes that carry the two sockets.
    assert!(said(&mut stream, "prepared").ends_with("free\n"));
    // At this moment it answers no client, and the new process dies.
    drop(stream);
    until("it serves again", || first.log().contains("take-over-failed"));
    let left = fs::read_dir(story.site.at("snapshots")).expect("a directory").flatten();
    let left: Vec<_> = left.map(|file| file.file_name()).collect();
    let is_snapshot = |name: &&std::ffi::OsString| name.to_string_lossy().contains(".snapshot");
    assert_eq!(left.iter().find(is_snapshot), None, "killed now, nobody may begin with it");
    story.write(3);
    let page = ask(&first);
    assert!(!is_hit(&page) && truth(&page.text()) == 3, "{}", cache_status(&page));
    // Changes are not journalled now, so that no remaining snapshot may be used.
    assert_eq!(first.invalidate("{\"tags\":[\"truth\"]}").expect("an answer").status, 200);
    let next = story.take_over(&first);
    ended(first);
    assert_eq!(truth(&ask(&next).text()), 3);
    until("it remembers", || is_hit(&ask(&next)));
    assert_eq!(counter(&next, "snapshot_pages"), 0);
}

#[test]
fn a_new_process_that_dies_while_it_waits_costs_nothing() {
    let story = Story::new();
    let first = story.serve();
    let ask = |pagewell: &Pagewell| client(pagewell).get("/page.php").expect("an answer");
    until("the page is stored", || is_hit(&ask(&first)));
    ends_prepared(&first);
    assert!(is_hit(&ask(&first)), "{}", first.log());
    let next = story.take_over(&first);
    ended(first);
    assert_eq!(ask(&next).status, 200);
}

#[test]
fn an_old_process_that_is_killed_takes_the_pages_with_it() {
    let story = Story::draining("1h");
    let mut first = story.serve();
    let ask = |pagewell: &Pagewell| {
        let request = Request::new("GET", "/page.php").header("Host", "a.test");
        client(pagewell).send(&request).expect("an answer")
    };
    until("the page is stored", || is_hit(&ask(&first)));
    let idle = Raw::with(&first, "GET /file.txt HTTP/1.1\r\nHost: a.test\r\n\r\n");
    let next = story.take_over(&first);
    until("the pages are put in", || counter(&next, "snapshot_pages") == 1);
    assert!(is_hit(&ask(&next)));
    assert_eq!(first.wait(std::time::Duration::ZERO), Wait::Running, "a connection is open");
    first.kill();
    until("that is noticed", || next.log().contains("predecessor-lost"));
    until("the page is gone", || counter(&next, "invalidations") == 1);
    assert!(!is_hit(&ask(&next)));
    drop(idle);
}

#[test]
fn a_process_without_permission_gets_no_socket() {
    if !rustix::process::geteuid().is_root() {
        println!("not run: only root can be somebody else");
        return;
    }
    let story = Story::new();
    let first = story.serve();
    let next = story.next(&first);
    let mut command = Command::new("setpriv");
    // The program and its arguments may be in a directory that only root can read, so no configuration is used.
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(next.get_program());
    command.args(["serve", "--take-over", "--origin", "http://127.0.0.1:1"]);
    command.args(["--listen", &shown(first.address()), "--admin", &shown(first.admin())]);
    let refused = command.output().expect("it runs");
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{error}");
    assert!(error.contains("cannot be taken over"), "{error}");
    until("it is said", || first.log().contains("of the user 65534"));
    assert_eq!(client(&first).get("/file.txt").expect("an answer").text(), "a file");
}

#[test]
fn a_signal_starts_the_successor_and_notifies_the_service_manager() {
    let story = Story::new();
    let path = story.site.at("notify");
    let manager = UnixDatagram::bind(&path).expect("a socket");
    manager.set_read_timeout(Some(BOUND)).expect("can be set");
    // Addresses that stay the same: those of an earlier process.
    let before = story.serve();
    let mut command = story.next(&before);
    command.env("NOTIFY_SOCKET", &path);
    let dir = PrivateDir::temporary("managed").expect("a directory can be made");
    let mut first = Pagewell::start_command(dir, &mut command).expect("it takes over");
    ended(before);
    let told = |what: &str| {
        let mut bytes = [0; 1024];
        loop {
            let length = manager.recv(&mut bytes).expect("a message");
            let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
            if text.contains(what) {
                return text;
            }
        }
    };
    told("READY=1");
    first.signal(Signal::USR2);
    let named = told("MAINPID=");
    let pid = named.strip_prefix("MAINPID=").and_then(|rest| rest.lines().next());
    let pid: u32 = pid.and_then(|pid| pid.parse().ok()).expect("a process id");
    assert_ne!(pid, first.pid());
    let mut again = Client::new(first.address().clone()).within(BOUND);
    assert_eq!(again.get("/file.txt").expect("an answer").text(), "a file");
    until("the first has ended", || !cpu::is_running(first.pid()));
    assert!(cpu::is_running(pid));
    let id = rustix::process::Pid::from_raw(pid as i32).expect("a process");
    rustix::process::kill_process(id, Signal::TERM).expect("it runs");
    told("STOPPING=1");
    until("it has ended", || !cpu::is_running(pid));
    // Waiting for the first process also ends the rest of its process group, so this comes last.
    assert!(matches!(first.wait(BOUND), Wait::Ended(status) if status.success()));
}
