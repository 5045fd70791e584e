//! The follower of a real MariaDB, and statements of pages: which rows touch them, and when held rows are released.

#[path = "neighbours_tests.rs"]
mod neighbours;

use crate::{ChangeSources, Feed, barrier, start};
use config::Config;
use harness::{MariaDb, MariaDbOptions, PrivateDir};
use http_cache::Timestamp;
use page_store::Number;
use site_state::SiteState;
use site_state::propagation::Propagation;
use statements::footprints::{PageReads, ReadsRefused, RenderStatements};
use std::sync::Arc;
use std::time::Duration;
use telemetry::clock::Clock;
use telemetry::phase::Phase;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// How long a change may take that is certain to come.
const PATIENCE: Duration = Duration::from_secs(60);

const TABLES: &str = "CREATE TABLE wp_options (option_id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY,
        option_name VARCHAR(191) NOT NULL UNIQUE, option_value LONGTEXT NOT NULL);
    CREATE TABLE wp_posts (ID BIGINT UNSIGNED PRIMARY KEY, post_title TEXT NOT NULL);
    CREATE TABLE wp_term_relationships (object_id BIGINT UNSIGNED, term_taxonomy_id BIGINT UNSIGNED,
        PRIMARY KEY (object_id, term_taxonomy_id), KEY (term_taxonomy_id));
    INSERT INTO wp_options (option_name, option_value) VALUES ('_transient_menu', 'a'), ('blogname', 'x');
    INSERT INTO wp_posts VALUES (1, 'one'), (2, 'two'); INSERT INTO wp_term_relationships VALUES (1, 3)";
const TRANSIENT: &str = "SELECT option_value FROM wp_options WHERE option_name = '_transient_menu'";
const TERM: &str =
    "SELECT p.post_title FROM wp_posts p JOIN wp_term_relationships r ON r.object_id = p.ID
    WHERE r.term_taxonomy_id = 3";

/// A site that follows a database. Fields are dropped in this order.
struct Stage {
    _phase: watch::Sender<Phase>,
    site: Arc<SiteState>,
    sources: ChangeSources,
    server: MariaDb,
}

impl Stage {
    async fn start() -> Stage {
        Stage::start_with("paper", TABLES).await
    }

    /// The stage with a database of this name.
    async fn start_with(database: &str, tables: &str) -> Stage {
        Stage::start_within(PATIENCE, database, tables).await
    }

    /// The same with this maximum time for the look-ups of a transaction.
    async fn start_within(lookup_time_max: Duration, database: &str, tables: &str) -> Stage {
        let dir = PrivateDir::temporary("rows").expect("a directory");
        let server = MariaDb::start_with(dir, MariaDbOptions::followed(&[])).expect("a server");
        server.create_database(database, "writer", "secret").expect("a database");
        server.create_follower("localhost", database).expect("an account");
        // MariaDB reads this as a comment; it needs no privilege for look-ups of neighbours.
        let look_up =
            "/*!80000 GRANT REPLICATION CLIENT, XA_RECOVER_ADMIN ON *.* TO follower@localhost */";
        server.sql(look_up).expect("privileges");
        server.sql_in(database, tables).expect("tables");
        let root = PrivateDir::temporary("root").expect("a directory");
        std::fs::write(root.path().join("index.php"), "").expect("a script");
        let text = format!(
            "site.root = {:?}\n[automatic]\nenabled = true\n\
             application = \"wordpress\"\n[[database]]\nbarrier = \"1m\"\n\
             url = \"mysql://follower:secret@localhost/{database}?socket={}\"\n",
            root.path(),
            server.socket().display()
        );
        let file = toml::from_str(&text).expect("a configuration");
        let config: Arc<Config> = Arc::new(config::resolve(&file).expect("it can be used"));
        let mut sources = ChangeSources::new(&config);
        for feed in &mut sources.feeds {
            Arc::get_mut(feed).expect("nothing else has it").lookup_time_max = lookup_time_max;
        }
        let site = SiteState::new(config, Clock::start(), None, true);
        let (phase, stop) = watch::channel(Phase::Serving);
        start([(&site, &sources)].into_iter(), PATIENCE, &stop).await.expect("it is followed");
        let stage = Stage { _phase: phase, site, sources, server };
        stage.wait("the gate is open", || !stage.feed().keeps_pages_out()).await;
        stage.committed().await;
        stage
    }

    fn feed(&self) -> &Arc<Feed> {
        &self.sources.feeds[0]
    }

    fn run(&self, sql: &str) {
        self.server.sql_in("paper", sql).expect("statements");
    }

    /// Waits as the response to a write does.
    async fn committed(&self) {
        assert_eq!(barrier(&self.site, &self.sources).await, Propagation::Applied);
    }

    async fn wait(&self, what: &str, is_reached: impl Fn() -> bool) {
        let reached = async {
            while !is_reached() {
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(PATIENCE, reached).await.unwrap_or_else(|_| panic!("never: {what}"));
    }

    /// Stores the reads of a page whose render began at this number.
    fn read(&self, sql: &str, since: Number) -> Result<PageReads, ReadsRefused> {
        let texts = [sql.as_bytes().into()];
        let statements = RenderStatements {
            texts: &texts,
            options: None,
            mode: footprint::SqlMode::default(),
            own: &[],
            tagged: &[],
        };
        self.site.footprints.depend(statements, since, (Timestamp(0), Timestamp(0)))
    }

    /// The reads of a page that is rendered now, as soon as they can be stored.
    async fn page(&self, sql: &str) -> PageReads {
        self.wait("the reads are stored", || self.read(sql, self.site.store.number()).is_ok())
            .await;
        self.read(sql, self.site.store.number()).expect("stored a moment ago")
    }

    /// The number of changes that had a target, such as the tag of a statement.
    fn purges(&self) -> u64 {
        self.site.counters.invalidations.get()
    }

    /// The position at which another process would resume.
    fn position(&self) -> Option<String> {
        self.feed().progress().bookmark().map(|bookmark| bookmark.to_string())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_purges_the_pages_whose_statements_it_touches() {
    let stage = Stage::start().await;
    let page = stage.page("SELECT post_title FROM wp_posts WHERE ID = 1").await;
    let (since, before) = (stage.site.store.number(), stage.purges());
    stage.run("UPDATE wp_posts SET post_title = 'second' WHERE ID = 2");
    stage.committed().await;
    assert_eq!(stage.purges(), before);
    stage.run("UPDATE wp_posts SET post_title = 'first' WHERE ID = 1");
    stage.committed().await;
    assert_eq!(stage.purges(), before + 1);
    // A render from before is tested against the row.
    let refused = stage.read("SELECT post_title FROM wp_posts WHERE ID < 2", since);
    assert!(matches!(refused, Err(ReadsRefused::Changed)));
    drop(page);
    stage.page("SELECT post_title FROM wp_posts WHERE ID < 2").await;
    stage.run("TRUNCATE TABLE wp_term_relationships");
    stage.committed().await;
    assert_eq!(stage.purges(), before + 1, "no page reads it");
}

#[tokio::test(flavor = "multi_thread")]
async fn partners_of_the_same_transaction_are_found() {
    let stage = Stage::start().await;
    let _page = stage.page(TERM).await;
    let mut purges = stage.purges();
    for id in 10..60 {
        let rows = [
            format!("INSERT INTO wp_posts VALUES ({id}, 'new')"),
            format!("INSERT INTO wp_term_relationships VALUES ({id}, 3)"),
        ];
        let (first, second) = (&rows[id % 2], &rows[1 - id % 2]);
        stage.run(&format!("BEGIN; {first}; {second}; COMMIT"));
        stage.committed().await;
        assert!(stage.purges() > purges, "post {id}");
        purges = stage.purges();
    }
    // A post without the term. Then a post and its term: one is gone when the other is looked up.
    stage.run("UPDATE wp_posts SET post_title = 'other' WHERE ID = 2");
    stage.committed().await;
    assert_eq!(stage.purges(), purges);
    stage.run(
        "DELETE FROM wp_term_relationships WHERE object_id = 1; DELETE FROM wp_posts WHERE ID = 1",
    );
    stage.committed().await;
    assert!(stage.purges() > purges);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_waits_for_rows_that_are_held() {
    let stage = Stage::start().await;
    let _page = stage.page(TRANSIENT).await;
    let before = stage.purges();
    let rebuilt =
        "INSERT INTO wp_options (option_name, option_value) VALUES ('_transient_menu', 'a')";
    let deleted = "DELETE FROM wp_options WHERE option_name = '_transient_menu'";
    stage.run(&format!("BEGIN; {deleted}; {rebuilt}; COMMIT"));
    stage.committed().await;
    assert_eq!(stage.purges(), before, "it did not change");
    stage.run(deleted);
    stage.committed().await;
    assert_eq!(stage.purges(), before + 1);
    stage.run(rebuilt);
    stage.committed().await;
    assert_eq!(stage.purges(), before + 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_row_is_released_although_nothing_else_happens() {
    let stage = Stage::start().await;
    let _page = stage.page(TRANSIENT).await;
    stage.committed().await;
    stage.wait("all is settled", || stage.position().is_some()).await;
    let (before, position) = (stage.purges(), stage.position());
    stage.run("DELETE FROM wp_options WHERE option_name = '_transient_menu'");
    // Until the row is released, another process would resume before it.
    let is_purged = || {
        let at = stage.position();
        let is_purged = stage.purges() > before;
        assert!(at == position || stage.purges() > before, "{at:?}");
        is_purged
    };
    stage.wait("the row is released", is_purged).await;
    stage.wait("the position advances", || stage.position() != position).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_that_change_end_all_pages() {
    let stage = Stage::start().await;
    let _page = stage.page("SELECT post_title FROM wp_posts WHERE ID = 1").await;
    let since = stage.site.store.number();
    stage.run(
        "INSERT INTO wp_posts VALUES (7, 'x'); ALTER TABLE wp_posts ADD early INT FIRST;
         INSERT INTO wp_posts VALUES (1, 8, 'y')",
    );
    stage.committed().await;
    let refused =
        stage.read("SELECT option_value FROM wp_options WHERE option_name = 'blogname'", since);
    assert!(matches!(refused, Err(ReadsRefused::Changed)), "{:?}", refused.err());
    let _page = stage.page("SELECT post_title FROM wp_posts WHERE early = 1").await;
    let before = stage.purges();
    stage.run("UPDATE wp_posts SET early = 2 WHERE ID = 7");
    stage.committed().await;
    assert_eq!(stage.purges(), before);
    stage.run("UPDATE wp_posts SET early = 1 WHERE ID = 7");
    stage.committed().await;
    assert_eq!(stage.purges(), before + 1);
}
