//! Faults of the origin and of the machine with real components: php-fpm and its children killed, scripts that
//! hang, more requests than concurrent origin requests, clients that disconnect, a log that cannot be written.
//!
//! After each fault there is no wrong page, no incomplete page is stored, no origin request is left, and the
//! next client is served. The end of Pagewell itself is in `stopping.rs`.

use acceptance::{
    Raw, Site, cache_status, client, counter, get_meanwhile, is_hit, php_master, until,
};
use harness::{Address, Client, Pagewell, PrivateDir, Request};
use std::process::Command;

/// A script that waits until it is released, and can be killed in the meantime.
const WAITS: &str = "<?php keep(); note('started'); wait_for('go'); echo 'whole';";
/// A script like this that has sent a first part when it waits.
const WAITS_HALF_WAY: &str = "<?php keep(); out('half '); note('started'); wait_for('go');
    echo 'whole';";

fn kill(pid: u32) {
    assert!(pid > 1, "a process of ours");
    let kill = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
    assert!(kill.expect("kill runs").success());
}

fn get_raw(pagewell: &Pagewell, path: &str) -> Raw {
    Raw::with(pagewell, format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n"))
}

/// Checks that the page works again, that nothing of the fault is stored, and that no origin request is left.
fn recovers(site: &Site, pagewell: &Pagewell, path: &str) {
    site.note("go");
    // Where the origin has little time, an answer may be late or break off.
    until("it is answered again", || client(pagewell).get(path).is_ok_and(|it| it.status == 200));
    let page = client(pagewell).get(path).expect("an answer");
    assert!(page.text().ends_with("whole"), "{}", page.text());
    until("the places are free", || counter(pagewell, "origin_places_taken") == 0);
    assert_eq!(counter(pagewell, "origin_queue"), 0);
}

#[test]
fn php_fpm_killed_during_a_render_is_restarted() {
    let site = Site::new(&[("waits.php", WAITS)]);
    let pagewell = site.serve("");
    for _ in 0..2 {
        site.clear_notes();
        pagewell.invalidate(r#"{"all":true}"#).expect("an answer");
        let waiting = get_meanwhile(&pagewell, "/waits.php");
        let worker = site.wait_for("started");
        let master = php_master(&pagewell).expect("php-fpm runs");
        kill(master);
        let response = waiting.join().expect("it ran");
        assert_eq!(response.status, 502, "{}", response.text());
        assert!(!cache_status(&response).contains("stored"), "{}", cache_status(&response));
        assert_eq!(counter(&pagewell, "pages"), 0);
        until("the children went with it", || !harness::cpu::is_running(worker));
        recovers(&site, &pagewell, "/waits.php");
        assert_ne!(php_master(&pagewell), Some(master), "another one");
    }
}

#[test]
fn php_fpm_whose_socket_is_deleted_is_restarted() {
    let site = Site::new(&[("waits.php", WAITS)]);
    let pagewell = site.serve("");
    site.note("go");
    // First only the socket is deleted, then the whole directory, as by a clean-up job.
    for is_all in [false, true] {
        let master = php_master(&pagewell).expect("php-fpm runs");
        let directory = directory_of(master);
        if is_all {
            std::fs::remove_dir_all(&directory).expect("it goes")
        } else {
            std::fs::remove_file(directory.join("php.sock")).expect("it goes")
        }
        pagewell.invalidate(r#"{"all":true}"#).expect("an answer");
        // In the meantime it is reachable over persistent connections.
        let another = || php_master(&pagewell).is_some_and(|now| now != master);
        until("there is another one", another);
        recovers(&site, &pagewell, "/waits.php");
    }
}

/// The directory of a php-fpm's configuration, which is in its process title.
fn directory_of(master: u32) -> std::path::PathBuf {
    let title = std::fs::read(format!("/proc/{master}/cmdline")).expect("it runs");
    let title = String::from_utf8_lossy(&title).into_owned();
    let file = title.split(['(', ')']).nth(1).expect("it names its configuration");
    std::path::Path::new(file).parent().expect("it lies somewhere").to_owned()
}

#[test]
fn a_child_killed_during_a_render_is_an_error_and_not_a_page() {
    let site = Site::new(&[("waits.php", WAITS), ("half.php", WAITS_HALF_WAY)]);
    let pagewell = site.serve("");
    let waiting = get_meanwhile(&pagewell, "/waits.php");
    kill(site.wait_for("started"));
    let response = waiting.join().expect("it ran");
    assert_eq!(response.status, 502, "{}", response.text());
    assert_eq!(counter(&pagewell, "pages"), 0);
    recovers(&site, &pagewell, "/waits.php");

    // A page whose first part has been sent: the client sees that it broke off.
    site.clear_notes();
    let mut raw = get_raw(&pagewell, "/half.php");
    raw.until("half ");
    kill(site.wait_for("started"));
    let rest = raw.rest();
    assert!(!rest.contains("0\r\n\r\n"), "it looks whole: {rest:?}");
    assert_eq!(counter(&pagewell, "pages"), 1, "only the one before");
    recovers(&site, &pagewell, "/half.php");
}

#[test]
fn an_origin_that_hangs_times_out() {
    let site = Site::new(&[
        ("waits.php", WAITS),
        ("half.php", WAITS_HALF_WAY),
        ("form.php", "<?php note('started'); wait_for('go'); echo 'whole';"),
    ]);
    // A script that waits keeps its worker, whether its request has timed out or not.
    let pagewell = site.serve("[limits]\norigin_timeout = \"300ms\"\n[php]\nchildren = 20\n");
    let response = client(&pagewell).get("/waits.php").expect("an answer");
    assert_eq!(response.status, 504, "{}", response.text());
    assert!(!cache_status(&response).contains("stored"), "{}", cache_status(&response));
    let response = client(&pagewell).post("/form.php", "a=b").expect("an answer");
    assert_eq!(response.status, 504, "{}", response.text());
    let mut raw = get_raw(&pagewell, "/half.php");
    until("a first part comes in time", || {
        let has_begun = raw.until("\r\n\r\n").starts_with("HTTP/1.1 200 ");
        if !has_begun {
            raw = get_raw(&pagewell, "/half.php");
        }
        has_begun
    });
    let half = raw.rest();
    assert!(half.contains("half ") && !half.contains("0\r\n\r\n"), "it looks whole: {half:?}");
    assert_eq!(counter(&pagewell, "pages"), 0);
    recovers(&site, &pagewell, "/waits.php");
    recovers(&site, &pagewell, "/half.php");
}

#[test]
fn all_followers_of_a_failed_render_get_an_error() {
    let site = Site::new(&[("waits.php", WAITS)]);
    let pagewell = site.serve("");
    let first = get_meanwhile(&pagewell, "/waits.php");
    let worker = site.wait_for("started");
    let others: Vec<_> = (0..5).map(|_| get_meanwhile(&pagewell, "/waits.php")).collect();
    until("five follow", || counter(&pagewell, "followers") == 5);
    site.clear_notes();
    kill(worker);
    // One of them sends another request, for all that are left.
    let worker = site.wait_for("started");
    until("four follow", || counter(&pagewell, "followers") == 4);
    kill(worker);
    for waiting in others.into_iter().chain([first]) {
        assert_eq!(waiting.join().expect("it ran").status, 502);
    }
    assert_eq!(counter(&pagewell, "followers"), 0);
    recovers(&site, &pagewell, "/waits.php");
}

#[test]
fn requests_beyond_the_origin_queue_are_refused() {
    let site = Site::new(&[("waits.php", "<?php note('started'); wait_for('go'); echo 'whole';")]);
    let config =
        "[limits]\norigin_queue = 2\norigin_queue_timeout = \"60s\"\n[php]\nchildren = 1\n";
    let pagewell = site.serve(config);
    let first = get_meanwhile(&pagewell, "/waits.php?1");
    site.wait_for("started");
    let queued: Vec<_> =
        (2..4).map(|n| get_meanwhile(&pagewell, &format!("/waits.php?{n}"))).collect();
    until("two wait", || counter(&pagewell, "origin_queue") == 2);
    let refused = client(&pagewell).get("/waits.php?4").expect("an answer");
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert!(refused.header("retry-after").is_some(), "{:?}", refused.headers);
    let refused = client(&pagewell).post("/waits.php", "a=b").expect("an answer");
    assert_eq!(refused.status, 503);
    site.note("go");
    for waiting in queued.into_iter().chain([first]) {
        assert_eq!(waiting.join().expect("it ran").text(), "whole", "who had a place is served");
    }
    recovers(&site, &pagewell, "/waits.php?5");

    // A request that waits too long in the origin queue gets the same response.
    let config = "[limits]\norigin_queue_timeout = \"200ms\"\n[php]\nchildren = 1\n";
    site.clear_notes();
    let pagewell = site.serve(config);
    let first = get_meanwhile(&pagewell, "/waits.php?1");
    site.wait_for("started");
    let refused = client(&pagewell).get("/waits.php?2").expect("an answer");
    assert_eq!(refused.status, 503, "{}", refused.text());
    site.note("go");
    assert_eq!(first.join().expect("it ran").text(), "whole");
}

#[test]
fn a_script_whose_client_disconnected_is_aborted() {
    // PHP notices the disconnection when it writes; a worker that waits forever writes nothing.
    let busy = "<?php register_shutdown_function(fn () => note('ended' . connection_aborted()));
        note('started');
        for ($left = 60000; $left > 0; $left--) { out(str_repeat('x', 4096)); usleep(1000); }";
    let site = Site::new(&[
        ("busy.php", busy),
        ("kept.php", &busy.replace("note('started')", "keep(); note('started')")),
        ("waits.php", WAITS),
        ("form.php", "<?php note('started'); wait_for('go');"),
    ]);
    // With the LiteSpeed compatibility headers, the response to a disconnected client may still contain
    // invalidations.
    let given_up = "[dialects]\nlitespeed = false\n";
    let limits =
        "[limits]\npage_bytes = \"64K\"\nhalf_closed_timeout = \"1ms\"\n[php]\nchildren = 3\n";
    let pagewell = site.serve(&format!("{limits}{given_up}"));
    for path in ["/busy.php", "/kept.php"] {
        site.clear_notes();
        let mut raw = get_raw(&pagewell, path);
        raw.until("xxxx");
        drop(raw);
        site.wait_for("ended1");
        until("the place is free", || counter(&pagewell, "origin_places_taken") == 0);
    }
    // One that has not answered yet, and a write, whose invalidations are awaited.
    let form = "POST /form.php HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\na=b";
    for request in ["GET /waits.php HTTP/1.1\r\nHost: a\r\n\r\n", form] {
        site.clear_notes();
        let raw = Raw::with(&pagewell, request);
        site.wait_for("started");
        assert_eq!(counter(&pagewell, "origin_places_taken"), 1);
        drop(raw);
        if request == form {
            site.note("go");
        }
        until("the place is free", || counter(&pagewell, "origin_places_taken") == 0);
        site.note("go");
    }
    assert_eq!(counter(&pagewell, "pages"), 0);
    recovers(&site, &pagewell, "/waits.php");

    // If the response may contain invalidations, Pagewell waits for its head.
    drop(pagewell);
    let pagewell = site.serve(limits);
    site.clear_notes();
    let raw = Raw::with(&pagewell, "GET /waits.php HTTP/1.1\r\nHost: a\r\n\r\n");
    site.wait_for("started");
    drop(raw);
    until("the visitor has left", || counter(&pagewell, "connections") == 0);
    assert_eq!(counter(&pagewell, "origin_places_taken"), 1);
    recovers(&site, &pagewell, "/waits.php");
}

#[test]
fn a_render_continues_for_the_remaining_clients() {
    let site = Site::new(&[("waits.php", WAITS)]);
    let pagewell = site.serve("[limits]\nhalf_closed_timeout = \"1ms\"\n");
    let leaves = Raw::with(&pagewell, {
        let host = pagewell.address();
        format!("GET /waits.php HTTP/1.1\r\nHost: {host}\r\n\r\n")
    });
    site.wait_for("started");
    let stays = get_meanwhile(&pagewell, "/waits.php");
    until("one follows", || counter(&pagewell, "followers") == 1);
    drop(leaves);
    until("the other has left", || counter(&pagewell, "connections") == 1);
    site.note("go");
    assert_eq!(stays.join().expect("it ran").text(), "whole");
    assert!(is_hit(&client(&pagewell).get("/waits.php").expect("an answer")));
    assert_eq!(counter(&pagewell, "renders"), 1);
}

#[test]
fn a_log_that_cannot_be_written_stops_nothing() {
    let site = Site::new(&[
        ("noisy.php", "<?php error_log(str_repeat('noise ', 100)); echo 'whole';"),
        (
            "bad.php",
            "<?php header('Cache-Control: max-age=60'); header('Content-Length: 100'); echo 'half';",
        ),
        ("kept.php", "<?php header('Cache-Control: max-age=60'); echo 'whole';"),
    ]);
    let dir = PrivateDir::temporary("full").expect("a directory can be made");
    let (visitors, admin) = (dir.path().join("v.sock"), dir.path().join("a.sock"));
    let script = "exec \"$0\" serve \"$1\" --listen \"unix:$2\" --admin \"unix:$3\" --log debug \
                  >/dev/full 2>&1";
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]).arg(acceptance::binary()).arg(site.root());
    command.arg(&visitors).arg(&admin);
    let log = dir.path().join("unused.log");
    let mut process =
        harness::Process::spawn("pagewell", &mut command, &log).expect("it can be started");
    let address = Address::Unix(visitors);
    process.wait_ready(acceptance::BOUND, || address.accepts()).expect("it serves");
    let mut client = Client::new(address);
    for number in 0..50 {
        let noisy = client.get(&format!("/noisy.php?{number}")).expect("an answer");
        assert_eq!(noisy.text(), "whole");
        assert_eq!(client.get(&format!("/bad.php?{number}")).expect("an answer").status, 502);
    }
    client.get("/kept.php").expect("an answer");
    assert!(is_hit(&client.get("/kept.php").expect("an answer")));
    let all = Request::new("POST", "/v1/invalidate").header("Content-Type", "application/json");
    let done = Client::new(Address::Unix(admin)).send(&all.content(br#"{"all":true}"#));
    assert_eq!(done.expect("an answer").status, 200);
    assert_eq!(process.wait(std::time::Duration::ZERO), harness::Wait::Running);
}

#[test]
fn three_hundred_faults_leave_nothing_behind() {
    let site = Site::new(&[
        ("dies.php", "<?php keep(); out('half '); posix_kill(getmypid(), 9);"),
        ("early.php", "<?php keep(); posix_kill(getmypid(), 9);"),
        ("fatal.php", "<?php keep(); out('half '); no_such_function();"),
        ("short.php", "<?php keep(); header('Content-Length: 100'); echo 'half';"),
        ("head.php", "<?php header('Bad Name: x'); echo 'x';"),
        ("long.php", "<?php keep(); for ($i = 0; $i < 256; $i++) { echo str_repeat('x', 65536); }"),
        ("waits.php", "<?php keep(); wait_for('go'); echo 'whole';"),
    ]);
    let pagewell = site.serve("[limits]\norigin_timeout = \"50ms\"\n[php]\nchildren = 4\n");
    site.note("go");
    let faults = |rounds: std::ops::Range<u32>| {
        for round in rounds {
            let mut client = client(&pagewell);
            for path in ["dies", "early", "fatal", "short", "head"] {
                // An error, or a response cut in the middle: only the state left behind matters.
                let _ = client.get(&format!("/{path}.php?{round}"));
            }
            let mut leaves = get_raw(&pagewell, &format!("/long.php?{round}"));
            leaves.until("\r\n\r\n");
        }
        until("everybody has left", || counter(&pagewell, "connections") == 0);
        until("the places are free", || counter(&pagewell, "origin_places_taken") == 0);
    };
    faults(0..20);
    let (fds, memory) = (pagewell.open_fds(), pagewell.rss_bytes());
    faults(20..70);
    // Each of up to four workers keeps a connection.
    until("descriptors are closed", || pagewell.open_fds() <= fds + 4);
    let grown = pagewell.rss_bytes().saturating_sub(memory);
    assert!(grown < 24 << 20, "300 faults left {grown} bytes");
    assert_eq!(counter(&pagewell, "pages"), 0);
    recovers(&site, &pagewell, "/waits.php");
}
