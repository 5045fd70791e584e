//! A private PostgreSQL, and a small site whose pages declare their tags and whose writes send no invalidation:
//! the database does. Rows changed at the SQL prompt, definitions, partitions; a commit that arrives before it
//! is visible; the stream interrupted and resumed, the server restarted, its slot deleted; read-your-writes;
//! missing objects are created, or reported with the statement that creates them.
//!
//! A page is correct if it shows the data in the database. Nothing waits for a fixed time; eventual results are
//! polled with a timeout.

mod command;
mod elsewhere;
mod redefined;
mod redefined_meanwhile;
mod warm;

use crate::paper::{RULES, config_by, get, post, shows, stored};
use crate::{paper, searches};
use acceptance::{Site, cache_status, counter, is_hit, until};
use harness::{Pagewell, Postgres, PostgresOptions, PrivateDir, StartReason};

const WRITE: &str = r#"<?php
require 'db.php';
$id = (int) $_GET['id'];
$rows = (int) ($_GET['rows'] ?? 1);
if (isset($_GET['async'])) {
    db()->exec('SET synchronous_commit = off');
}
db()->exec("INSERT INTO comments (news_id, body) SELECT $id, 'x' FROM generate_series(1, $rows)");
echo 'written';
"#;

const TABLES: &str = "
    CREATE TABLE news (id int PRIMARY KEY, title text, seen int DEFAULT 0);
    CREATE TABLE comments (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        news_id int NOT NULL REFERENCES news ON DELETE CASCADE, body text);
    ALTER TABLE news REPLICA IDENTITY FULL; ALTER TABLE comments REPLICA IDENTITY FULL;
    CREATE VIEW headlines AS SELECT title FROM news;
    INSERT INTO news (id, title) VALUES (1, 'one'), (2, 'two'), (3, 'three');
    INSERT INTO comments (news_id, body) VALUES (3, 'first');";

struct Paper {
    database: Postgres,
    site: Site,
}

impl Paper {
    fn new() -> Paper {
        Self::with(PostgresOptions::default(), TABLES)
    }

    fn with(options: PostgresOptions, tables: &str) -> Paper {
        let dir = PrivateDir::temporary("pgfeed").expect("a directory");
        let database = Postgres::start_with(dir, options).expect("PostgreSQL starts");
        database.create_database("paper", "writer", "secret").expect("a database");
        database.sql("ALTER ROLE writer REPLICATION").expect("it runs");
        let (socket_dir, port) = (database.socket_dir().display(), database.port());
        let db = format!(
            "<?php function db(): PDO {{ static $db; return $db ??= new PDO(\
             'pgsql:host={socket_dir};port={port};dbname=paper', 'writer', 'secret'); }}"
        );
        let site = paper::site(&db, WRITE);
        let paper = Paper { database, site };
        // The tables belong to the role that follows, so that it may publish them.
        paper.sql(&format!("SET ROLE writer; GRANT ALL ON SCHEMA public TO writer; {tables}"));
        paper
    }

    fn url(&self) -> String {
        let (host, port) = (self.database.socket_dir().display(), self.database.port());
        format!("postgres://writer:secret@localhost:{port}/paper?host={host}")
    }

    fn config(&self, more: &str, rules: &str) -> String {
        config_by(&self.url(), more, rules)
    }

    fn serve(&self, more: &str) -> Pagewell {
        self.serve_with(&format!("manage = true\n{more}"), RULES)
    }

    fn serve_with(&self, more: &str, rules: &str) -> Pagewell {
        let pagewell = self.site.serve(&self.config(more, rules));
        // Nothing is stored until the first position is known to be visible.
        stored(&pagewell, "/plain.php");
        pagewell
    }

    fn sql(&self, sql: &str) -> String {
        self.database.sql_in("paper", sql).expect("the statements run")
    }

    /// The output of Pagewell when it does not start.
    fn refused(&self, more: &str, rules: &str) -> String {
        self.refused_with(&self.config(more, rules))
    }

    fn refused_with(&self, config: &str) -> String {
        let file = self.site.config(config, "").display().to_string();
        let root = self.site.root().display().to_string();
        let args = [root.as_str(), "--memory", "64M", "--config", &file];
        let error = Pagewell::start(acceptance::binary(), &args).expect_err("it does not start");
        assert_eq!(error.reason, StartReason::Ended);
        error.to_string()
    }
}

#[test]
fn search_pages_are_purged_exactly() {
    let paper = Paper::new();
    paper.site.file("search.php", searches::SEARCH);
    let pagewell = paper.serve_with("manage = true", searches::RULES);
    let sql = |sql: &str| drop(paper.sql(sql));
    searches::are_dropped_exactly(&pagewell, &sql, "TRUNCATE news CASCADE");
}

#[test]
fn changes_in_the_database_purge_their_pages() {
    let paper = Paper::new();
    let pagewell = paper.serve("");
    paper::rows_purge_their_pages(&pagewell, &|sql| drop(paper.sql(sql)));
    assert_eq!(counter(&pagewell, "database_gaps"), 0, "{}", pagewell.log());
}

#[test]
fn changed_definitions_are_detected_outside_the_stream() {
    let paper = Paper::new();
    let pagewell = paper.serve("");
    let path = "/show.php?id=1";
    stored(&pagewell, path);
    // No row is reported, although the whole table is rewritten.
    paper.sql(
        "DROP VIEW headlines; ALTER TABLE news ALTER title TYPE varchar(50) USING upper(title)",
    );
    shows(&pagewell, path, "title=ONE");
    stored(&pagewell, path);
    paper.sql("ALTER TABLE news ADD COLUMN lead text; UPDATE news SET title = 'wide' WHERE id = 1");
    shows(&pagewell, path, "title=wide");
    // Another table in its place.
    stored(&pagewell, path);
    paper.sql(
        "CREATE TABLE next (LIKE news INCLUDING ALL); INSERT INTO next VALUES (1, 'swapped');
         ALTER TABLE next REPLICA IDENTITY FULL;
         BEGIN; ALTER TABLE news RENAME TO gone; ALTER TABLE next RENAME TO news; COMMIT;
         ALTER TABLE news OWNER TO writer",
    );
    shows(&pagewell, path, "title=swapped");
    stored(&pagewell, path);
    paper.sql("UPDATE news SET title = 'followed' WHERE id = 1");
    shows(&pagewell, path, "title=followed");

    // With an event trigger, the change is reported with the transaction.
    paper.sql(
        "CREATE FUNCTION pagewell_defined() RETURNS event_trigger LANGUAGE plpgsql AS
         $$ BEGIN PERFORM pg_logical_emit_message(true, 'pagewell-defined', ''); END $$;
         CREATE EVENT TRIGGER pagewell_defined ON ddl_command_end
         EXECUTE FUNCTION pagewell_defined()",
    );
    stored(&pagewell, path);
    paper.sql("ALTER TABLE news ALTER title TYPE text USING lower(title) || '!'");
    shows(&pagewell, path, "title=followed!");
    assert!(pagewell.times_logged("database-followed") > 0, "{}", pagewell.log());
}

#[test]
fn a_publication_altered_and_restored_is_a_gap() {
    let paper = Paper::new();
    let pagewell = paper.serve("");
    let path = "/show.php?id=1";
    let ways = [
        ("ALTER PUBLICATION pagewell DROP TABLE news", "ALTER PUBLICATION pagewell ADD TABLE news"),
        (
            "ALTER PUBLICATION pagewell SET (publish = 'insert')",
            "ALTER PUBLICATION pagewell SET (publish = 'insert, update, delete, truncate')",
        ),
        // Version 18 sends no error for this; earlier versions end the stream.
        // Pagewell itself may have created it again meanwhile.
        (
            "DROP PUBLICATION pagewell",
            "DROP PUBLICATION IF EXISTS pagewell; CREATE PUBLICATION pagewell FOR TABLE news, comments",
        ),
    ];
    for (at, (there, back)) in ways.into_iter().enumerate() {
        stored(&pagewell, path);
        // Between two checks, and again with changed definitions.
        paper.sql(there);
        paper.sql(&format!("UPDATE news SET title = 'untold{at}' WHERE id = 1"));
        paper.sql(&format!("{back}; ALTER TABLE news ADD COLUMN c{at} int"));
        shows(&pagewell, path, &format!("title=untold{at}"));
        stored(&pagewell, path);
        paper.sql(&format!("UPDATE news SET title = 'told{at}' WHERE id = 1"));
        shows(&pagewell, path, &format!("title=told{at}"));
        assert!(pagewell.log().contains("publication-changed"), "{}", pagewell.log());
    }
}

#[test]
fn a_publication_dropped_and_created_again_is_noticed_by_the_next_check() {
    let paper = Paper::new();
    let pagewell = paper.serve("");
    let path = "/show.php?id=1";
    stored(&pagewell, path);
    paper.sql(
        "DROP PUBLICATION pagewell; UPDATE news SET title = 'untold' WHERE id = 1;
        CREATE PUBLICATION pagewell FOR TABLE news, comments",
    );
    shows(&pagewell, path, "title=untold");
    stored(&pagewell, path);
    paper.sql("UPDATE news SET title = 'told' WHERE id = 1");
    shows(&pagewell, path, "title=told");
}

#[test]
fn rows_of_partitions_count_as_rows_of_the_parent() {
    let tables = "CREATE TABLE news (id int PRIMARY KEY, title text) PARTITION BY RANGE (id);
        CREATE TABLE news_low PARTITION OF news FOR VALUES FROM (0) TO (100);
        INSERT INTO news VALUES (1, 'one');
        CREATE TABLE comments (id int PRIMARY KEY, news_id int, body text);";
    let paper = Paper::with(PostgresOptions::default(), tables);
    let pagewell = paper.serve("");
    let path = "/show.php?id=1";
    stored(&pagewell, path);
    paper.sql("UPDATE news SET title = 'uno' WHERE id = 1");
    shows(&pagewell, path, "title=uno");
    stored(&pagewell, path);
    paper.sql("TRUNCATE news_low");
    shows(&pagewell, path, "title=");
    // A partition that is created during the run.
    stored(&pagewell, "/show.php?id=150");
    paper.sql(
        "SET ROLE writer; CREATE TABLE news_high PARTITION OF news FOR VALUES FROM (100) TO (200);
         INSERT INTO news VALUES (150, 'high')",
    );
    shows(&pagewell, "/show.php?id=150", "title=high");
    stored(&pagewell, "/show.php?id=150");
    paper.sql("UPDATE news SET title = 'higher' WHERE id = 150");
    shows(&pagewell, "/show.php?id=150", "title=higher");
    assert_eq!(counter(&pagewell, "database_gaps"), 0, "{}", pagewell.log());
}

#[test]
fn unknown_columns_of_a_row_purge_the_whole_table() {
    let tables = TABLES.replace("ALTER TABLE comments REPLICA IDENTITY FULL;", "");
    let paper = Paper::with(PostgresOptions::default(), &tables);
    let pagewell = paper.serve("");
    let log = pagewell.log();
    assert!(log.contains("database-identity") && log.contains("does not send news_id"), "{log}");
    paper.sql("INSERT INTO comments (news_id) VALUES (1)");
    shows(&pagewell, "/thread.php?id=3", "comments=1");
    stored(&pagewell, "/thread.php?id=3");
    // Only the new news_id is sent, so the page of the old one must be purged as well.
    paper.sql("UPDATE comments SET news_id = 2 WHERE news_id = 3");
    shows(&pagewell, "/thread.php?id=3", "comments=0");
    stored(&pagewell, "/thread.php?id=1");
    // Of a deleted row only the key is sent.
    paper.sql("DELETE FROM comments WHERE news_id = 1");
    shows(&pagewell, "/thread.php?id=1", "comments=0");
}

/// Commits wait while this guard exists. They are released even if the test fails.
struct HeldCommits<'a>(&'a Paper);

impl Drop for HeldCommits<'_> {
    fn drop(&mut self) {
        self.0.sql("ALTER SYSTEM RESET synchronous_standby_names");
        self.0.sql("SELECT pg_reload_conf()");
    }
}

#[test]
fn a_page_rendered_before_the_commit_is_visible_is_not_stored() {
    let paper = Paper::new();
    let pagewell = paper.serve("");
    let path = "/show.php?id=1";
    stored(&pagewell, path);
    commits_wait(&paper);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| paper.sql("UPDATE news SET title = 'new' WHERE id = 1"));
        let waiting = HeldCommits(&paper);
        until("the change is applied", || !is_hit(&get(&pagewell, path)));
        for _ in 0..20 {
            let page = get(&pagewell, path);
            assert_eq!(page.text(), "title=one", "nobody sees it yet");
            assert!(!is_hit(&page), "{}", cache_status(&page));
        }
        drop(waiting);
        writer.join().expect("it is committed");
    });
    assert_eq!(get(&pagewell, path).text(), "title=new");
    stored(&pagewell, path);
    assert_eq!(get(&pagewell, path).text(), "title=new");
}

/// Commits wait for a standby that does not exist: they are in the log, but not visible.
fn commits_wait(paper: &Paper) {
    paper.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    paper.sql("SELECT pg_reload_conf()");
    until("commits wait", || paper.sql("SHOW synchronous_standby_names").trim() == "nobody");
    // Commits wait as soon as the checkpointer has read the setting, which it does before a checkpoint.
    paper.sql("CHECKPOINT");
}

#[test]
fn commits_that_are_invisible_at_the_start_are_awaited() {
    let paper = Paper::new();
    let path = "/show.php?id=1";
    // Publication and slot are created.
    drop(paper.serve(""));
    commits_wait(&paper);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| paper.sql("UPDATE news SET title = 'new' WHERE id = 1"));
        let waiting = HeldCommits(&paper);
        let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
        until("it is in the log", || paper.sql(waits).trim() == "1");
        // Nothing of it will be sent.
        let pagewell = paper.site.serve(&paper.config("settle = \"0s\"", RULES));
        until("it is followed", || pagewell.log().contains("database-followed"));
        for _ in 0..20 {
            let page = get(&pagewell, path);
            assert_eq!(page.text(), "title=one", "nobody sees it yet");
            assert!(!is_hit(&page), "{} {}", cache_status(&page), pagewell.log());
        }
        drop(waiting);
        writer.join().expect("it is committed");
        shows(&pagewell, path, "title=new");
        stored(&pagewell, path);
        assert_eq!(get(&pagewell, path).text(), "title=new");
    });
}

#[test]
fn clients_read_their_own_writes() {
    let paper = Paper::new();
    let pagewell = paper.serve("barrier = \"20s\"");
    // Also if commits do not wait for the disk.
    let how = |count| if count % 2 == 0 { "&async=1" } else { "" };
    paper::writes_are_read(&pagewell, 50_000, how);
    assert_eq!(counter(&pagewell, "database_late"), 0);
}

#[test]
fn an_interrupted_stream_is_resumed_without_a_gap() {
    let mut paper = Paper::new();
    let pagewell = paper.serve("on_lag = \"serve\"");
    let path = "/show.php?id=1";
    let active = "SELECT count(*) FROM pg_replication_slots WHERE active";
    let followed = |paper: &Paper| {
        until("it is followed", || {
            paper.database.sql(active).is_ok_and(|count| count.trim() == "1")
        });
    };
    for round in 0..5 {
        stored(&pagewell, path);
        followed(&paper);
        paper.sql("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots");
        paper.sql(&format!("UPDATE news SET title = 'cut{round}' WHERE id = 1"));
        shows(&pagewell, path, &format!("title=cut{round}"));
    }
    stored(&pagewell, path);
    followed(&paper);
    paper.database.stop();
    paper.database.start_again().expect("PostgreSQL starts again");
    paper.sql("UPDATE news SET title = 'restarted' WHERE id = 1");
    shows(&pagewell, path, "title=restarted");
    stored(&pagewell, path);
    paper.database.kill();
    paper.database.start_again().expect("PostgreSQL starts again");
    paper.sql("UPDATE news SET title = 'killed' WHERE id = 1");
    shows(&pagewell, path, "title=killed");
    assert_eq!(counter(&pagewell, "database_gaps"), 0, "{}", pagewell.log());

    // The slot is gone with all its changes: everything is purged, and a new slot is created.
    stored(&pagewell, "/plain.php");
    followed(&paper);
    let drop = "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots;
         SELECT pg_drop_replication_slot('pagewell')";
    until("the slot is dropped", || {
        let dropped = paper.database.sql_in("paper", drop).is_ok();
        dropped || paper.sql("SELECT count(*) FROM pg_replication_slots").trim() == "0"
    });
    until("the gap is seen", || counter(&pagewell, "database_gaps") > 0);
    stored(&pagewell, path);
    paper.sql("UPDATE news SET title = 'after' WHERE id = 1");
    shows(&pagewell, path, "title=after");
}

#[test]
fn nothing_is_stored_while_the_database_is_down() {
    let mut paper = Paper::new();
    let pagewell = paper.serve("lag_max = \"0s\"\nbarrier = \"250ms\"");
    paper.database.stop();
    until("pages are dropped", || !is_hit(&get(&pagewell, "/plain.php")));
    assert!(!is_hit(&get(&pagewell, "/plain.php")));
    // A write is still answered, with a note that its changes may be applied later.
    let written = post(&pagewell, "/plain.php");
    assert!(cache_status(&written).contains("detail=changes-late"), "{}", cache_status(&written));
    paper.database.start_again().expect("PostgreSQL starts again");
    stored(&pagewell, "/plain.php");
    assert_eq!(counter(&pagewell, "database_gaps"), 0, "{}", pagewell.log());
}

#[test]
fn missing_objects_are_reported_with_the_statement() {
    let paper = Paper::new();
    let rule = |table: &str, tag: &str| format!("[[change]]\ntable = {table:?}\ntags = [{tag:?}]");
    let says = |said: String, parts: &[&str]| {
        parts.iter().for_each(|part| assert!(said.contains(part), "{part}: {said}"));
    };
    says(
        paper.refused("", RULES),
        &["CREATE PUBLICATION \"pagewell\" FOR TABLE \"public\".\"comments\", \"public\".\"news\""],
    );
    paper.sql("CREATE PUBLICATION pagewell FOR TABLE news WITH (publish = 'insert')");
    says(paper.refused("", RULES), &["SET (publish = 'insert, update, delete, truncate')"]);
    paper.sql("ALTER PUBLICATION pagewell SET (publish = 'insert, update, delete, truncate')");
    says(paper.refused("", RULES), &["ADD TABLE \"public\".\"comments\""]);
    paper.sql("ALTER PUBLICATION pagewell ADD TABLE comments");
    says(paper.refused("", RULES), &["pg_create_logical_replication_slot('pagewell', 'pgoutput')"]);
    paper.sql("SELECT pg_create_logical_replication_slot('other', 'test_decoding')");
    says(paper.refused("slot = \"other\"", RULES), &["of another plugin"]);
    paper.sql("ALTER PUBLICATION pagewell SET TABLE comments, news WHERE (id < 100)");
    says(paper.refused("", RULES), &["leaves out rows of \"public\".\"news\"", "id < 100"]);
    paper.sql("ALTER PUBLICATION pagewell SET TABLE comments, news");
    paper.sql("SELECT pg_create_logical_replication_slot('pagewell', 'pgoutput')");

    let managed = "manage = true";
    says(
        paper.refused(managed, &rule("comment", "x")),
        &["no table comment ", "comments, headlines"],
    );
    says(paper.refused(managed, &rule("news", "news:{nr}")), &["no column nr", "id, title, seen"]);
    says(paper.refused(managed, &rule("headlines", "x")), &["headlines is a view"]);
    paper.sql("CREATE TABLE keyless (n int); CREATE UNLOGGED TABLE draft (id int PRIMARY KEY)");
    says(
        paper.refused(managed, &rule("keyless", "x")),
        &["ALTER TABLE \"public\".\"keyless\" REPLICA IDENTITY FULL"],
    );
    says(paper.refused(managed, &rule("draft", "x")), &["is unlogged", "SET LOGGED"]);
    paper.sql("ALTER ROLE writer NOREPLICATION");
    says(paper.refused(managed, RULES), &["(SQLSTATE 42501)"]);
    paper.sql("ALTER ROLE writer PASSWORD 'other'");
    says(paper.refused(managed, RULES), &["(SQLSTATE 28P01)"]);
    let little =
        PostgresOptions { settings: vec!["wal_level=replica".into()], ..Default::default() };
    let paper = Paper::with(little, TABLES);
    says(paper.refused(managed, RULES), &["ALTER SYSTEM SET wal_level = logical"]);
}
