//! Tables whose rows are replaced as a whole: dropped and created again, swapped as by gh-ost and
//! pt-online-schema-change, exchanged with a partition, emptied; also while Pagewell connects. Views, and tables with
//! triggers, that no rule names.

use super::{Pagewell, Paper, cut, shows, stored};
use crate::held_statement::{CountedStatements, StatementHold, replaced_at_each_statement};

const PATH: &str = "/show.php?id=1";
/// With a foreign key to `news` it could not be dropped.
const WITHOUT_KEY: &str = "DROP TABLE comments; CREATE TABLE comments \
    (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, news_id INT UNSIGNED NOT NULL, body TEXT)";
const COLUMNS: &str = "(id INT UNSIGNED PRIMARY KEY, title VARCHAR(50), seen INT DEFAULT 0)";

fn created_again(title: &str) -> String {
    format!(
        "DROP TABLE news; CREATE TABLE news {COLUMNS}; INSERT INTO news (id, title) VALUES (1, '{title}')"
    )
}

/// Another table with this title, and then the statements that put it in the place of the first.
fn prepared(title: &str, then: &str) -> String {
    format!(
        "CREATE TABLE next {COLUMNS}; INSERT INTO next (id, title) VALUES (1, '{title}'); {then}"
    )
}

fn swapped(title: &str) -> String {
    prepared(title, "RENAME TABLE news TO gone, next TO news; DROP TABLE gone")
}

/// Executes statements after which the page shows this title, and checks that the next change is followed.
fn replaced(paper: &Paper, pagewell: &Pagewell, sql: &str, title: &str) {
    stored(pagewell, PATH);
    paper.sql(sql);
    shows(pagewell, PATH, &format!("title={title}"));
    stored(pagewell, PATH);
    paper.sql("REPLACE INTO news (id, title) VALUES (1, 'told')");
    shows(pagewell, PATH, "title=told");
}

#[test]
fn rows_replaced_as_a_whole_are_any_row() {
    let paper = Paper::new(&[]);
    paper.sql(WITHOUT_KEY);
    let pagewell = paper.serve("on_lag = \"serve\"");
    replaced(&paper, &pagewell, &created_again("created"), "created");
    replaced(&paper, &pagewell, &swapped("swapped"), "swapped");
    let moved = "RENAME TABLE news TO gone; RENAME TABLE next TO news; DROP TABLE gone";
    replaced(&paper, &pagewell, &prepared("moved", moved), "moved");
    let altered = "DROP TABLE news; ALTER TABLE next RENAME TO news";
    replaced(&paper, &pagewell, &prepared("altered", altered), "altered");
    replaced(&paper, &pagewell, "TRUNCATE news", "");
    paper.sql(
        "ALTER TABLE news PARTITION BY RANGE (id) \
         (PARTITION low VALUES LESS THAN (100), PARTITION high VALUES LESS THAN MAXVALUE)",
    );
    let exchanged = "ALTER TABLE news EXCHANGE PARTITION low WITH TABLE next; DROP TABLE next";
    replaced(&paper, &pagewell, &prepared("exchanged", exchanged), "exchanged");
    replaced(&paper, &pagewell, "ALTER TABLE news TRUNCATE PARTITION low", "");
}

/// Replaces the rows before each statement of a connection. `on_lag` is `serve`, so that nothing but a change that
/// Pagewell finds purges a page.
fn at_each_statement(rows: impl Fn(&str) -> String) {
    let (paper, port) = Paper::over_tcp(&[]);
    paper.sql(WITHOUT_KEY);
    let (port, hold) = StatementHold::before(port, CountedStatements::From("binlog_row_image"));
    let url = format!("mysql://follower:secret@127.0.0.1:{port}/paper");
    let pagewell = paper.serve_by(&url, "on_lag = \"serve\"");
    replaced_at_each_statement(&pagewell, &hold, &|| cut(&paper), &|sql| paper.sql(sql), rows);
}

#[test]
fn a_table_created_again_while_connecting_is_followed() {
    at_each_statement(created_again);
}

#[test]
fn a_table_swapped_while_connecting_is_followed() {
    at_each_statement(swapped);
}

/// The page by a view, whose name is in no rule.
const SHOWN: &str = "<?php require 'db.php'; keep(3600);
header('Cache-Groups: \"news:1\", \"any-news\"');
echo 'title=', db()->query('SELECT title FROM shown WHERE id = 1')->fetchColumn();";

#[test]
fn changes_by_tables_that_no_rule_names_are_any_row() {
    let paper = Paper::new(&[]);
    paper.site.file("show.php", SHOWN);
    paper.sql(
        "CREATE VIEW shown AS SELECT id, title FROM news; CREATE TABLE visits (id INT PRIMARY KEY);
         CREATE TRIGGER counted AFTER INSERT ON visits FOR EACH ROW
         UPDATE news SET title = 'counted' WHERE id = 1",
    );
    let pagewell = paper.serve("on_lag = \"serve\"");
    // For the last two it matters that the log has statements.
    for (sql, title) in [
        ("CREATE OR REPLACE VIEW shown AS SELECT id, 'replaced' AS title FROM news", "replaced"),
        ("CREATE OR REPLACE VIEW shown AS SELECT id, title FROM news", "one"),
        ("INSERT INTO visits VALUES (1)", "counted"),
        ("UPDATE shown SET title = 'through' WHERE id = 1", "through"),
    ] {
        stored(&pagewell, PATH);
        paper.sql(&format!("SET SESSION binlog_format = STATEMENT; {sql}"));
        shows(&pagewell, PATH, &format!("title={title}"));
    }
}

#[test]
fn a_view_that_is_created_while_the_database_is_followed_is_known() {
    let paper = Paper::new(&[]);
    paper.site.file("show.php", SHOWN);
    let pagewell = paper.serve("on_lag = \"serve\"");
    stored(&pagewell, "/plain.php");
    paper.sql("CREATE VIEW shown AS SELECT id, title FROM news");
    stored(&pagewell, PATH);
    paper.sql("CREATE OR REPLACE VIEW shown AS SELECT id, 'replaced' AS title FROM news");
    shows(&pagewell, PATH, "title=replaced");
}
