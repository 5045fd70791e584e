//! Pages outlive the process: a restart keeps them, but for those that have changed meanwhile, whoever
//! changed them; a process that is killed leaves the old snapshot or the new one; one that is damaged or
//! somebody else's is refused.
//!
//! The truth is in files and in a MariaDB; a page is right if it shows what is there.

mod common;

use common::{Site, binary, client, counter, is_hit, until};
use harness::{
    Client, MariaDb, MariaDbOptions, Pagewell, PrivateDir, Request, Response, Signal, StartReason,
    Wait,
};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Shows a file, and depends on a tag of its name.
const FILE: &str = r#"<?php
keep(3600);
$n = basename($_GET['n']);
header("Cache-Groups: \"file:$n\"");
echo $n, '=', @file_get_contents(getenv('NOTES') . "/truth-$n"), str_repeat('.', 20000);
"#;

const PAGES: u32 = 20;
/// Pages of which a snapshot takes more than one batch.
const MORE_THAN_AT_ONCE: u64 = 300;

/// A site whose truth is in files, told of by the control interface.
struct Files {
    site: Site,
}

impl Files {
    fn new() -> Files {
        Files { site: Site::new(&[("file.php", FILE)]) }
    }

    fn directory(&self) -> PathBuf {
        self.site.at("snapshots")
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory().join(name)
    }

    /// The journals that are there, in order.
    fn journals(&self) -> Vec<PathBuf> {
        let all = fs::read_dir(self.directory()).expect("a list").flatten();
        let named = |path: &PathBuf| path.to_string_lossy().contains("journal-");
        let mut found: Vec<PathBuf> = all.map(|entry| entry.path()).filter(named).collect();
        found.sort();
        found
    }

    fn config(&self, more: &str) -> String {
        let directory = self.directory();
        format!("{more}\n[snapshot]\ndirectory = {directory:?}\nunwatched = \"serve\"\n")
    }

    fn serve(&self, more: &str) -> Pagewell {
        self.site.serve(&self.config(more))
    }

    /// Starts, and waits until what was left is in.
    fn serve_warm(&self) -> Pagewell {
        let pagewell = self.serve("");
        until("pages are put in", || counter(&pagewell, "snapshot_pages") > 0);
        pagewell
    }

    /// The truth is another, and Pagewell is told.
    fn change(&self, pagewell: &Pagewell, n: u32, truth: &str) {
        fs::write(self.site.at("notes").join(format!("truth-{n}")), truth).expect("it is written");
        let said = format!("{{\"tags\":[\"file:{n}\"]}}");
        assert_eq!(pagewell.invalidate(&said).expect("an answer").status, 200);
    }
}

fn path(n: u32) -> String {
    format!("/file.php?n={n}")
}

/// The host is the same whatever the port is.
fn get(pagewell: &Pagewell, path: &str) -> Response {
    let request = Request::new("GET", path).header("Host", "paper.test");
    client(pagewell).send(&request).expect("an answer")
}

fn fill(pagewell: &Pagewell) {
    (0..PAGES).for_each(|n| stored(pagewell, &path(n)));
}

/// Asks until the page comes from memory.
fn stored(pagewell: &Pagewell, path: &str) {
    until(&format!("{path} is stored"), || is_hit(&get(pagewell, path)));
}

fn stop(mut pagewell: Pagewell) {
    pagewell.signal(Signal::TERM);
    match pagewell.wait(common::BOUND) {
        Wait::Ended(status) => assert!(status.success(), "{status}: {}", pagewell.log()),
        Wait::Running => panic!("it has not ended"),
    }
}

#[test]
fn a_restart_keeps_pages_and_does_not_wake_php() {
    let files = Files::new();
    let pagewell = files.serve("");
    fill(&pagewell);
    let before = get(&pagewell, &path(3));
    stop(pagewell);
    let pagewell = files.serve_warm();
    assert_eq!(counter(&pagewell, "snapshot_pages"), u64::from(PAGES));
    for n in 0..PAGES {
        let page = get(&pagewell, &path(n));
        assert!(is_hit(&page), "{n}");
        assert!(page.text().starts_with(&format!("{n}=.")), "{n}");
    }
    let after = get(&pagewell, &path(3));
    for name in ["content-type", "etag", "cache-control", "date", "vary"] {
        assert_eq!(after.header(name), before.header(name), "{name}");
    }
    assert_eq!(counter(&pagewell, "renders"), 0);
    // They are pages like others.
    files.change(&pagewell, 3, "new");
    assert!(get(&pagewell, &path(3)).text().starts_with("3=new"));
    assert_eq!(counter(&pagewell, "renders"), 1);
}

#[test]
fn killed_while_it_writes_it_leaves_the_old_or_the_new() {
    let files = Files::new();
    let pagewell = files.serve("");
    fill(&pagewell);
    stop(pagewell);
    // From at once to after the end of the writing.
    for round in 0..10 {
        let mut pagewell = files.serve_warm();
        assert_eq!(counter(&pagewell, "snapshots_refused"), 0, "{}", pagewell.log());
        let n = round % 7;
        let last = format!("{}=round{}", (round + 6) % 7, round.max(1) - 1);
        if round > 0 {
            let page = get(&pagewell, &path((round + 6) % 7));
            assert!(page.text().starts_with(&last), "what was told is not forgotten");
        }
        assert!(is_hit(&get(&pagewell, &path(PAGES - 1))), "what nobody changed is there");
        files.change(&pagewell, n, &format!("round{round}"));
        if round % 3 == 2 {
            stored(&pagewell, &path(n));
        }
        pagewell.signal(Signal::TERM);
        // However far it gets meanwhile: reading a counter takes a while, and the more of them the longer.
        (0..round).for_each(|_| drop(pagewell.stats()));
        pagewell.kill();
    }
}

#[test]
fn what_was_told_after_a_snapshot_counts_when_it_is_killed() {
    let files = Files::new();
    // The pages of one snapshot, whose number is the last.
    let more = "";
    let pagewell = files.site.serve(&format!("{}every = \"1s\"\n", files.config(more)));
    fill(&pagewell);
    let written = counter(&pagewell, "snapshots_written");
    until("two more are written", || counter(&pagewell, "snapshots_written") >= written + 2);
    files.change(&pagewell, 1, "told");
    assert!(pagewell.invalidate("{\"prefixes\":[\"/other/\"]}").expect("an answer").status == 200);
    let mut pagewell = pagewell;
    pagewell.kill();
    let mut pagewell = files.serve_warm();
    let page = get(&pagewell, &path(1));
    assert!(!is_hit(&page) && page.text().starts_with("1=told"));
    assert!(is_hit(&get(&pagewell, &path(2))));
    // And once more, without a new snapshot: the journal goes on where it ended.
    files.change(&pagewell, 2, "told too");
    pagewell.kill();
    let mut pagewell = files.serve_warm();
    assert!(get(&pagewell, &path(1)).text().starts_with("1=told"));
    assert!(get(&pagewell, &path(2)).text().starts_with("2=told too"));
    assert!(is_hit(&get(&pagewell, &path(3))));
    // What has no name is everything.
    assert_eq!(pagewell.invalidate("{\"all\":true}").expect("an answer").status, 200);
    pagewell.kill();
    let pagewell = files.serve("");
    until("all is read", || pagewell.log().contains("snapshot-loaded"));
    assert_eq!(counter(&pagewell, "snapshot_pages"), 0);
    assert!(!is_hit(&get(&pagewell, &path(3))));
}

#[test]
fn what_cannot_be_used_is_refused() {
    let files = Files::new();
    let pagewell = files.serve("");
    fill(&pagewell);
    stop(pagewell);
    let snapshot = files.at("site.snapshot");
    let whole = fs::read(&snapshot).expect("it is there");
    let journals = || files.journals();
    let journal = journals().first().expect("there is one").clone();
    let journal_bytes = fs::read(&journal).expect("it can be read");
    let refused = |reason: &str, more: &str| {
        let pagewell = files.serve(more);
        until(reason, || counter(&pagewell, "snapshots_refused") == 1);
        let said = format!("reason=\"{reason}\"");
        assert!(pagewell.log().contains(&said), "{reason}: {}", pagewell.log());
        assert!(!is_hit(&get(&pagewell, &path(1))), "{reason}");
        let mut pagewell = pagewell;
        pagewell.kill();
        assert!(!snapshot.exists() && files.at("site.refused").exists(), "{reason}");
    };
    let put = |snapshot_bytes: &[u8], journal_bytes: &[u8]| {
        journals().iter().for_each(|old| fs::remove_file(old).expect("it goes"));
        fs::write(&snapshot, snapshot_bytes).expect("it is written");
        fs::write(&journal, journal_bytes).expect("it is written");
    };
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    put(&flipped, &journal_bytes);
    refused("damaged", "");
    put(&whole[..whole.len() / 2], &journal_bytes);
    refused("cut-off", "");
    put(b"This is no snapshot at all, but something else.", &journal_bytes);
    refused("foreign", "");
    put(&[&b"PwPages\n\xff"[..], &whole[9..]].concat(), &journal_bytes);
    refused("other-version", "");
    put(&whole, &journal_bytes);
    refused("other-configuration", "[keys]\nlower_case = true\n");
    put(&whole, &journal_bytes[..journal_bytes.len() - 1]);
    refused("cut-off", "");
    put(&whole, &journal_bytes);
    fs::remove_file(&journal).expect("it goes");
    refused("journal-missing", "");
    put(&whole, &journal_bytes);
    fs::write(files.at("site.running"), "another start of the system").expect("it is written");
    refused("system-stopped", "");
    // And it is whole: nothing of this was the test's own fault.
    put(&whole, &journal_bytes);
    let pagewell = files.serve_warm();
    assert!(is_hit(&get(&pagewell, &path(1))));
}

#[test]
fn where_the_disk_is_full_the_old_one_stays() {
    let files = Files::new();
    let pagewell = files.serve("");
    fill(&pagewell);
    stop(pagewell);
    for file in ["site.snapshot.new", "site.journal.new"] {
        let pagewell = files.serve_warm();
        files.change(&pagewell, 1, file);
        std::os::unix::fs::symlink("/dev/full", files.at(file)).expect("a link can be made");
        pagewell.signal(Signal::TERM);
        let mut pagewell = pagewell;
        assert!(matches!(pagewell.wait(common::BOUND), Wait::Ended(status) if status.success()));
        let log = pagewell.log();
        assert!(log.contains("snapshot-not-written") && log.contains("os error 28"), "{log}");
        drop(pagewell);
        let pagewell = files.serve_warm();
        assert!(get(&pagewell, &path(1)).text().starts_with(&format!("1={file}")));
        assert!(is_hit(&get(&pagewell, &path(2))));
        let _ = fs::remove_file(files.at(file));
        stop(pagewell);
    }
}

#[test]
fn a_snapshot_that_takes_too_long_at_the_stop_leaves_the_old_one() {
    let files = Files::new();
    // A batch of these is longer than what is put together before it is written.
    files.site.file("many.php", "<?php keep(3600); echo str_repeat('.', 12000);");
    let pagewell = files.serve("");
    (0..MORE_THAN_AT_ONCE).for_each(|n| stored(&pagewell, &format!("/many.php?n={n}")));
    stored(&pagewell, &path(1));
    stop(pagewell);
    let before = fs::read(files.at("site.snapshot")).expect("it was written");
    let mut pagewell = files.serve("[limits]\nsnapshot_stop = \"20ms\"\n");
    until("pages are put in", || counter(&pagewell, "snapshot_pages") > MORE_THAN_AT_ONCE);
    files.change(&pagewell, 1, "new");
    // A disk that is slow by far: whoever writes to it waits for a reader who takes his time.
    let pipe = files.at("site.snapshot.new");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo is there");
    assert!(made.success());
    pagewell.signal(Signal::TERM);
    let (mut disk, mut taken) = (fs::File::open(&pipe).expect("it writes"), vec![0; 64 << 10]);
    while disk.read(&mut taken).expect("a pipe") > 0 {
        std::thread::park_timeout(std::time::Duration::from_millis(10));
    }
    assert!(matches!(pagewell.wait(common::BOUND), Wait::Ended(status) if status.success()));
    let log = pagewell.log();
    let said = log.lines().find(|line| line.contains("snapshot-not-written")).expect("it says so");
    assert!(said.contains("interrupted"), "{log}");
    assert_eq!(fs::read(files.at("site.snapshot")).expect("it stays"), before);
    let pagewell = files.serve_warm();
    assert!(get(&pagewell, &path(1)).text().starts_with("1=new"));
    assert!(is_hit(&get(&pagewell, "/many.php?n=2")));
}

/// From now on this process writes no file beyond so many bytes: the system takes what fits, and no more.
/// That is so for its log as well.
fn bound_files(pagewell: &Pagewell, bytes: Option<u64>) {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let pid = Pid::from_raw(pagewell.pid() as i32).expect("it has a number");
    let limit = Rlimit { current: bytes, maximum: None };
    prlimit(Some(pid), Resource::Fsize, limit).expect("it can be bounded");
}

/// A change is told of which the journal takes so many bytes, and no more.
fn told_and_not_noted(files: &Files, pagewell: &Pagewell, journal: &Path, bytes: u64) {
    let length = fs::metadata(journal).expect("it is there").len();
    bound_files(pagewell, Some(length + bytes));
    files.change(pagewell, 1, "not noted");
    bound_files(pagewell, None);
    assert!(get(pagewell, &path(1)).text().starts_with("1=not noted"));
}

#[test]
fn a_change_that_cannot_be_noted_is_never_forgotten() {
    let files = Files::new();
    for bytes in [0, 1, 10, 20] {
        let pagewell = files.serve("");
        fill(&pagewell);
        stop(pagewell);
        let mut pagewell = files.serve_warm();
        let journal = files.journals().pop().expect("there is one");
        told_and_not_noted(&files, &pagewell, &journal, bytes);
        assert!(!files.at("site.snapshot").exists(), "nothing is left to be relied on");
        files.change(&pagewell, 2, "nor this");
        pagewell.kill();
        let pagewell = files.serve("");
        assert!(get(&pagewell, &path(1)).text().starts_with("1=not noted"));
        assert!(get(&pagewell, &path(2)).text().starts_with("2=nor this"));
        assert_eq!(counter(&pagewell, "snapshot_pages"), 0);
        stop(pagewell);
    }
}

#[test]
fn what_cannot_be_removed_cannot_be_read() {
    let files = Files::new();
    let pagewell = files.serve("");
    fill(&pagewell);
    stop(pagewell);
    // The directory is where nobody finds it, so that nothing can be removed. Not one byte of the change is
    // taken: where the journal ends it is not torn.
    let mut pagewell = files.serve_warm();
    let away = files.site.at("away");
    let journal =
        away.join(files.journals().pop().expect("there is one").file_name().expect("a name"));
    fs::rename(files.directory(), &away).expect("it can be moved");
    told_and_not_noted(&files, &pagewell, &journal, 0);
    files.change(&pagewell, 2, "nor this");
    assert!(pagewell.log().contains("snapshot-not-removed"), "{}", pagewell.log());
    pagewell.kill();
    fs::rename(&away, files.directory()).expect("it can be moved");
    assert!(files.at("site.snapshot").exists(), "it is still there");
    let pagewell = files.serve("");
    assert!(pagewell.log().contains("reason=\"cut-off\""), "{}", pagewell.log());
    assert!(get(&pagewell, &path(1)).text().starts_with("1=not noted"));
    assert!(get(&pagewell, &path(2)).text().starts_with("2=nor this"));
    fill(&pagewell);
    stop(pagewell);

    // As soon as it can be removed it is: with the next change.
    let mut pagewell = files.serve_warm();
    let journal =
        away.join(files.journals().pop().expect("there is one").file_name().expect("a name"));
    fs::rename(files.directory(), &away).expect("it can be moved");
    told_and_not_noted(&files, &pagewell, &journal, 0);
    fs::rename(&away, files.directory()).expect("it can be moved");
    assert!(files.at("site.snapshot").exists(), "it is still there");
    files.change(&pagewell, 3, "nor that");
    assert!(!files.at("site.snapshot").exists() && files.journals().is_empty());
    pagewell.kill();
}

#[test]
fn a_directory_is_one_process_s() {
    let files = Files::new();
    let _pagewell = files.serve("");
    let file = files.site.config(&files.config(""), "").display().to_string();
    let root = files.site.root().display().to_string();
    let args = [root.as_str(), "--memory", "64M", "--config", &file];
    let error = Pagewell::start(binary(), &args).expect_err("it does not start");
    assert_eq!(error.reason, StartReason::Ended);
    assert!(error.to_string().contains("another Pagewell has it"), "{error}");
}

const SHOW: &str = r#"<?php
require 'db.php';
keep(3600);
$id = (int) $_GET['id'];
header("Cache-Groups: \"news:$id\"");
echo 'title=', db()->query("SELECT title FROM news WHERE id = $id")->fetchColumn();
"#;

/// A database that is followed, and a site of its pages.
struct Paper {
    database: MariaDb,
    site: Site,
}

impl Paper {
    fn new() -> Paper {
        let dir = PrivateDir::temporary("snapshot").expect("a directory");
        let options = ["--log-bin=bin", "--server-id=1", "--binlog-format=ROW"];
        let options = MariaDbOptions { port: None, options: options.map(String::from).to_vec() };
        let database = MariaDb::start_with(dir, options).expect("MariaDB starts");
        database.create_database("paper", "writer", "secret").expect("a database");
        database.create_follower("localhost", "paper").expect("an account");
        let sql = "USE paper;
             CREATE TABLE news (id INT UNSIGNED PRIMARY KEY, title VARCHAR(50));
             INSERT INTO news VALUES (1, 'one'), (2, 'two'), (3, 'three'), (4, 'four');";
        database.sql(sql).expect("tables");
        let socket = database.socket().display();
        let db = format!(
            "<?php function db(): PDO {{ return new PDO('mysql:unix_socket={socket};dbname=paper', \
             'writer', 'secret'); }}"
        );
        let site = Site::new(&[("db.php", &db), ("show.php", SHOW)]);
        Paper { database, site }
    }

    fn serve(&self) -> Pagewell {
        let (socket, directory) = (self.database.socket().display(), self.site.at("snapshots"));
        self.site.serve(&format!(
            "[snapshot]\ndirectory = {directory:?}\n\
             [[database]]\nurl = \"mysql://follower:secret@localhost/paper?socket={socket}\"\n\
             [[change]]\ntable = \"news\"\ntags = [\"news:{{id}}\"]\n"
        ))
    }

    fn serve_warm(&self) -> Pagewell {
        let pagewell = self.serve();
        until("pages are put in", || pagewell.log().contains("snapshot-loaded"));
        pagewell
    }

    fn set(&self, id: u32, title: &str) {
        let sql = format!("UPDATE news SET title = '{title}' WHERE id = {id}");
        self.database.sql_in("paper", &sql).expect("it runs");
    }
}

fn show(id: u32) -> String {
    format!("/show.php?id={id}")
}

#[test]
fn what_the_database_has_changed_meanwhile_is_made_anew() {
    let mut paper = Paper::new();
    let pagewell = paper.serve();
    (1..=4).for_each(|id| stored(&pagewell, &show(id)));
    // Applied before the end, and applied by nobody.
    paper.set(4, "vier");
    until("it is applied", || get(&pagewell, &show(4)).text() == "title=vier");
    stored(&pagewell, &show(4));
    stop(pagewell);
    paper.set(1, "eins");
    let pagewell = paper.serve_warm();
    assert_eq!(counter(&pagewell, "snapshot_pages"), 3, "{}", pagewell.log());
    for (id, title) in [(2, "two"), (3, "three"), (4, "vier")] {
        let page = get(&pagewell, &show(id));
        assert!(is_hit(&page), "{id}");
        assert_eq!(page.text(), format!("title={title}"));
    }
    assert_eq!(counter(&pagewell, "renders"), 0);
    assert_eq!(get(&pagewell, &show(1)).text(), "title=eins");
    // It is followed on.
    paper.set(2, "zwei");
    until("it is applied", || get(&pagewell, &show(2)).text() == "title=zwei");

    // Killed, with the database stopped and started meanwhile: from the snapshot of before.
    let mut pagewell = pagewell;
    pagewell.kill();
    paper.database.stop();
    paper.database.start_again().expect("MariaDB starts again");
    paper.set(3, "drei");
    let pagewell = paper.serve_warm();
    assert!(is_hit(&get(&pagewell, &show(4))), "{}", pagewell.log());
    for (id, title) in [(1, "eins"), (2, "zwei"), (3, "drei")] {
        assert_eq!(get(&pagewell, &show(id)).text(), format!("title={title}"));
    }
    stop(pagewell);

    // What was not read yet is purged away.
    paper.set(2, "purged");
    let sql = |sql: &str| paper.database.sql_in("paper", sql).expect("it runs");
    sql("FLUSH BINARY LOGS");
    let status = sql("SHOW MASTER STATUS");
    let file = status.split_whitespace().next().expect("a file").to_owned();
    until("it is purged", || {
        sql(&format!("PURGE BINARY LOGS TO '{file}'"));
        sql("SHOW BINARY LOGS").lines().count() == 1
    });
    let pagewell = paper.serve_warm();
    assert_eq!(counter(&pagewell, "snapshot_pages"), 0);
    assert_eq!(counter(&pagewell, "database_gaps"), 1);
    assert!(pagewell.log().contains("reason=\"position-gone\""), "{}", pagewell.log());
    (1..=4).for_each(|id| stored(&pagewell, &show(id)));
    assert_eq!(get(&pagewell, &show(2)).text(), "title=purged");
    stop(pagewell);

    // Its log is gone: nothing can be said of what has changed.
    paper.database.sql_in("paper", "SET sql_log_bin = 0; UPDATE news SET title = 'x'").expect("ok");
    paper.database.sql("RESET MASTER").expect("it runs");
    let pagewell = paper.serve_warm();
    assert_eq!(counter(&pagewell, "snapshot_pages"), 0);
    assert_eq!(get(&pagewell, &show(4)).text(), "title=x");
    assert_eq!(counter(&pagewell, "database_gaps"), 1);
}

#[test]
fn it_is_ready_when_all_of_it_is_there() {
    let mut paper = Paper::new();
    let pagewell = paper.serve();
    stored(&pagewell, &show(1));
    stop(pagewell);
    paper.database.stop();
    let pagewell = paper.serve();
    let ready = || {
        let answer = Client::new(pagewell.admin().clone()).get("/v1/ready").expect("an answer");
        (answer.status, answer.text())
    };
    let (status, told) = ready();
    assert_eq!(status, 503);
    let reasons = r#""reasons":["snapshot-loading","database-not-followed"]"#;
    assert!(told.contains(reasons), "{told}");
    paper.database.start_again().expect("MariaDB starts again");
    until("it is ready", || ready().0 == 200);
    assert!(is_hit(&get(&pagewell, &show(1))), "{}", pagewell.log());
}
