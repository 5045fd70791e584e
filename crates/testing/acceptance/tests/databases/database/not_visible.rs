//! Transactions that are in the log when Pagewell begins to follow, but are not visible yet: a commit that
//! waits for a replica. They are not sent, and a page rendered in the meantime shows the old data.

use super::{Paper, RULES, config_by, counter, get, is_hit, shows, stored};
use acceptance::{cache_status, until};
use harness::SqlProduct;

const PATH: &str = "/show.php?id=1";

/// The number of attempts to store a page.
const TRIES: usize = 20;

/// Commits wait without a replica, for longer than the test may take.
const WAITS: &str = "SET GLOBAL rpl_semi_sync_master_timeout = 600000,
    GLOBAL rpl_semi_sync_master_wait_no_slave = ON,
    GLOBAL rpl_semi_sync_master_wait_point = 'AFTER_SYNC',
    GLOBAL rpl_semi_sync_master_enabled = ON";

#[test]
fn commits_that_are_invisible_at_the_start_are_awaited() {
    let paper = Paper::new(&[]);
    let product = paper.database.product();
    let position = || paper.database.sql(product.log_status()).expect("a position");
    // With file positions, MySQL cannot report what is visible.
    let rounds: &[&str] = match product {
        SqlProduct::MariaDb => &["", "&position=file"],
        SqlProduct::MySql => &[""],
    };
    if product == SqlProduct::MySql {
        let plugin = "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'";
        paper.database.sql(plugin).expect("a plugin");
    }
    for (round, more) in rounds.iter().enumerate() {
        paper.grant_positions();
        let (before, title) = (position(), format!("waited{round}"));
        let shown = get_title(&paper);
        paper.database.sql(&named(product, WAITS)).expect("commits wait");
        std::thread::scope(|threads| {
            let change = format!("UPDATE news SET title = '{title}' WHERE id = 1");
            let paper = &paper;
            let writer = threads.spawn(move || paper.sql(&change));
            until("it is in the log", || position() != before);
            let more = format!("{}{more}", paper.url());
            let pagewell = paper.site.serve(&config_by(&more, "settle = \"0s\"", RULES));
            until("it is followed", || pagewell.log().contains("database-followed"));
            for _ in 0..TRIES {
                let page = get(&pagewell, PATH);
                assert_eq!(page.text(), format!("title={shown}"), "nobody sees it");
                assert!(!is_hit(&page), "{} {}", cache_status(&page), pagewell.log());
            }
            let off = named(product, "SET GLOBAL rpl_semi_sync_master_enabled = OFF");
            paper.database.sql(&off).expect("commits wait no more");
            writer.join().expect("it is committed");
            shows(&pagewell, PATH, &format!("title={title}"));
            stored(&pagewell, PATH);
            assert_eq!(get(&pagewell, PATH).text(), format!("title={title}"));
            assert_eq!(counter(&pagewell, "database_gaps"), 0, "{}", pagewell.log());
        });
    }
}

/// The statement with the names that the product has for its variables.
fn named(product: SqlProduct, sql: &str) -> String {
    match product {
        SqlProduct::MariaDb => sql.to_owned(),
        SqlProduct::MySql => sql.replace("master", "source").replace("no_slave", "no_replica"),
    }
}

fn get_title(paper: &Paper) -> String {
    let title = paper.database.sql_in("paper", "SELECT title FROM news WHERE id = 1");
    title.expect("a title").trim().to_owned()
}
