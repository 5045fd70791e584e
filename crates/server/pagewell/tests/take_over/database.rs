//! Zero-downtime restart with a MariaDB that reports changes: the new process follows the database from the
//! position of the old one. No client sees data from before an acknowledged write, whichever process answers.
//! No change at the SQL prompt is missed. No page is purged because of the restart.

use super::{BOUND, Ending, Run, Story, StrictClient, ended, tcp, truth};
use acceptance::{Raw, Site, cache_status, client, counter, is_hit, until};
use harness::{MariaDb, MariaDbOptions, Pagewell, PrivateDir, Request};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;

/// Shows a row, and has its tag.
const PAGE: &str = r#"<?php
require 'db.php';
keep(3600);
$row = (int) ($_GET['row'] ?? 1);
header("Cache-Groups: \"truth:$row\"");
echo 'truth=', db()->query("SELECT n FROM truth WHERE id = $row")->fetchColumn(), ';';
"#;

/// Changes a row without an invalidation.
const WRITE: &str = r#"<?php
require 'db.php';
db()->exec('UPDATE truth SET n = ' . (int) $_GET['n'] . ' WHERE id = 1');
if (isset($_GET['wait'])) {
    note('written');
    wait_for('go');
}
echo 'written';
"#;

/// The barrier's limit is longer than any client waits. A request that waits for a log position that is no
/// longer reported would therefore fail the test.
const RULES: &str = "barrier = \"1m\"\n[[change]]\ntable = \"truth\"\ntags = [\"truth:{id}\"]\n";

fn database() -> MariaDb {
    let dir = PrivateDir::temporary("followed").expect("a directory");
    let database = MariaDb::start_with(dir, MariaDbOptions::followed(&[])).expect("MariaDB starts");
    database.create_database("paper", "writer", "secret").expect("a database");
    database.create_follower("localhost", "paper").expect("an account");
    let tables = "CREATE TABLE truth (id INT PRIMARY KEY, n BIGINT NOT NULL);
         INSERT INTO truth VALUES (1, 0), (2, 0), (3, 0);";
    database.sql_in("paper", tables).expect("tables");
    database
}

/// A site whose data is in the database; `more` is additional configuration.
fn story(database: &MariaDb, more: impl Fn(&Site) -> String) -> Story {
    let socket = database.socket().display();
    let db = format!(
        "<?php function db(): PDO {{ return new PDO('mysql:unix_socket={socket};dbname=paper', \
         'writer', 'secret'); }}"
    );
    let site = Site::new(&[("page.php", PAGE), ("write.php", WRITE), ("db.php", &db)]);
    let url = format!("mysql://follower:secret@localhost/paper?socket={socket}");
    let config = format!("{}[[database]]\nurl = {url:?}\n{RULES}", more(&site));
    Story { site, config }
}

fn kept(site: &Site) -> String {
    format!("[snapshot]\ndirectory = {:?}\n", site.at("snapshots"))
}

fn stored(pagewell: &Pagewell, target: &str) {
    let request = Request::new("GET", target).header("Host", "a.test");
    until(&format!("{target} is stored"), || {
        is_hit(&client(pagewell).send(&request).expect("an answer"))
    });
}

/// Writes through Pagewell, and records each value as acknowledged after its response.
fn write(run: &Run, at: SocketAddr) {
    let mut client = StrictClient::new(at, true);
    for n in 1.. {
        if run.is_over.load(Ordering::Acquire) {
            return;
        }
        match client.ask("POST", &format!("/write.php?n={n}")) {
            Ok((200, head, content)) if content == "written" && !head.contains("changes-late") => {}
            other => run.fault(format!("a write: {other:?}")),
        }
        run.acknowledged.store(n, Ordering::Release);
    }
}

/// Changes another row at the SQL prompt, and waits each time until its page shows it.
fn tell(run: &Run, database: &MariaDb, at: SocketAddr) -> u64 {
    let mut client = StrictClient::new(at, false);
    for n in 1.. {
        if run.is_over.load(Ordering::Acquire) {
            return n;
        }
        let change = format!("UPDATE truth SET n = {n} WHERE id = 2");
        database.sql_in("paper", &change).expect("it is changed");
        until("the change is seen", || match client.ask("GET", "/page.php?row=2") {
            Ok((200, _, content)) => truth(&content) == n,
            other => {
                run.fault(format!("{other:?}"));
                true
            }
        });
    }
    unreachable!()
}

fn again_and_again(story: &Story, database: &MariaDb, comes_along: bool) {
    let mut current = story.serve();
    let (at, run) = (tcp(current.address()), Run::default());
    let told = std::thread::scope(|threads| {
        let ending = Ending(&run);
        for n in 0..4 {
            let run = &run;
            threads.spawn(move || run.read(at, n % 2 == 0, n));
        }
        threads.spawn(|| write(&run, at));
        let telling = threads.spawn(|| tell(&run, database, at));
        for _ in 0..4 {
            let asked = run.answers.load(Ordering::Relaxed);
            until("visitors are served", || run.answers.load(Ordering::Relaxed) > asked + 200);
            stored(&current, "/page.php?row=3");
            let next = story.take_over(&current);
            if comes_along {
                until("pages are put in", || counter(&next, "snapshot_pages") > 0);
            }
            let request = Request::new("GET", "/page.php?row=3").header("Host", "a.test");
            let page = client(&next).send(&request).expect("an answer");
            assert_eq!(is_hit(&page), comes_along, "{}", cache_status(&page));
            assert_eq!(counter(&next, "database_gaps"), 0, "{}", next.log());
            assert_eq!(counter(&next, "database_late"), 0, "{}", next.log());
            ended(std::mem::replace(&mut current, next));
        }
        let asked = run.answers.load(Ordering::Relaxed);
        until("visitors are served", || run.answers.load(Ordering::Relaxed) > asked + 200);
        drop(ending);
        telling.join().expect("every change was seen")
    });
    let faults = run.faults.lock().expect("no panic");
    assert!(faults.is_empty(), "{} faults, such as {}\n{}", faults.len(), faults[0], current.log());
    let (hits, written) = (run.hits.into_inner(), run.acknowledged.into_inner());
    println!("{} answers, {hits} of them hits, {written} writes, {told} at the SQL prompt", {
        run.answers.into_inner()
    });
    assert!(hits > 0 && written > 0 && told > 1);
}

#[test]
fn changes_of_the_database_count_in_either_process() {
    let database = database();
    again_and_again(&story(&database, kept), &database, true);
}

#[test]
fn rules_that_do_not_fit_the_database_cost_no_page() {
    let database = database();
    let mut story = story(&database, kept);
    let first = story.serve();
    stored(&first, "/page.php");
    story.config = story.config.replace("truth:{id}", "truth:{idd}");
    let failed = story.next(&first).output().expect("it runs");
    let said = String::from_utf8_lossy(&failed.stderr);
    assert!(failed.status.code() == Some(1) && said.contains("idd"), "{said}");
    until("it is said", || first.log().contains("take-over-refused"));
    let request = Request::new("GET", "/page.php").header("Host", "a.test");
    assert!(is_hit(&client(&first).send(&request).expect("an answer")), "{}", first.log());
    story.config = story.config.replace("truth:{idd}", "truth:{id}");
    let next = story.take_over(&first);
    until("the page is put in", || counter(&next, "snapshot_pages") == 1);
    ended(first);
}

#[test]
fn nor_is_anything_missed_where_no_page_comes_along() {
    let database = database();
    again_and_again(&story(&database, |_| String::new()), &database, false);
}

#[test]
fn a_write_at_the_old_process_waits_for_the_new_process() {
    let database = database();
    let waits = |site: &Site| format!("[limits]\ndrain = \"50s\"\n{}", kept(site));
    let story = story(&database, waits);
    let first = story.serve();
    stored(&first, "/page.php");
    let mut writing = Raw::with(
        &first,
        "POST /write.php?n=7&wait=1 HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n",
    );
    story.site.wait_for("written");
    let next = story.take_over(&first);
    // Committed without a response: it becomes visible soon.
    let request = Request::new("GET", "/page.php").header("Host", "a.test");
    let mut client = client(&next).within(BOUND);
    until("it is seen", || truth(&client.send(&request).expect("an answer").text()) == 7);
    stored(&next, "/page.php");
    // A commit after the restart, by a write that is in flight in the old process.
    database.sql_in("paper", "UPDATE truth SET n = 8 WHERE id = 1").expect("it is changed");
    story.site.note("go");
    let answer = writing.answer();
    assert_eq!(answer.content, "written");
    assert!(!answer.head.contains("changes-late"), "{}", answer.head);
    assert_eq!(truth(&client.send(&request).expect("an answer").text()), 8);
    ended(first);
    assert_eq!(counter(&next, "database_gaps"), 0, "{}", next.log());
}
