//! The real servers: each is started, used and stopped, and must leave nothing behind.
//!
//! They need the packages that `scripts/setup test` installs. Without them the tests fail with a message.

use harness::{
    Client, Deadline, Load, LoadEnd, MariaDb, Memcached, NewsSite, NginxConf, OnPort, PhpFpm,
    PoolOptions, Postgres, PostgresOptions, PrivateDir, Process, Request, StartError, StartReason,
    StopResult, Wait, cpu, free_port, nginx,
};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The bound of each wait.
const WITHIN: Duration = Duration::from_secs(60);

const SCRIPT: &str = "<?php
header('X-Pool: ' . getenv('POOL_NAME'));
echo 'method=', $_SERVER['REQUEST_METHOD'], ' limit=', ini_get('memory_limit'), ' ';
echo strlen(file_get_contents('php://input')), ' bytes';
";

fn dir(name: &str) -> PrivateDir {
    PrivateDir::temporary(name).expect("a directory can be made")
}

fn site(dir: &PrivateDir) -> String {
    let root = dir.path().join("site");
    fs::create_dir(&root).expect("a directory can be made");
    fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).expect("its mode can be set");
    fs::write(root.join("index.php"), SCRIPT).expect("a file can be written");
    fs::write(root.join("small.txt"), "x".repeat(2042)).expect("a file can be written");
    root.display().to_string()
}

fn nginx(root: &str, php: &Path) -> Result<OnPort, StartError> {
    let server = format!(
        "root {root}; location ~ \\.php$ {{ include /etc/nginx/fastcgi_params; \
         fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; \
         fastcgi_pass unix:{}; }}",
        php.display()
    );
    nginx::start(dir("nginx"), &NginxConf { http: String::new(), server, workers: 1 })
}

#[test]
fn php_answers_through_nginx_and_its_requests_are_counted() {
    let files = dir("files");
    let root = site(&files);
    let options = PoolOptions {
        children: 2,
        env: vec![("POOL_NAME".into(), "first \"pool\"; or so".into())],
        ini: vec![("memory_limit".into(), "65M".into())],
    };
    let mut php = PhpFpm::start(dir("php"), &options).expect("php-fpm starts");
    let mut web = nginx(&root, php.socket()).expect("nginx starts");
    let mut client = Client::new(web.address());
    let got = client.get("/index.php").expect("an answer");
    assert_eq!((got.status, got.text().as_str()), (200, "method=GET limit=65M 0 bytes"));
    assert_eq!(got.header("x-pool"), Some("first pool; or so"));
    let posted = client.post("/index.php", "a=b").expect("an answer");
    assert_eq!(posted.text(), "method=POST limit=65M 3 bytes");
    let head = client.head("/index.php").expect("an answer");
    assert_eq!((head.status, head.content.len()), (200, 0));

    let pids = (php.pid().expect("it runs"), web.pid());
    wait_until("there are a master and two children", || cpu::descendants(pids.0).len() == 3);
    assert!(matches!(php.stop(), Some(StopResult::Ended(_))));
    assert_eq!(php.requests(), 3, "the log is complete once php-fpm has ended");
    assert_eq!(client.get("/index.php").expect("an answer").status, 502);
    php.start_again().expect("it starts again");
    assert_eq!(client.get("/index.php").expect("an answer").status, 200);
    assert!(matches!(web.stop(), StopResult::Ended(_)));
    assert!(!Path::new(&format!("/proc/{}", pids.0)).exists());
}

#[test]
fn the_load_generator_counts_its_requests() {
    let files = dir("files");
    let root = site(&files);
    let web = nginx(&root, Path::new("/nowhere.sock")).expect("nginx starts");
    for keep_alive in [true, false] {
        let mut load = Load::new(web.address(), "/small.txt", 8, LoadEnd::Requests(400));
        load.keep_alive = keep_alive;
        load.targets.push("/missing".into());
        load.headers.push(("Accept".into(), "text/plain".into()));
        let report = load.run().expect("it runs");
        let ended = report.requests + report.unexpected;
        // The last events of a run may complete a few more requests than the limit.
        assert!((400..408).contains(&ended), "{ended} answers");
        assert!(report.requests.abs_diff(report.unexpected) <= 8, "half of them are missing");
        assert_eq!((report.failures, report.times.count()), (0, ended));
        assert!(report.bytes > 2042 * report.requests);
        assert!(report.times.quantile(0.5) <= report.times.worst() && report.per_second() > 0.0);
    }
    let address = web.address();
    drop(web);
    let report = Load::new(address, "/", 2, LoadEnd::Requests(10)).run().expect("it runs");
    assert_eq!((report.requests, report.failures >= 10), (0, true));
}

/// Writes into a database of either kind, stops and kills it, and reads after each start.
macro_rules! assert_keeps_data {
    ($database:ident) => {
        $database.create_database("site", "reader", "secret").expect("a database");
        let made =
            $database.sql_in("site", "CREATE TABLE t (n INT, s TEXT); INSERT INTO t VALUES (1, 'é')");
        made.expect("a table");
        for round in 0..2 {
            if round == 0 {
                assert!(matches!($database.stop(), Some(StopResult::Ended(status)) if status.success()));
            } else {
                $database.kill();
            }
            assert_eq!($database.pid(), None);
            assert!($database.sql("SELECT 1").is_err());
            $database.start_again().expect("it starts again");
            assert_eq!($database.sql_in("site", "SELECT * FROM t").expect("rows"), "1\té\n");
        }
        let error = $database.sql("SELEKT").expect_err("no such word");
        assert_eq!(error.reason, StartReason::Refused);
        assert!(error.detail.contains("SELEKT"), "{error}");
    };
}

#[test]
fn mariadb_keeps_its_rows_over_a_stop_and_a_crash() {
    let mut database = MariaDb::start(dir("db")).expect("MariaDB starts");
    assert_keeps_data!(database);
}

#[test]
fn postgres_keeps_its_data_over_a_stop_and_a_crash() {
    let options =
        PostgresOptions { port: Some(free_port().expect("a port")), ..Default::default() };
    let mut database = Postgres::start_with(dir("pg"), options).expect("PostgreSQL starts");
    assert_keeps_data!(database);
    assert_eq!(database.sql("SHOW wal_level").expect("a setting"), "logical\n");
}

#[test]
fn memcached_answers_on_both_kinds_of_address() {
    let servers = [Memcached::start(dir("mc"), 8), Memcached::start_on_port(8)];
    for server in servers {
        let mut server = server.expect("memcached starts");
        let mut stream = server.address().connect(WITHIN).expect("a connection");
        stream.write_all(b"version\r\n").expect("can be written");
        let mut answer = [0; 8];
        stream.read_exact(&mut answer).expect("an answer");
        assert_eq!(&answer, b"VERSION ");
        assert!(matches!(server.stop(), StopResult::Ended(_)));
    }
}

#[test]
fn a_server_that_fails_shows_its_own_words() {
    let broken = NginxConf { http: "no_such_directive;".into(), server: String::new(), workers: 1 };
    let error = nginx::start(dir("nginx"), &broken).expect_err("nginx refuses it");
    assert_eq!(error.reason, StartReason::Ended);
    assert!(error.detail.contains("no_such_directive"), "{error}");
}

#[test]
fn children_of_a_stopped_process_end_with_it() {
    let place = dir("sh");
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "sleep 1000 & echo $! >child; sleep 1000"]).current_dir(place.path());
    let mut shell = Process::spawn("sh", &mut command, &place.path().join("log")).expect("runs");
    let child = place.path().join("child");
    let written = || fs::read_to_string(&child).is_ok_and(|pid| pid.ends_with('\n'));
    shell.wait_ready(WITHIN, written).expect("it starts a child");
    let pid: u32 = fs::read_to_string(&child).expect("was written").trim().parse().expect("a pid");
    assert!(cpu::is_running(pid));
    assert_eq!(shell.wait(Duration::ZERO), Wait::Running);
    shell.stop();
    wait_until("the orphan has ended", || !cpu::is_running(pid));
    assert!(matches!(shell.stop(), StopResult::Ended(_)), "a second stop does nothing");
}

/// Executed only by the test below, in a separate process.
#[test]
#[ignore = "ends its process"]
fn a_process_that_aborts() {
    let Some(report) = std::env::var_os("REPORT_TO") else { return };
    let place = dir("aborts");
    let log = place.path().join("log");
    let process = Process::spawn("sleep", Command::new("sleep").arg("1000"), &log).expect("runs");
    let line = format!("{} {}\n", process.id(), place.path().display());
    fs::write(report, line).expect("a report can be written");
    std::process::abort();
}

#[test]
fn nothing_is_left_of_a_process_that_aborts() {
    let place = dir("report");
    let report = place.path().join("report");
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command.args(["a_process_that_aborts", "--exact", "--ignored"]).env("REPORT_TO", &report);
    let status = command.output().expect("it runs").status;
    assert!(!status.success());
    let report = fs::read_to_string(&report).expect("it has reported");
    let (pid, path) = report.trim().split_once(' ').expect("two words");
    let pid: u32 = pid.parse().expect("a pid");
    wait_until("its process has ended", || !cpu::is_running(pid));
    wait_until("its directory is gone", || !Path::new(path).exists());
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Deadline::after(WITHIN);
    while !holds() {
        assert!(!deadline.passed(), "not within {WITHIN:?}: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_client_opens_a_connection_again_that_the_server_has_closed() {
    let files = dir("files");
    let root = site(&files);
    let server = format!("root {root}; keepalive_requests 1;");
    let conf = NginxConf { http: String::new(), server, workers: 1 };
    let web = nginx::start(dir("nginx"), &conf).expect("nginx starts");
    let mut client = Client::new(web.address()).host("example.test");
    for _ in 0..3 {
        let got = client.send(&Request::get("/small.txt").header("Range", "bytes=0-4"));
        let got = got.expect("an answer");
        assert_eq!((got.status, got.text().as_str()), (206, "xxxxx"));
    }
    let raw = client.raw(b"NONSENSE\r\n\r\n").expect("an answer");
    assert!(raw.starts_with(b"HTTP/1.1 400") || raw.starts_with(b"<html>"), "{raw:?}");
}

#[test]
fn the_example_site_is_served_from_its_own_database() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let site = NewsSite::start(&repository, dir("news"), 20).expect("the site starts");
    assert_eq!(site.sql("SELECT COUNT(*) FROM news").expect("a count").trim(), "20");
    let pool = PoolOptions { env: site.env().to_vec(), ..PoolOptions::default() };
    let php = PhpFpm::start(dir("php"), &pool).expect("php-fpm starts");
    let server = format!(
        "location / {{ include /etc/nginx/fastcgi_params; \
         fastcgi_param SCRIPT_FILENAME {}/public/index.php; fastcgi_pass unix:{}; }}",
        site.dir().display(),
        php.socket().display()
    );
    let conf = NginxConf { http: String::new(), server, workers: 1 };
    let web = nginx::start(dir("nginx"), &conf).expect("nginx starts");
    let page = Client::new(web.address()).get("/news/1/").expect("an answer");
    assert_eq!(page.status, 200, "{}", page.text());
    assert!(page.text().contains("<title>"), "{}", page.text());
    let groups = page.header("cache-groups").unwrap_or_default();
    assert!(groups.split(", ").any(|group| group == "\"news:1\""), "{groups}");
}

#[test]
fn a_checkout_that_the_servers_cannot_read_is_copied_for_them() {
    let home = dir("home");
    let checkout = home.path().join("checkout");
    for part in ["examples", "php"] {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").join(part);
        fs::create_dir_all(&checkout).expect("a directory can be made");
        let copied = Command::new("cp").arg("-r").arg(from).arg(&checkout).status();
        assert!(copied.expect("cp runs").success());
    }
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700)).expect("can be set");
    let site = NewsSite::start(&checkout, dir("news"), 5).expect("the site starts");
    // The servers of an ordinary user run as the same user, and need no copy.
    assert_eq!(site.dir().starts_with(&checkout), !harness::am_root());
    let pool = PoolOptions { env: site.env().to_vec(), ..PoolOptions::default() };
    let php = PhpFpm::start(dir("php"), &pool).expect("php-fpm starts");
    let web = nginx(&site.dir().join("public").display().to_string(), php.socket());
    let page = Client::new(web.expect("nginx starts").address()).get("/index.php");
    let page = page.expect("an answer");
    assert!(page.text().contains("<title>"), "{} {}", page.status, page.text());
}
