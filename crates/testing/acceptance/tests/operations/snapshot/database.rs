//! Pages outlive the process with database-driven invalidation: pages whose data changed in the meantime are
//! refreshed, however long that was and whichever process noticed it.

use super::{get, stop, stored};
use acceptance::{Site, counter, is_hit, until};
use harness::{Client, MariaDb, MariaDbOptions, Pagewell, PrivateDir, SqlProduct};

const SHOW: &str = r#"<?php
require 'db.php';
keep(3600);
$id = (int) $_GET['id'];
header("Cache-Groups: \"news:$id\"");
echo 'title=', db()->query("SELECT title FROM news WHERE id = $id")->fetchColumn();
"#;

/// A database that is followed, and a site with its pages.
struct Paper {
    database: MariaDb,
    site: Site,
}

impl Paper {
    fn new() -> Paper {
        let dir = PrivateDir::temporary("snapshot").expect("a directory");
        let database =
            MariaDb::start_with(dir, MariaDbOptions::followed(&[])).expect("MariaDB starts");
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
             lag_max = \"60s\"\n\
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
fn pages_changed_in_the_database_meanwhile_are_refreshed() {
    let mut paper = Paper::new();
    let pagewell = paper.serve();
    (1..=4).for_each(|id| stored(&pagewell, &show(id)));
    // Applied before the end, and after the end by no process.
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
    // Pagewell continues to follow it.
    paper.set(2, "zwei");
    until("it is applied", || get(&pagewell, &show(2)).text() == "title=zwei");

    // Killed, with a restart of the database in the meantime: from the previous snapshot.
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

    // Log entries that were not read yet are purged from the log.
    paper.set(2, "purged");
    let sql = |sql: &str| paper.database.sql_in("paper", sql).expect("it runs");
    sql("FLUSH BINARY LOGS");
    let status = sql(paper.database.product().log_status());
    let file = status.split_whitespace().next().expect("a file").to_owned();
    until("it is purged", || {
        sql(&format!("PURGE BINARY LOGS TO '{file}'"));
        sql("SHOW BINARY LOGS").lines().count() == 1
    });
    let pagewell = paper.serve_warm();
    assert_eq!(counter(&pagewell, "snapshot_pages"), 0);
    until("it is a gap", || counter(&pagewell, "database_gaps") == 1);
    assert!(pagewell.log().contains("reason=\"position-gone\""), "{}", pagewell.log());
    (1..=4).for_each(|id| stored(&pagewell, &show(id)));
    assert_eq!(get(&pagewell, &show(2)).text(), "title=purged");
    stop(pagewell);

    // The log is gone: the changes are unknown.
    paper.database.sql_in("paper", "SET sql_log_bin = 0; UPDATE news SET title = 'x'").expect("ok");
    paper.database.sql(paper.database.product().reset_logs()).expect("it runs");
    let pagewell = paper.serve_warm();
    assert_eq!(counter(&pagewell, "snapshot_pages"), 0);
    assert_eq!(get(&pagewell, &show(4)).text(), "title=x");
    until("it is a gap", || counter(&pagewell, "database_gaps") == 1);
}

#[test]
fn pagewell_is_ready_when_the_snapshot_is_restored() {
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

/// The next process may find no gap in the log. Only this process has seen it.
#[test]
fn a_gap_counts_even_if_the_process_is_killed() {
    let paper = Paper::new();
    if paper.database.product() == SqlProduct::MySql {
        // Whether a MySQL server is a replica is not known, so that is no gap.
        return;
    }
    let pagewell = paper.serve();
    (1..=2).for_each(|id| stored(&pagewell, &show(id)));
    stop(pagewell);
    let mut pagewell = paper.serve_warm();
    assert!(is_hit(&get(&pagewell, &show(1))), "{}", pagewell.log());
    let sql = |sql: &str| paper.database.sql_in("paper", sql).expect("it runs");
    // For a while the server is a replica that does not log replicated changes.
    sql("SET GLOBAL gtid_slave_pos = '0-2-1'");
    let following =
        "SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'";
    for id in sql(following).split_whitespace() {
        // Connections of processes that have ended may be gone by now.
        let _ = paper.database.sql(&format!("KILL {id}"));
    }
    until("it is noticed", || counter(&pagewell, "database_gaps") > 0);
    sql("SET sql_log_bin = 0; UPDATE news SET title = 'from elsewhere' WHERE id = 1");
    sql("SET GLOBAL gtid_slave_pos = ''");
    stored(&pagewell, &show(1));
    assert_eq!(get(&pagewell, &show(1)).text(), "title=from elsewhere");
    pagewell.kill();
    let pagewell = paper.serve_warm();
    assert_eq!(get(&pagewell, &show(1)).text(), "title=from elsewhere", "{}", pagewell.log());
    assert_eq!(counter(&pagewell, "snapshot_pages"), 0);
}
