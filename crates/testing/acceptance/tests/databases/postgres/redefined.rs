//! Tables that are dropped and created again, definitions that change and change back, and what reads the
//! tables: each is a change, also where another state of the catalogue looks the same.

use super::{Paper, RULES, TABLES, counter, get, is_hit, shows, stored, until};
use harness::{Pagewell, PostgresOptions, Signal};

const PATH: &str = "/show.php?id=1";

/// The table as it is created again, by the account that follows.
fn created(title: &str) -> String {
    format!(
        "SET ROLE writer; CREATE TABLE news (id int PRIMARY KEY, title text, seen int DEFAULT 0);
         ALTER TABLE news REPLICA IDENTITY FULL; INSERT INTO news VALUES (1, '{title}');"
    )
}

const DROP: &str = "DROP TABLE news CASCADE";

/// Drops the table, and waits until Pagewell follows the database without it.
fn dropped(paper: &Paper, pagewell: &Pagewell) {
    let followed = || pagewell.times_logged("database-followed");
    let before = followed();
    paper.sql(DROP);
    until("the drop is seen", || followed() > before);
    // Everything is stored again, the table does not exist.
    stored(pagewell, "/plain.php");
}

fn publishes(paper: &Paper, table: &str) -> bool {
    let sql = format!("SELECT count(*) FROM pg_publication_tables WHERE tablename = '{table}'");
    paper.sql(&sql).trim() == "1"
}

#[test]
fn a_table_that_is_created_again_is_followed() {
    let paper = Paper::new();
    let pagewell = paper.serve("");
    stored(&pagewell, PATH);
    dropped(&paper, &pagewell);
    paper.sql(&created("again"));
    shows(&pagewell, PATH, "title=again");
    until("it is published", || publishes(&paper, "news"));
    stored(&pagewell, PATH);
    paper.sql("UPDATE news SET title = 'followed' WHERE id = 1");
    shows(&pagewell, PATH, "title=followed");
    // A rename (blue/green) with a pause in between.
    stored(&pagewell, PATH);
    let followed = || pagewell.times_logged("database-followed");
    let before = followed();
    paper.sql("ALTER TABLE news RENAME TO blue");
    until("the rename is seen", || !is_hit(&get(&pagewell, PATH)));
    paper.sql("ALTER TABLE blue RENAME TO news; UPDATE news SET title = 'back' WHERE id = 1");
    shows(&pagewell, PATH, "title=back");
    stored(&pagewell, PATH);
    paper.sql("UPDATE news SET title = 'renamed' WHERE id = 1");
    shows(&pagewell, PATH, "title=renamed");
    assert_eq!(followed(), before, "a rename is no gap: {}", pagewell.log());
}

#[test]
fn a_table_that_an_operator_publishes_again_is_followed() {
    let paper = Paper::new();
    paper.sql("SET ROLE writer; CREATE PUBLICATION pagewell FOR TABLE news, comments");
    paper.sql("SELECT pg_create_logical_replication_slot('pagewell', 'pgoutput')");
    let pagewell = paper.serve_with("on_lag = \"serve\"", RULES);
    stored(&pagewell, PATH);
    dropped(&paper, &pagewell);
    let followed = || pagewell.times_logged("database-followed");
    let before = followed();
    paper.sql(&created("again"));
    until("it is asked for", || pagewell.log().contains("ADD TABLE"));
    // Rows that are written to it until then are not sent.
    assert!(!is_hit(&get(&pagewell, "/plain.php")), "{}", pagewell.log());
    paper.sql("SET ROLE writer; ALTER PUBLICATION pagewell ADD TABLE news");
    until("it is followed", || followed() > before);
    shows(&pagewell, PATH, "title=again");
    stored(&pagewell, PATH);
    paper.sql("UPDATE news SET title = 'followed' WHERE id = 1");
    shows(&pagewell, PATH, "title=followed");
}

/// Rows that a transaction has written before its table was published are not sent when it commits.
#[test]
fn a_transaction_that_is_older_than_its_publication_is_awaited() {
    let options = PostgresOptions {
        settings: vec!["max_prepared_transactions=2".into()],
        ..Default::default()
    };
    let paper = Paper::with(options, TABLES);
    let pagewell = paper.serve("");
    stored(&pagewell, PATH);
    dropped(&paper, &pagewell);
    // Both happen before Pagewell looks at the definitions again.
    pagewell.freeze();
    paper.sql(&format!(
        "{} BEGIN; UPDATE news SET title = 'late' WHERE id = 1; PREPARE TRANSACTION 'open';",
        created("early")
    ));
    pagewell.signal(Signal::CONT);
    until("it is published", || publishes(&paper, "news"));
    until("it is followed", || {
        let log = pagewell.log();
        log.rfind("database-gap") < log.rfind("database-followed")
    });
    for _ in 0..20 {
        let page = get(&pagewell, PATH);
        assert!(page.text() == "title=early" && !is_hit(&page), "{}", pagewell.log());
    }
    paper.sql("COMMIT PREPARED 'open'");
    assert_eq!(get(&pagewell, PATH).text(), "title=late");
    stored(&pagewell, PATH);
    assert_eq!(get(&pagewell, PATH).text(), "title=late");
}

/// A page whose data an operation changes without a row in the stream.
struct Redefinition {
    name: &'static str,
    sql: &'static str,
}

/// Each leaves names, columns and children of the tables as they were.
const REDEFINITIONS: [Redefinition; 5] = [
    Redefinition {
        name: "a column dropped and added again",
        sql: "BEGIN; ALTER TABLE news DROP title; ALTER TABLE news ADD title text DEFAULT 'new'; COMMIT",
    },
    Redefinition {
        name: "a partition detached, written and attached again",
        sql: "BEGIN; ALTER TABLE news DETACH PARTITION news_low; \
              UPDATE news_low SET title = 'new'; \
              ALTER TABLE news ATTACH PARTITION news_low FOR VALUES FROM (0) TO (100); COMMIT",
    },
    Redefinition {
        name: "two tables swapped and swapped back",
        sql: "BEGIN; ALTER TABLE news RENAME TO x; ALTER TABLE other RENAME TO news; COMMIT; \
              UPDATE x SET title = 'new'; \
              BEGIN; ALTER TABLE news RENAME TO other; ALTER TABLE x RENAME TO news; COMMIT",
    },
    Redefinition {
        name: "a label of an enumeration renamed",
        sql: "ALTER TYPE label RENAME VALUE 'old' TO 'new'",
    },
    Redefinition {
        name: "a view replaced",
        sql: "CREATE OR REPLACE VIEW shown AS SELECT id, 'new'::text AS title FROM news",
    },
];

/// The tables for a redefinition: the first page shows `old` before it and `new` after it.
fn tables(name: &str) -> String {
    let news = match name {
        "a partition detached, written and attached again" => {
            "CREATE TABLE news (id int PRIMARY KEY, title text) PARTITION BY RANGE (id);
             CREATE TABLE news_low PARTITION OF news FOR VALUES FROM (0) TO (100);
             INSERT INTO news VALUES (1, 'old');"
        }
        "a label of an enumeration renamed" => {
            "CREATE TYPE label AS ENUM ('old'); CREATE TABLE news (id int PRIMARY KEY, title label);
             INSERT INTO news VALUES (1, 'old');"
        }
        "a view replaced" => {
            "CREATE TABLE news (id int PRIMARY KEY, title text); INSERT INTO news VALUES (1, 'old');
             CREATE VIEW shown AS SELECT id, title FROM news;"
        }
        _ => {
            "CREATE TABLE news (id int PRIMARY KEY, title text); INSERT INTO news VALUES (1, 'old');
             CREATE TABLE other (id int PRIMARY KEY, title text);"
        }
    };
    format!("{news} CREATE TABLE comments (id int PRIMARY KEY, news_id int, body text);")
}

#[test]
fn two_states_of_the_catalogue_are_distinguished() {
    for Redefinition { name, sql } in REDEFINITIONS {
        let paper = Paper::with(PostgresOptions::default(), &tables(name));
        if name == "a view replaced" {
            paper.site.file(
                "show.php",
                "<?php require 'db.php'; keep(3600); header('Cache-Groups: \"news:1\", \"any-news\"');
                 echo 'title=', db()->query('SELECT title FROM shown')->fetchColumn();",
            );
        }
        let pagewell = paper.serve("");
        stored(&pagewell, PATH);
        assert_eq!(get(&pagewell, PATH).text(), "title=old", "{name}");
        stored(&pagewell, "/plain.php");
        let (gaps, changes) =
            (counter(&pagewell, "database_gaps"), counter(&pagewell, "database_changes"));
        paper.sql(&format!("SET ROLE writer; {sql}"));
        until(name, || {
            counter(&pagewell, "database_gaps") > gaps
                || counter(&pagewell, "database_changes") > changes
        });
        assert_eq!(get(&pagewell, PATH).text(), "title=new", "{name}: {}", pagewell.log());
    }
}
