//! Pages that show the next or the previous row of a real MariaDB: which of them a changed row purges, also while other
//! transactions commit.

use super::{Stage, TABLES};
use followed_database::sql::MariaDbConnection;
use harness::Random;
use page_store::Lease;
use statements::footprints::PageReads;
use std::thread;
use std::time::Duration;

const ARTICLES: &str =
    "CREATE TABLE article (id INT PRIMARY KEY, at DATETIME, kind VARCHAR(20) NOT NULL,
        title INT NOT NULL, KEY (at)) ENGINE = InnoDB;
    CREATE TABLE visit (id INT PRIMARY KEY AUTO_INCREMENT, page INT) ENGINE = InnoDB;
    CREATE TABLE loose (id INT PRIMARY KEY, at DATETIME) ENGINE = MyISAM;";
/// The minutes of the articles.
const MINUTES: usize = 60;

/// A page that shows the result of a statement.
struct Page {
    sql: String,
    result: Vec<Vec<Option<Vec<u8>>>>,
    reads: PageReads,
    lease: Lease,
}

fn moment(minute: usize) -> String {
    format!("2026-01-01 00:{minute:02}:00")
}

fn next(minute: usize) -> String {
    let at = moment(minute);
    format!(
        "SELECT p.id, p.title FROM article AS p WHERE p.at > '{at}' AND p.kind = 'post' \
         ORDER BY p.at ASC, p.id ASC LIMIT 1"
    )
}

fn previous(minute: usize) -> String {
    let at = moment(minute);
    format!(
        "SELECT p.* FROM article AS p WHERE (p.at < '{at}' OR (p.at = '{at}' AND p.id < 20)) AND p.kind = 'post' \
         ORDER BY p.at DESC, p.id DESC LIMIT 2"
    )
}

fn insert(id: usize, minute: usize) -> String {
    format!("INSERT INTO article VALUES ({id}, '{}', 'post', 0)", moment(minute))
}

impl Stage {
    fn connect(&self) -> MariaDbConnection {
        MariaDbConnection::open(self.server.socket()).expect("a connection")
    }

    async fn shown(&self, connection: &mut MariaDbConnection, sql: String) -> Page {
        let reads = self.page(&sql).await;
        let lease = self.site.store.lease();
        let result = connection.rows(&sql).expect("rows").rows;
        Page { sql, result, reads, lease }
    }

    fn is_purged(&self, page: &Page) -> bool {
        let store = &self.site.store;
        let mut dependencies = store.dependencies(self.site.name, b"/");
        for tag in page.reads.tags() {
            dependencies.tag(&tag);
        }
        store.may_share(page.lease.number(), store.number(), &dependencies).is_err()
    }

    /// The look-ups with and without a result that was used.
    fn neighbours(&self) -> (u64, u64) {
        let counters = &self.site.counters;
        (counters.reads_neighbours.get(), counters.reads_neighbours_unknown.get())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_article_purges_the_pages_next_to_it() {
    let stage = Stage::start_with("items", &format!("{TABLES};{ARTICLES}")).await;
    let mut connection = stage.connect();
    for minute in (0..MINUTES).step_by(2) {
        connection.rows(&insert(minute, minute)).expect("a row");
    }
    stage.committed().await;
    let mut pages = Vec::new();
    for minute in (0..MINUTES).step_by(2) {
        pages.push(stage.shown(&mut connection, next(minute)).await);
        pages.push(stage.shown(&mut connection, previous(minute)).await);
    }
    let mut purged = async |stage: &Stage, sql: &str| {
        connection.rows(sql).expect("a change");
        stage.committed().await;
        let purged: Vec<usize> =
            (0..pages.len()).filter(|at| stage.is_purged(&pages[*at])).collect();
        for page in pages.iter_mut().filter(|page| stage.is_purged(page)) {
            *page = stage.shown(&mut connection, page.sql.clone()).await;
        }
        purged
    };
    assert_eq!(stage.neighbours(), (0, 0));
    // The newest article is shown by the one before. The page of minute 30 is number 30, with both statements.
    assert_eq!(purged(&stage, &insert(90, 59)).await, [58]);
    assert_eq!(stage.neighbours(), (1, 0), "no page is later");
    assert_eq!(purged(&stage, &insert(91, 31)).await, [30, 33, 35]);
    assert_eq!(purged(&stage, "UPDATE article SET title = 5 WHERE id = 91").await, [30, 33, 35]);
    let moved = "UPDATE article SET at = '2026-01-01 00:11:00' WHERE id = 91";
    assert_eq!(purged(&stage, moved).await, [10, 13, 15, 30, 33, 35]);
    assert_eq!(
        purged(&stage, "UPDATE article SET kind = 'page' WHERE id = 91").await,
        [10, 13, 15]
    );
    assert!(purged(&stage, "UPDATE article SET title = 9 WHERE id = 91").await.is_empty());
    assert_eq!(purged(&stage, "DELETE FROM article WHERE id = 90").await, [58]);
    let (used, unknown) = stage.neighbours();
    assert!(used > 8 && unknown == 0, "{used} {unknown}");
    assert_eq!(purged(&stage, "TRUNCATE TABLE article").await.len(), pages.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_next_to_a_row_are_purged_while_others_commit() {
    const ROUNDS: u64 = 5;
    const WRITERS: u64 = 3;
    let stage = Stage::start_with("items", ARTICLES).await;
    let mut connection = stage.connect();
    let (mut purged, mut changed, mut all) = (0, 0, 0);
    for round in 0..ROUNDS {
        let mut pages = Vec::new();
        for minute in 0..MINUTES {
            let statement = if minute % 2 == 0 { next(minute) } else { previous(minute) };
            pages.push(stage.shown(&mut connection, statement).await);
        }
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let mut connection = stage.connect();
                let seed = (round * WRITERS + writer + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                thread::spawn(move || write(&mut connection, &mut Random::new(seed), writer))
            })
            .collect();
        for writer in writers {
            tokio::task::spawn_blocking(|| writer.join().expect("no panic"))
                .await
                .expect("it ends");
        }
        stage.committed().await;
        for page in &pages {
            let result = connection.rows(&page.sql).expect("rows").rows;
            let (is_changed, is_purged) = (result != page.result, stage.is_purged(page));
            assert!(is_purged || !is_changed, "round {round}: {}", page.sql);
            purged += usize::from(is_purged);
            changed += usize::from(is_changed);
            all += 1;
        }
    }
    let (used, unknown) = stage.neighbours();
    println!(
        "{all} pages, {changed} changed, {purged} purged; {used} look-ups used, {unknown} not"
    );
    // Otherwise the test would pass by purging everything, or by changing nothing.
    assert!(changed > 0 && purged < all && used > 0, "{changed} {purged} {used}");
}

/// Runs a few transactions over rows of its own; other writers' rows are between them.
fn write(connection: &mut MariaDbConnection, random: &mut Random, writer: u64) {
    // Without gaps that are locked: no deadlock.
    connection.rows("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED").expect("a setting");
    for _ in 0..3 {
        let statements = 1 + random.below(2);
        connection.rows("BEGIN").expect("a transaction");
        for _ in 0..statements {
            let id = 3 * random.below(12) + usize::try_from(writer).expect("small");
            let at = moment(random.below(MINUTES));
            let sql = match random.below(5) {
                0 => format!("DELETE FROM article WHERE id = {id}"),
                1 => format!("UPDATE article SET kind = 'page' WHERE id = {id}"),
                2 => format!("UPDATE article SET title = title + 1 WHERE id = {id}"),
                _ => format!("REPLACE INTO article VALUES ({id}, '{at}', 'post', 0)"),
            };
            connection.rows(&sql).expect("a change");
        }
        connection.rows(random.one(&["COMMIT", "COMMIT", "COMMIT", "ROLLBACK"])).expect("its end");
        if random.chance(2) {
            connection.rows("INSERT INTO visit (page) VALUES (1)").expect("another table");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_transaction_of_another_table_does_not_matter_and_a_row_between_does() {
    let stage = Stage::start_with("items", ARTICLES).await;
    let mut connection = stage.connect();
    for minute in [10, 20, 30] {
        connection.rows(&insert(minute, minute)).expect("a row");
    }
    stage.committed().await;
    let first = stage.shown(&mut connection, next(5)).await;
    let last = stage.shown(&mut connection, next(32)).await;
    let other = "INSERT INTO visit (page) VALUES (1)";
    for (id, between, expected) in [(40, other, false), (41, &insert(50, 35)[..], true)] {
        // The look-up waits for the lock, so it sees both.
        connection.rows("LOCK TABLES article WRITE, visit WRITE").expect("a lock");
        connection.rows(&insert(id, 40)).expect("a row");
        connection.rows(between).expect("a row");
        connection.rows("UNLOCK TABLES").expect("no lock");
        stage.committed().await;
        assert_eq!(stage.is_purged(&first), expected, "{between}");
        assert!(stage.is_purged(&last));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_up_that_takes_too_long_limits_no_purge() {
    let tables = format!("{TABLES};{ARTICLES}");
    let stage = Stage::start_within(Duration::from_millis(50), "items", &tables).await;
    let mut connection = stage.connect();
    connection.rows(&insert(10, 10)).expect("a row");
    stage.committed().await;
    let page = stage.shown(&mut connection, next(5)).await;
    // The look-up waits for this lock.
    connection.rows("LOCK TABLES article WRITE").expect("a lock");
    connection.rows(&insert(20, 20)).expect("a row");
    stage.committed().await;
    assert_eq!(stage.neighbours(), (0, 1));
    assert!(stage.is_purged(&page), "it may show the new row");
    connection.rows("UNLOCK TABLES").expect("free");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_of_an_engine_without_transactions_has_no_look_ups() {
    let stage = Stage::start_with("items", ARTICLES).await;
    let mut connection = stage.connect();
    let of = |id: usize| {
        let at = moment(id);
        format!("SELECT id FROM loose WHERE at > '{at}' ORDER BY at LIMIT 1")
    };
    connection.rows("INSERT INTO loose VALUES (1, '2026-01-01 00:05:00')").expect("a row");
    stage.committed().await;
    let page = stage.shown(&mut connection, of(1)).await;
    connection.rows("INSERT INTO loose VALUES (2, '2026-01-01 00:07:00')").expect("a row");
    stage.committed().await;
    assert!(stage.is_purged(&page) && stage.neighbours() == (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_row_is_a_neighbour_while_a_transaction_is_prepared_since_before_the_connection() {
    const PREPARED: &str =
        "XA START 'old'; INSERT INTO visit (page) VALUES (1); XA END 'old'; XA PREPARE 'old'";
    let stage = Stage::start_with("items", &format!("{ARTICLES}{PREPARED}")).await;
    let mut connection = stage.connect();
    for minute in [10, 20, 30] {
        connection.rows(&insert(minute, minute)).expect("a row");
    }
    stage.committed().await;
    let mut first = stage.shown(&mut connection, next(5)).await;
    connection.rows(&insert(40, 40)).expect("a row");
    stage.committed().await;
    assert!(stage.is_purged(&first) && stage.neighbours() == (0, 1));
    connection.rows("XA ROLLBACK 'old'").expect("its end");
    stage.committed().await;
    first = stage.shown(&mut connection, next(5)).await;
    connection.rows(&insert(41, 41)).expect("a row");
    stage.committed().await;
    assert!(!stage.is_purged(&first) && stage.neighbours() == (1, 1));
}
