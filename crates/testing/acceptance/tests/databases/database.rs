//! A private MariaDB, and a small site whose pages declare their tags and whose writes send no invalidation:
//! the database does. Rows changed at the SQL prompt, transactions, definitions, cascades; the stream
//! interrupted and resumed, the server restarted, its log deleted; read-your-writes.
//!
//! A page is correct if it shows the data in the database. Nothing waits for a fixed time; eventual results are
//! polled with a timeout.

mod begun_anew;
mod command;
mod elsewhere;
mod faults;
mod not_visible;
mod proxy;
mod redefined;
mod relayed;
mod why;

use crate::paper::{RULES, config_by, get, post, shows, stored};
use crate::{paper, searches};
use acceptance::{Site, cache_status, counter, is_hit, until};
use harness::{MariaDb, MariaDbOptions, Pagewell, PrivateDir, StartReason};

const WRITE: &str = r#"<?php
require 'db.php';
$id = (int) $_GET['id'];
$rows = (int) ($_GET['rows'] ?? 1);
db()->exec("INSERT INTO comments (news_id, body) WITH RECURSIVE n (seq) AS
    (SELECT 1 UNION ALL SELECT seq + 1 FROM n WHERE seq < $rows) SELECT $id, 'x' FROM n");
echo 'written';
"#;

struct Paper {
    database: MariaDb,
    site: Site,
}

/// A MariaDB with a binary log in row format.
fn logging(port: Option<u16>, more: &[&str]) -> MariaDb {
    let dir = PrivateDir::temporary("feed").expect("a directory");
    let mut options = vec!["--log-bin=bin".to_owned(), "--binlog-format=ROW".to_owned()];
    options.extend(more.iter().map(|option| (*option).to_owned()));
    MariaDb::start_with(dir, MariaDbOptions { port, options }).expect("MariaDB starts")
}

impl Paper {
    fn new(more: &[&str]) -> Paper {
        Self::of(logging(None, &[&["--server-id=1"], more].concat()))
    }

    /// A database that also listens on a TCP port; accounts of `127.0.0.1` are those of `localhost`.
    fn over_tcp(more: &[&str]) -> (Paper, u16) {
        let port = harness::free_port().expect("a port");
        let paper = Self::of(logging(Some(port), &[&["--server-id=1"], more].concat()));
        paper.database.create_follower("127.0.0.1", "paper").expect("an account");
        (paper, port)
    }

    fn of(database: MariaDb) -> Paper {
        database.create_database("paper", "writer", "secret").expect("a database");
        database.create_follower("localhost", "paper").expect("an account");
        let sql = "USE paper;
             CREATE TABLE news (id INT UNSIGNED PRIMARY KEY, title VARCHAR(50), seen INT DEFAULT 0);
             CREATE TABLE comments (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY,
                 news_id INT UNSIGNED NOT NULL, body TEXT,
                 FOREIGN KEY (news_id) REFERENCES news (id) ON DELETE CASCADE);
             CREATE VIEW headlines AS SELECT title FROM news;
             INSERT INTO news (id, title) VALUES (1, 'one'), (2, 'two'), (3, 'three');
             INSERT INTO comments (news_id, body) VALUES (3, 'first');";
        database.sql(sql).expect("tables");
        let socket = database.socket().display();
        let db = format!(
            "<?php function db(): PDO {{ return new PDO('mysql:unix_socket={socket};dbname=paper', \
             'writer', 'secret'); }}"
        );
        let site = paper::site(&db, WRITE);
        Paper { database, site }
    }

    fn url(&self) -> String {
        let socket = self.database.socket().display();
        format!("mysql://follower:secret@localhost/paper?socket={socket}")
    }

    fn config(&self, more: &str, rules: &str) -> String {
        config_by(&self.url(), more, rules)
    }

    /// Starts Pagewell with another database URL than that of the socket.
    fn serve_by(&self, url: &str, more: &str) -> Pagewell {
        let pagewell = self.site.serve(&config_by(url, more, RULES));
        stored(&pagewell, "/plain.php");
        pagewell
    }

    fn serve(&self, more: &str) -> Pagewell {
        let pagewell = self.site.serve(&self.config(more, RULES));
        // Nothing is stored until the first position is known to be visible.
        stored(&pagewell, "/plain.php");
        pagewell
    }

    fn sql(&self, sql: &str) {
        self.database.sql_in("paper", sql).expect("the statements run");
    }

    /// The GTIDs in the log of the server.
    fn position(&self) -> String {
        self.database.sql(self.database.product().logged_gtids()).expect("a position")
    }

    /// Lets the follower read positions by file and offset.
    fn grant_positions(&self) {
        let sql = "GRANT REPLICATION CLIENT ON *.* TO follower@localhost";
        self.database.sql(sql).expect("a privilege");
    }
}

/// Closes the connection of the stream, like an administrator can. MySQL lists the connections of clients that
/// have gone until it has something to send to them; they may end at any time.
fn cut(paper: &Paper) {
    let ids = "SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'";
    let ids = paper.database.sql(ids).expect("a list");
    assert_ne!(ids.trim(), "", "nobody reads the stream");
    let end = |id: &str| paper.database.sql(&format!("KILL {id}")).is_ok();
    let ended = ids.split_whitespace().filter(|id| end(id)).count();
    assert!(ended > 0, "none of these has ended: {ids}");
}

/// Cuts the stream this many times, each time before a change, which `sql` comes before; then restarts the
/// database. The page of the first article follows.
fn interrupt(paper: &mut Paper, pagewell: &Pagewell, path: &str, rounds: usize, sql: &str) {
    for round in 0..rounds {
        stored(pagewell, path);
        cut(paper);
        paper.sql(&format!("{sql} UPDATE news SET title = 'cut{round}' WHERE id = 1"));
        shows(pagewell, path, &format!("title=cut{round}"));
        until("it is followed again", || {
            let stream = "SELECT COUNT(*) FROM information_schema.PROCESSLIST \
                          WHERE COMMAND LIKE 'Binlog Dump%'";
            paper.database.sql(stream).is_ok_and(|count| count.trim() != "0")
        });
    }
    stored(pagewell, path);
    paper.database.stop();
    paper.database.start_again().expect("MariaDB starts again");
    paper.sql("UPDATE news SET title = 'restarted' WHERE id = 1");
    shows(pagewell, path, "title=restarted");
}

#[test]
fn search_pages_are_purged_exactly() {
    let paper = Paper::new(&[]);
    paper.site.file("search.php", searches::SEARCH);
    let pagewell = paper.site.serve(&paper.config("", searches::RULES));
    stored(&pagewell, "/plain.php");
    let any = "ALTER TABLE news ADD COLUMN another INT";
    searches::are_dropped_exactly(&pagewell, &|sql| paper.sql(sql), any);
    // Characters that are equal only in this language's collation.
    paper.sql("ALTER TABLE news MODIFY title VARCHAR(100) COLLATE utf8mb4_lithuanian_ci");
    let root = format!("{}\n[site]\nroot = {:?}", searches::RULES, paper.site.root());
    let file = paper.site.config(&paper.config("", &root), "").display().to_string();
    let (text, good) = paper::run(&["check", "--config", &file]);
    assert!(!good && text.contains("utf8mb4_lithuanian_ci"), "{text}");
}

#[test]
fn changes_in_the_database_purge_their_pages() {
    let paper = Paper::new(&[]);
    let pagewell = paper.serve("");
    paper::rows_purge_their_pages(&pagewell, &|sql| paper.sql(sql));

    // Altered: any row.
    let pages = ["/show.php?id=1", "/show.php?id=2"];
    let changes = || {
        paper::applied(&pagewell);
        counter(&pagewell, "database_changes")
    };
    stored(&pagewell, pages[0]);
    let before = changes();
    paper.sql("ALTER TABLE news ADD COLUMN teaser TEXT FIRST; UPDATE news SET title = 'wide'");
    // A page that was rendered between the two is refreshed again with the second.
    assert_eq!(changes(), before + 2, "both are applied");
    shows(&pagewell, pages[0], "title=wide");
    stored(&pagewell, pages[0]);
    paper.sql("UPDATE news SET title = 'narrow' WHERE id = 2");
    shows(&pagewell, pages[1], "title=narrow");
    assert!(is_hit(&get(&pagewell, pages[0])), "columns are found again after the table changed");
    assert!(is_hit(&get(&pagewell, "/plain.php")), "what depends on nothing of it stays");
    assert_eq!(counter(&pagewell, "database_gaps"), 0, "{}", pagewell.log());
}

#[test]
fn clients_read_their_own_writes() {
    let paper = Paper::new(&[]);
    let pagewell = paper.serve("barrier = \"20s\"");
    paper::writes_are_read(&pagewell, 100_000, |_| "");
    assert_eq!(counter(&pagewell, "database_late"), 0);
}

#[test]
fn an_interrupted_stream_is_resumed_without_a_gap() {
    let mut paper = Paper::new(&[]);
    let pagewell = paper.serve("on_lag = \"serve\"");
    let path = "/show.php?id=1";
    interrupt(&mut paper, &pagewell, path, 5, "");
    stored(&pagewell, path);
    paper.database.kill();
    paper.database.start_again().expect("MariaDB starts again");
    paper.sql("UPDATE news SET title = 'killed' WHERE id = 1");
    shows(&pagewell, path, "title=killed");
    assert_eq!(counter(&pagewell, "database_gaps"), 0, "{}", pagewell.log());

    // The log is gone with all its changes: everything is purged, and Pagewell follows the new log.
    stored(&pagewell, "/plain.php");
    let reset = paper.database.product().reset_logs();
    paper.sql(&format!(
        "{reset}; SET sql_log_bin = 0; UPDATE news SET title = 'unlogged' WHERE id = 1"
    ));
    let stream = "SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'";
    if !paper.database.sql(stream).expect("a list").trim().is_empty() {
        cut(&paper);
    }
    until("the gap is seen", || counter(&pagewell, "database_gaps") > 0);
    shows(&pagewell, path, "title=unlogged");
    stored(&pagewell, path);
    paper.sql("UPDATE news SET title = 'after' WHERE id = 1");
    shows(&pagewell, path, "title=after");
}

#[test]
fn nothing_is_stored_while_the_database_is_down() {
    let mut paper = Paper::new(&[]);
    let pagewell = paper.serve("lag_max = \"0s\"\nbarrier = \"250ms\"");
    paper.database.stop();
    until("pages are dropped", || !is_hit(&get(&pagewell, "/plain.php")));
    let page = get(&pagewell, "/plain.php");
    assert_eq!((page.status, page.text().as_ref()), (200, "plain"));
    assert!(!is_hit(&get(&pagewell, "/plain.php")), "{}", cache_status(&page));
    // A write is still answered, with a note that its changes may be applied later.
    let written = post(&pagewell, "/plain.php");
    assert!(cache_status(&written).contains("detail=changes-late"), "{}", cache_status(&written));
    paper.database.start_again().expect("MariaDB starts again");
    stored(&pagewell, "/plain.php");
    assert_eq!(counter(&pagewell, "database_gaps"), 0);
}

/// Reads from a second database, and writes to it.
const ARCHIVE: &str = r#"<?php
require 'db.php';
if ($_SERVER['REQUEST_METHOD'] === 'POST') {
    db()->exec('INSERT INTO archive.volumes (year) VALUES (1900)');
    exit;
}
keep(3600);
header('Cache-Groups: "volumes"');
echo 'volumes=', db()->query('SELECT COUNT(*) FROM archive.volumes')->fetchColumn();
"#;

#[test]
fn a_site_of_two_databases_follows_both() {
    let mut paper = Paper::new(&[]);
    let sql = "CREATE DATABASE archive;
        GRANT SELECT ON archive.* TO follower@localhost; GRANT ALL ON archive.* TO writer@localhost;
        CREATE TABLE archive.volumes (id INT AUTO_INCREMENT PRIMARY KEY, year INT);";
    paper.database.sql(sql).expect("a second database");
    paper.site.file("archive.php", ARCHIVE);
    let socket = paper.database.socket().display().to_string();
    let second = |rules: &str| {
        let rules = RULES.replace("[[change]]", "[[change]]\ndatabase = \"paper\"") + rules;
        let url = format!("mysql://follower:secret@localhost/archive?socket={socket}");
        paper.config(
            &format!(
                "lag_max = \"60s\"\nbarrier = \"20s\"\n[[database]]\nname = \"old\"\n\
                 url = {url:?}\nlag_max = \"10s\"\nbarrier = \"20s\""
            ),
            &rules,
        )
    };
    let rule = "[[change]]\ndatabase = \"old\"\ntable = \"volumes\"\ntags = [\"volumes\"]";
    let wrong = second(&rule.replace("volumes", "comments"));
    let pagewell = paper.site.serve(&second(rule));
    let (show, archive) = ("/show.php?id=1", "/archive.php");
    stored(&pagewell, show);
    stored(&pagewell, archive);

    // Each database purges its own pages, whichever client changes it. A write waits for both.
    paper.sql("INSERT INTO archive.volumes (year) VALUES (1899)");
    shows(&pagewell, archive, "volumes=1");
    assert!(is_hit(&get(&pagewell, show)));
    stored(&pagewell, archive);
    paper.sql("UPDATE news SET title = 'uno' WHERE id = 1");
    shows(&pagewell, show, "title=uno");
    assert!(is_hit(&get(&pagewell, archive)));
    for count in 2..20 {
        let written = post(&pagewell, archive);
        assert!(!cache_status(&written).contains("changes-late"), "{}", cache_status(&written));
        assert_eq!(get(&pagewell, archive).text(), format!("volumes={count}"));
    }

    // While one database is down nothing is stored, and it resumes without a gap.
    stored(&pagewell, "/plain.php");
    paper.database.stop();
    until("pages are dropped", || !is_hit(&get(&pagewell, "/plain.php")));
    paper.database.start_again().expect("MariaDB starts again");
    stored(&pagewell, "/plain.php");
    assert_eq!(counter(&pagewell, "database_gaps"), 0, "{}", pagewell.log());
    drop(pagewell);

    // A rule that matches only the other database.
    let file = paper.site.config(&wrong, "").display().to_string();
    let root = paper.site.root().display().to_string();
    let args = [root.as_str(), "--memory", "64M", "--config", &file];
    let error = Pagewell::start(acceptance::binary(), &args).expect_err("it does not start");
    assert!(error.to_string().contains("old: there is no table comments"), "{error}");
}

#[test]
fn rules_that_do_not_match_are_reported_at_the_start() {
    let paper = Paper::new(&[]);
    let refused = |rules: &str, more: &str| {
        let file = paper.site.config(&paper.config(more, rules), "").display().to_string();
        let root = paper.site.root().display().to_string();
        let args = [root.as_str(), "--memory", "64M", "--config", &file];
        let error = Pagewell::start(acceptance::binary(), &args).expect_err("it does not start");
        assert_eq!(error.reason, StartReason::Ended);
        error.to_string()
    };
    let rule = |table: &str, tag: &str| format!("[[change]]\ntable = {table:?}\ntags = [{tag:?}]");
    let said = refused(&rule("comment", "x"), "");
    assert!(said.contains("no table comment ") && said.contains("comments, headlines"), "{said}");
    let said = refused(&rule("news", "news:{nr}"), "");
    assert!(said.contains("no column nr") && said.contains("id, title, seen"), "{said}");
    let said = refused(&rule("headlines", "x"), "");
    assert!(said.contains("headlines is a view"), "{said}");
    paper.database.sql("ALTER USER follower@localhost IDENTIFIED BY 'other'").expect("it runs");
    let said = refused(&rule("news", "news"), "");
    assert!(said.contains("access-denied"), "{said}");
}
