//! Start and stop of Pagewell: gracefully, immediately, by a crash; php-fpm ends with it in each case. A fault
//! that prevents the start is reported in words, with exit status 1.

use acceptance::{BOUND, Raw, Site, counter, get_meanwhile, until};
use harness::{Pagewell, Signal, Wait, cpu};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const WAITS: &str = "<?php note('started'); wait_for('go'); echo 'whole';";
/// Requests in progress have as long as a test takes.
const DRAIN: &str = "[limits]\ndrain = \"60s\"\n";

/// The process ids of php-fpm's master and children.
fn php_processes(pagewell: &Pagewell) -> Vec<u32> {
    let all = cpu::descendants(pagewell.pid());
    all.into_iter().filter(|pid| *pid != pagewell.pid()).collect()
}

/// The directory of php-fpm's socket: the master's process title contains the configuration beside it.
fn php_directory(php: &[u32]) -> PathBuf {
    let title = std::fs::read_to_string(format!("/proc/{}/cmdline", php[0])).expect("it runs");
    let (_, path) = title.split_once('(').expect("a title with a path");
    let path = path.split(')').next().expect("its end");
    Path::new(path).parent().expect("a directory").to_owned()
}

fn all_gone(php: &[u32]) {
    assert!(php.len() >= 2, "a master and a child: {php:?}");
    until("php-fpm has ended", || !php.iter().any(|pid| cpu::is_running(*pid)));
}

fn exit_code(pagewell: &mut Pagewell) -> Option<i32> {
    match pagewell.wait(BOUND) {
        Wait::Ended(status) => status.code(),
        Wait::Running => panic!("it has not ended"),
    }
}

#[test]
fn a_graceful_stop_finishes_requests_in_progress() {
    let site = Site::new(&[("waits.php", WAITS), ("file.txt", "a file")]);
    for signal in [Signal::TERM, Signal::INT] {
        site.clear_notes();
        let mut pagewell = site.serve(DRAIN);
        let mut idle = Raw::with(&pagewell, "GET /file.txt HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(idle.answer().content, "a file");
        let waiting = get_meanwhile(&pagewell, "/waits.php");
        site.wait_for("started");
        let php = php_processes(&pagewell);
        let directory = php_directory(&php);
        pagewell.signal(signal);
        assert_eq!(idle.rest(), "", "a connection without a request is closed");
        until("nobody new is let in", || !pagewell.address().accepts());
        site.note("go");
        let response = waiting.join().expect("it ran");
        assert_eq!((response.status, response.text().as_str()), (200, "whole"));
        assert_eq!(exit_code(&mut pagewell), Some(0), "{}", pagewell.log());
        all_gone(&php);
        assert!(!directory.exists(), "{} is left", directory.display());
    }
}

/// Sends `said` repeatedly without waiting for the responses, which are read concurrently, until the server
/// closes the connection.
fn never_rests<S: Read + Write + Send + 'static>(mut says: S, mut hears: S, said: &str) {
    let heard = std::thread::spawn(move || {
        let mut part = vec![0; 64 << 10];
        while matches!(hears.read(&mut part), Ok(1..)) {}
    });
    let said = said.repeat(1_000);
    while says.write_all(said.as_bytes()).is_ok() {}
    heard.join().expect("it ran");
}

#[test]
fn busy_connections_are_notified_of_shutdown() {
    let site = Site::new(&[("waits.php", WAITS), ("file.txt", "a file")]);
    let memcached = site.at("memcached.sock");
    let config =
        format!("limits.drain = \"1h\"\n[memcached]\nlisten = \"unix:{}\"\n", memcached.display());
    let mut pagewell = site.serve(&config);
    let harness::Address::Tcp(address) = pagewell.address().clone() else {
        panic!("a TCP address")
    };
    let asks = std::thread::spawn(move || {
        let says = TcpStream::connect(address).expect("it listens");
        let hears = says.try_clone().expect("a descriptor");
        never_rests(says, hears, "GET /file.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    });
    let stores = std::thread::spawn(move || {
        let says = UnixStream::connect(memcached).expect("it listens");
        let hears = says.try_clone().expect("a descriptor");
        never_rests(says, hears, "set k 0 0 1 noreply\r\nx\r\n");
    });
    let count = |name| counter(&pagewell, name);
    until("both have much to say", || count("files") > 1_000 && count("memcached_stored") > 1_000);
    let waiting = get_meanwhile(&pagewell, "/waits.php");
    site.wait_for("started");
    pagewell.signal(Signal::TERM);
    until("both have heard", || asks.is_finished() && stores.is_finished());
    site.note("go");
    assert_eq!(waiting.join().expect("it ran").text(), "whole");
    assert_eq!(exit_code(&mut pagewell), Some(0), "{}", pagewell.log());
    asks.join().expect("it ran");
    stores.join().expect("it ran");
}

#[test]
fn a_call_of_the_control_api_is_finished_too() {
    let site = Site::new(&[("file.txt", "a file")]);
    let mut pagewell = site.serve(DRAIN);
    let harness::Address::Tcp(admin) = pagewell.admin().clone() else { panic!("a TCP address") };
    let connect = || TcpStream::connect(admin).expect("it listens");
    let idle = connect();
    let mut calling = connect();
    let head = "POST /v1/invalidate HTTP/1.1\r\nHost: localhost\r\n\
                Content-Type: application/json\r\nContent-Length: 12\r\n\r\n";
    calling.write_all(head.as_bytes()).expect("it is read");
    // The listener accepts in order. When this request has been answered, the earlier connection has been
    // accepted.
    assert_eq!(counter(&pagewell, "invalidations"), 0);
    pagewell.signal(Signal::TERM);
    until("nobody new is let in", || !pagewell.address().accepts());
    calling.write_all(b"{\"all\":true}").expect("it is read");
    let mut answer = String::new();
    calling.read_to_string(&mut answer).expect("an answer, and the end");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"dropped\":0"), "{answer}");
    assert_eq!(exit_code(&mut pagewell), Some(0), "{}", pagewell.log());
    drop(idle);
}

#[test]
fn an_endless_request_does_not_prevent_the_stop() {
    let site = Site::new(&[("waits.php", WAITS)]);
    let mut pagewell = site.serve("[limits]\ndrain = \"200ms\"\n");
    let mut raw = Raw::with(&pagewell, "GET /waits.php HTTP/1.1\r\nHost: a\r\n\r\n");
    site.wait_for("started");
    let php = php_processes(&pagewell);
    pagewell.signal(Signal::TERM);
    assert_eq!(exit_code(&mut pagewell), Some(0), "{}", pagewell.log());
    assert!(!raw.rest().contains("whole"));
    all_gone(&php);
}

#[test]
fn a_second_signal_stops_at_once() {
    let site = Site::new(&[("waits.php", WAITS)]);
    let mut pagewell = site.serve("[limits]\ndrain = \"1h\"\n");
    let mut raw = Raw::with(&pagewell, "GET /waits.php HTTP/1.1\r\nHost: a\r\n\r\n");
    site.wait_for("started");
    let php = php_processes(&pagewell);
    let directory = php_directory(&php);
    pagewell.signal(Signal::TERM);
    until("it has heard the first", || !pagewell.address().accepts());
    assert_eq!(pagewell.wait(std::time::Duration::ZERO), Wait::Running);
    pagewell.signal(Signal::TERM);
    assert_eq!(exit_code(&mut pagewell), Some(1), "{}", pagewell.log());
    assert!(!raw.rest().contains("whole"));
    all_gone(&php);
    // An immediate stop removes no files; the next start has its own directory.
    let _ = std::fs::remove_dir_all(directory);
}

#[test]
fn php_fpm_ends_even_when_pagewell_is_killed() {
    let site = Site::new(&[("waits.php", WAITS)]);
    let mut pagewell = site.serve("[php]\nchildren = 3\n");
    let waiting: Vec<Raw> = (0..3)
        .map(|n| Raw::with(&pagewell, format!("GET /waits.php?{n} HTTP/1.1\r\nHost: a\r\n\r\n")))
        .collect();
    until("three render", || counter(&pagewell, "origin_places_taken") == 3);
    until("there are a master and three children", || php_processes(&pagewell).len() == 4);
    let php = php_processes(&pagewell);
    let directory = php_directory(&php);
    pagewell.kill();
    all_gone(&php);
    drop(waiting);
    let _ = std::fs::remove_dir_all(directory);
}

#[test]
fn a_restarted_php_fpm_ends_with_pagewell_too() {
    let site = Site::new(&[("index.php", "<?php echo 'ok';")]);
    let mut pagewell = site.serve("");
    let first = php_processes(&pagewell);
    let kill = Command::new("kill").args(["-KILL", &first[0].to_string()]).status();
    assert!(kill.expect("kill runs").success());
    until("another has been started", || {
        acceptance::php_master(&pagewell).is_some_and(|master| master != first[0])
    });
    until("it answers", || {
        acceptance::client(&pagewell).get("/").is_ok_and(|response| response.status == 200)
    });
    let second = php_processes(&pagewell);
    let directory = php_directory(&second);
    pagewell.kill();
    all_gone(&second);
    let _ = std::fs::remove_dir_all(directory);
}

/// The start must fail with status 1, print these words, and leave nothing behind.
fn refuses(args: &[&str], words: &[&str]) {
    let mut command = Command::new(acceptance::binary());
    command.args(args).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().expect("it can be started");
    let pid = child.id();
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
    for word in words {
        assert!(said.contains(word), "{args:?}: {word:?} is not in {said:?}");
    }
    assert!(!said.contains("panicked"), "{said}");
    for place in [Path::new("/run/pagewell"), Path::new("/run"), &std::env::temp_dir()] {
        let left = place.join(format!("pagewell-{pid}-0"));
        assert!(!left.exists(), "{args:?}: {} is left", left.display());
    }
}

#[test]
fn a_start_that_fails_prints_the_reason() {
    let site = Site::new(&[]);
    let root = site.root().display().to_string();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    refuses(&["serve", &root, "--listen", &address], &[&address, "another program is listening"]);
    let both = ["serve", &root, "--listen", "127.0.0.1:0", "--admin", &address];
    refuses(&both, &[&address, "another program is listening"]);
    refuses(&["serve", "/no/such/dir"], &["site.root", "/no/such/dir"]);
    let empty = site.at("notes").display().to_string();
    refuses(&["serve", &empty], &["index.php", "public"]);

    let with = |config: &str| site.config(config, "").display().to_string();
    let serve = |config: &str, words: &[&str]| {
        let file = with(config);
        let ports = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
        refuses(
            &[&["serve", root.as_str(), "--config", file.as_str()], &ports[..]].concat(),
            words,
        );
    };
    serve("[php]\nbinary = \"/no/such/php-fpm\"\n", &["php.binary", "/no/such/php-fpm"]);
    serve("[php]\nbinary = \"/bin/false\"\n", &["/bin/false", "ended at once"]);
    serve("listn = \"x\"\n", &["listn", "did you mean `listen`?"]);
}
