//! Pages outlive the process: a restart keeps all pages, except those that were changed in the meantime by any
//! program. A killed process leaves the old snapshot or the new one. A damaged or foreign snapshot is refused.
//!
//! The data are in files and in a MariaDB; a page is correct if it shows them.

mod database;

use acceptance::{Raw, Site, binary, bound_files, client, counter, is_hit, until};
use harness::{Client, Pagewell, Request, Response, Signal, StartReason, Wait};
use std::fs;
use std::path::{Path, PathBuf};

/// Shows a file, and has a tag with its name.
const FILE: &str = r#"<?php
keep(3600);
$n = basename($_GET['n']);
header("Cache-Groups: \"file:$n\"");
echo $n, '=', @file_get_contents(getenv('NOTES') . "/truth-$n"), str_repeat('.', 20000);
"#;

const PAGES: u32 = 20;

/// A site whose data are in files, with invalidation through the control API.
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

    /// The existing journals, in order.
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

    /// Starts Pagewell, and waits until the snapshot is restored and another one may be written.
    fn serve_warm(&self) -> Pagewell {
        self.serve_warm_with("")
    }

    fn serve_warm_with(&self, more: &str) -> Pagewell {
        let pagewell = self.serve(more);
        let mut admin = Client::new(pagewell.admin().clone());
        until("the snapshot is restored", || {
            admin.get("/v1/ready").is_ok_and(|answer| answer.status == 200)
        });
        assert!(counter(&pagewell, "snapshot_pages") > 0, "{}", pagewell.log());
        pagewell
    }

    /// Changes a file, and invalidates its tag.
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

/// Repeats the request until it is a hit.
fn stored(pagewell: &Pagewell, path: &str) {
    until(&format!("{path} is stored"), || is_hit(&get(pagewell, path)));
}

fn stop(mut pagewell: Pagewell) {
    pagewell.signal(Signal::TERM);
    match pagewell.wait(acceptance::BOUND) {
        Wait::Ended(status) => assert!(status.success(), "{status}: {}", pagewell.log()),
        Wait::Running => panic!("it has not ended"),
    }
}

#[test]
fn a_restart_keeps_pages_and_renders_none() {
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
    // Restored pages are like other pages.
    files.change(&pagewell, 3, "new");
    assert!(get(&pagewell, &path(3)).text().starts_with("3=new"));
    assert_eq!(counter(&pagewell, "renders"), 1);
}

#[test]
fn a_kill_while_writing_leaves_the_old_or_the_new_snapshot() {
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
        // Each read of the counters takes a moment, so that the kill comes a little later in each round.
        (0..round).for_each(|_| drop(pagewell.stats()));
        pagewell.kill();
    }
}

#[test]
fn invalidations_after_a_snapshot_survive_a_kill() {
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
    // And again without a new snapshot: the journal continues where it ended.
    files.change(&pagewell, 2, "told too");
    pagewell.kill();
    let mut pagewell = files.serve_warm();
    assert!(get(&pagewell, &path(1)).text().starts_with("1=told"));
    assert!(get(&pagewell, &path(2)).text().starts_with("2=told too"));
    assert!(is_hit(&get(&pagewell, &path(3))));
    // A change without tags is a change of everything.
    assert_eq!(pagewell.invalidate("{\"all\":true}").expect("an answer").status, 200);
    pagewell.kill();
    let pagewell = files.serve("");
    until("all is read", || pagewell.log().contains("snapshot-loaded"));
    assert_eq!(counter(&pagewell, "snapshot_pages"), 0);
    assert!(!is_hit(&get(&pagewell, &path(3))));
}

/// A page that may be served stale for a long time, until the origin deletes it.
const TAKEN_BACK: &str = r#"<?php
if (file_exists(getenv('NOTES') . '/gone')) {
    http_response_code(404);
    header('Cache-Control: no-store');
    exit('gone');
}
header('Cache-Control: public, max-age=0, stale-while-revalidate=3600');
echo 'one';
"#;

/// No invalidation was sent, but clients were answered 404.
#[test]
fn a_page_deleted_at_the_origin_does_not_return_after_a_kill() {
    let files = Files::new();
    files.site.file("page.php", TAKEN_BACK);
    let pagewell = files.serve("");
    stored(&pagewell, "/page.php");
    stop(pagewell);
    let mut pagewell = files.serve_warm();
    assert_eq!(get(&pagewell, "/page.php").text(), "one");
    fs::write(files.site.at("notes/gone"), "").expect("it is written");
    until("it is taken back", || get(&pagewell, "/page.php").status == 404);
    until("it is counted", || counter(&pagewell, "superseded") == 1);
    pagewell.kill();
    let pagewell = files.serve("");
    until("all is read", || pagewell.log().contains("snapshot-loaded"));
    assert_eq!(get(&pagewell, "/page.php").status, 404);
}

/// Changes the first page's file when it is released, and invalidates it.
const WRITE: &str = r#"<?php
note('began');
wait_for('go');
file_put_contents(getenv('NOTES') . '/truth-1', 'written');
header('Cache-Group-Invalidation: "file:1"');
"#;

/// The changes of this write will never be known.
#[test]
fn a_kill_with_a_write_in_flight_starts_cold() {
    let files = Files::new();
    files.site.file("write.php", WRITE);
    let began = files.site.at("notes/began");
    let write = |pagewell: &Pagewell| {
        let mut client = client(pagewell);
        let form = Request::form("/write.php", "a=1").header("Host", "paper.test");
        let written = std::thread::spawn(move || client.send(&form).map(|answer| answer.status));
        until("it is at the origin", || began.exists());
        written
    };
    let pagewell = files.serve("");
    fill(&pagewell);
    stop(pagewell);
    // A write that has ended does not matter.
    fs::write(files.site.at("notes/go"), "").expect("it is written");
    let mut pagewell = files.serve_warm();
    let written = write(&pagewell).join().expect("it ends");
    assert_eq!(written.expect("an answer"), 200);
    pagewell.kill();
    fs::remove_file(files.site.at("notes/go")).expect("it is removed");
    fs::remove_file(&began).expect("it is removed");
    let mut pagewell = files.serve_warm();
    assert!(get(&pagewell, &path(1)).text().starts_with("1=written"));
    assert!(is_hit(&get(&pagewell, &path(2))));

    let written = write(&pagewell);
    pagewell.kill();
    assert!(written.join().expect("it ends").is_err());
    fs::write(files.site.at("notes/truth-2"), "as well").expect("it is written");
    let pagewell = files.serve("");
    assert!(pagewell.log().contains("reason=\"in-flight\""), "{}", pagewell.log());
    assert_eq!(counter(&pagewell, "snapshots_refused"), 1);
    assert!(get(&pagewell, &path(2)).text().starts_with("2=as well"));
}

/// The origin has nothing of such a write.
#[test]
fn a_kill_while_the_content_of_a_write_arrives_starts_warm() {
    let files = Files::new();
    let pagewell = files.serve("");
    fill(&pagewell);
    stop(pagewell);
    let mut pagewell = files.serve_warm();
    let head = "POST /file.php?n=1 HTTP/1.1\r\nHost: paper.test\r\nContent-Length: 9\r\n\r\n";
    let _slow = Raw::with(&pagewell, format!("{head}a=1"));
    until("its content is awaited", || counter(&pagewell, "forwards") == 1);
    pagewell.kill();
    let pagewell = files.serve_warm();
    assert!(is_hit(&get(&pagewell, &path(1))));
}

#[test]
fn unusable_snapshots_are_refused() {
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
    // The snapshot itself is valid: the refusals above were not caused by the test.
    put(&whole, &journal_bytes);
    let pagewell = files.serve_warm();
    assert!(is_hit(&get(&pagewell, &path(1))));
}

#[test]
fn a_full_disk_keeps_the_old_snapshot() {
    let files = Files::new();
    let pagewell = files.serve("");
    fill(&pagewell);
    stop(pagewell);
    for (file, why) in [("site.snapshot.new", "os error 27"), ("site.journal.new", "a directory")] {
        let pagewell = files.serve_warm();
        files.change(&pagewell, 1, file);
        if file == "site.journal.new" {
            fs::create_dir(files.at(file)).expect("a directory can be made");
        } else {
            // More than the log needs, and less than the pages.
            bound_files(&pagewell, Some(100_000));
        }
        pagewell.signal(Signal::TERM);
        let mut pagewell = pagewell;
        assert!(
            matches!(pagewell.wait(acceptance::BOUND), Wait::Ended(status) if status.success())
        );
        let log = pagewell.log();
        assert!(log.contains("snapshot-not-written") && log.contains(why), "{log}");
        drop(pagewell);
        let pagewell = files.serve_warm();
        assert!(get(&pagewell, &path(1)).text().starts_with(&format!("1={file}")));
        assert!(is_hit(&get(&pagewell, &path(2))));
        let _ = fs::remove_dir(files.at(file));
        stop(pagewell);
    }
}

/// It starts without its pages, and none of them returns when there is space again.
#[test]
fn a_full_disk_does_not_prevent_the_start() {
    let files = Files::new();
    let running = files.at("site.running");
    let pagewell = files.serve("");
    fill(&pagewell);
    stop(pagewell);
    // Overwriting in place needs no space.
    assert!(fs::read(&running).expect("it is there").starts_with(b"ended"));
    fs::remove_file(&running).expect("it can be removed");
    std::os::unix::fs::symlink("/dev/full", &running).expect("a link can be made");
    let pagewell = files.serve("");
    assert!(!is_hit(&get(&pagewell, &path(1))), "{}", pagewell.log());
    assert!(is_hit(&get(&pagewell, &path(1))));
    assert!(!files.at("site.snapshot").exists());
    fs::remove_file(&running).expect("it can be removed");
    stop(pagewell);
    let pagewell = files.serve_warm();
    assert_eq!(counter(&pagewell, "snapshot_pages"), 1);
}

#[test]
fn a_snapshot_that_times_out_at_the_stop_keeps_the_old_one() {
    let files = Files::new();
    let pagewell = files.serve("");
    fill(&pagewell);
    stop(pagewell);
    let before = fs::read(files.at("site.snapshot")).expect("it was written");
    // The time is over when the first batch is written, however fast the disk is.
    let mut pagewell = files.serve_warm_with("[limits]\nsnapshot_stop = \"0s\"\n");
    files.change(&pagewell, 1, "new");
    pagewell.signal(Signal::TERM);
    assert!(matches!(pagewell.wait(acceptance::BOUND), Wait::Ended(status) if status.success()));
    let log = pagewell.log();
    let said = log.lines().find(|line| line.contains("snapshot-not-written")).expect("it says so");
    assert!(said.contains("interrupted"), "{log}");
    assert_eq!(fs::read(files.at("site.snapshot")).expect("it stays"), before);
    let pagewell = files.serve_warm();
    assert!(get(&pagewell, &path(1)).text().starts_with("1=new"));
    assert!(is_hit(&get(&pagewell, &path(2))));
}

/// Sends an invalidation, of whose journal entry only this number of bytes is written.
fn told_and_not_noted(files: &Files, pagewell: &Pagewell, journal: &Path, bytes: u64) {
    let length = fs::metadata(journal).expect("it is there").len();
    bound_files(pagewell, Some(length + bytes));
    files.change(pagewell, 1, "not noted");
    bound_files(pagewell, None);
    assert!(get(pagewell, &path(1)).text().starts_with("1=not noted"));
}

#[test]
fn a_change_that_cannot_be_journalled_is_never_lost() {
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
fn a_snapshot_that_cannot_be_removed_is_not_used() {
    let files = Files::new();
    let pagewell = files.serve("");
    fill(&pagewell);
    stop(pagewell);
    // The directory is moved away, so that nothing can be removed. No byte of the change is accepted, so that
    // the journal does not end in a torn entry.
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

    // It is removed as soon as that is possible: with the next change.
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
fn a_snapshot_directory_belongs_to_one_process() {
    let files = Files::new();
    let _pagewell = files.serve("");
    let file = files.site.config(&files.config(""), "").display().to_string();
    let root = files.site.root().display().to_string();
    let args = [root.as_str(), "--memory", "64M", "--config", &file];
    let error = Pagewell::start(binary(), &args).expect_err("it does not start");
    assert_eq!(error.reason, StartReason::Ended);
    assert!(error.to_string().contains("another Pagewell has it"), "{error}");
}
