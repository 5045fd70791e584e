//! Tables that are created again, or redefined, while Pagewell connects: before each of its statements. The stream
//! has no definitions, so what a connection has not seen would never be found.

use super::{Pagewell, Paper, RULES, config_by, shows, stored};
use crate::held_statement::{CountedStatements, StatementHold, replaced_at_each_statement};
use acceptance::until;
use harness::PostgresOptions;
use std::sync::Arc;

const PATH: &str = "/show.php?id=1";
const TABLES: &str = "
    CREATE TABLE news (id int PRIMARY KEY, title text, seen int DEFAULT 0);
    CREATE TABLE comments (id int PRIMARY KEY, news_id int NOT NULL, body text);
    INSERT INTO news (id, title) VALUES (1, 'one');";

/// A site that follows its database through a proxy. `on_lag` is `serve`, so that nothing but a change that Pagewell
/// finds purges a page.
struct HeldSite {
    pagewell: Pagewell,
    hold: Arc<StatementHold>,
    paper: Paper,
}

impl HeldSite {
    fn new(counted: CountedStatements) -> HeldSite {
        let port = harness::free_port().expect("a port");
        let options = PostgresOptions { port: Some(port), ..Default::default() };
        let paper = Paper::with(options, TABLES);
        let (port, hold) = StatementHold::before(port, counted);
        let url = format!("postgres://writer:secret@127.0.0.1:{port}/paper");
        let more = "manage = true\non_lag = \"serve\"";
        let pagewell = paper.site.serve(&config_by(&url, more, RULES));
        stored(&pagewell, "/plain.php");
        HeldSite { pagewell, hold, paper }
    }

    fn sql(&self, sql: &str) {
        self.paper.sql(&format!("SET ROLE writer; {sql}"));
    }

    /// Ends the stream.
    fn cut(&self) {
        let ended = "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots \
                     WHERE active_pid IS NOT NULL";
        until("the stream is cut", || self.paper.sql(ended).trim() == "t");
    }

    /// Redefines a table before each statement of a connection, from the first that reads the catalogue.
    fn at_each_statement(replaced: impl Fn(&str) -> String) {
        let site = HeldSite::new(CountedStatements::From("pg_class"));
        let (cut, sql) = (|| site.cut(), |sql: &str| site.sql(sql));
        replaced_at_each_statement(&site.pagewell, &site.hold, &cut, &sql, replaced);
    }
}

fn created_again(title: &str) -> String {
    format!(
        "DROP TABLE news; CREATE TABLE news (id int PRIMARY KEY, title text, seen int DEFAULT 0);
         INSERT INTO news (id, title) VALUES (1, '{title}')"
    )
}

#[test]
fn a_table_created_again_while_connecting_is_followed() {
    HeldSite::at_each_statement(created_again);
}

/// No row is reported, although the whole table is rewritten.
#[test]
fn a_table_rewritten_while_connecting_is_read_again() {
    HeldSite::at_each_statement(|title| {
        format!("ALTER TABLE news ALTER title TYPE text USING '{title}'")
    });
}

#[test]
fn definitions_that_do_not_stay_as_they_are_are_a_gap() {
    // The fingerprint of the definitions.
    let site = HeldSite::new(CountedStatements::With("WITH RECURSIVE below"));
    let followed = || site.pagewell.times_logged("database-followed");
    stored(&site.pagewell, PATH);
    let (before, mut rounds) = (followed(), 0);
    site.hold.hold(0);
    site.cut();
    loop {
        until("they are asked for again, or followed", || {
            site.hold.has_one() || followed() > before
        });
        if followed() > before {
            break;
        }
        rounds += 1;
        site.sql(&created_again(&format!("round{rounds}")));
        site.hold.hold(rounds);
    }
    site.hold.release();
    assert!(rounds > 2, "{}", site.pagewell.log());
    shows(&site.pagewell, PATH, &format!("title=round{rounds}"));
    stored(&site.pagewell, PATH);
    site.sql("UPDATE news SET title = 'told' WHERE id = 1");
    shows(&site.pagewell, PATH, "title=told");
}
