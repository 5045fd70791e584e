//! Pages, looks and renders in every order: a page is purged or refused if a row changed that its
//! render may not have seen.

#[path = "footprints/earlier_tests.rs"]
mod earlier;
#[path = "footprints/neighbours_tests.rs"]
mod neighbours;
#[path = "footprints/own_writes_tests.rs"]
mod own_writes_tests;

use super::*;
use config::CaptureKind;
use footprint::schema::SqlColumn;
use footprint::{Lookup, NearestLookup, RowEvent, SqlRow, SqlValue, TableChange};
use page_store::{Change, Dependencies, Limits, Site, Store, Strength};
use std::pin::Pin;
use std::time::Duration;

const SITE: Site = Site(0);

/// A store with a payload, and the statements of its pages.
struct Stage {
    store: Store<Payload>,
    footprints: Footprints,
}

struct Payload(Option<PageReads>);

impl page_store::Payload for Payload {
    fn bytes(&self) -> usize {
        0
    }
}

/// The partners of every row.
#[derive(Default)]
struct Partners(Option<Vec<SqlRow<'static>>>);

impl FindPartners for Partners {
    fn find<'a>(
        &'a mut self,
        _: &'a SqlSchema,
        _: &'a Lookup,
    ) -> Pin<Box<dyn Future<Output = Option<Vec<SqlRow<'static>>>> + Send + 'a>> {
        let rows = self.0.clone();
        Box::pin(async move { rows })
    }

    fn find_nearest<'a>(
        &'a mut self,
        _: &'a SqlSchema,
        lookups: &'a [NearestLookup],
    ) -> Pin<Box<dyn Future<Output = NearestRows> + Send + 'a>> {
        let rows = self.0.clone();
        Box::pin(async move { vec![rows; lookups.len()] })
    }
}

impl SearchedPages for Store<Payload> {
    fn number(&self) -> Number {
        Store::number(self)
    }

    fn drop_pages(&self, targets: &[ChangeTarget<'_>]) {
        self.change(&Change { site: SITE, targets }, Strength::Drop);
    }
}

/// The statements of a render with these texts, and nothing else that is known of it.
fn of_texts(texts: &[Box<[u8]>]) -> RenderStatements<'_> {
    RenderStatements { texts, options: None, mode: SqlMode::default(), own: &[], tagged: &[] }
}

fn schema(more: &[&str]) -> SqlSchema {
    let mut schema = SqlSchema::new("site");
    let number = |name: &str, key: &str| SqlColumn::new(name, "int(11)", None, key);
    let text = |name: &str| SqlColumn::new(name, "varchar(99)", Some("utf8mb4_general_ci"), "");
    schema.add("news", vec![number("id", "PRI"), text("title"), number("author", "MUL")]);
    let news = schema.table_id("news").expect("added");
    schema.set_logged_first(news);
    schema.add("author", vec![number("id", "PRI"), text("name")]);
    schema.add("wp_options", vec![text("option_name"), text("option_value")]);
    more.iter().for_each(|name| schema.add(name, vec![number("id", "PRI")]));
    schema
}

fn settings() -> Automatic {
    Automatic {
        database: "site".to_owned(),
        capture: CaptureKind::WordPress,
        capture_directory: None,
        profile: SqlProfile::wordpress(),
        table_prefix: "wp_".to_owned(),
        lifetime_max: Duration::from_secs(60),
        untracked: config::UntrackedPages::Short,
        content_types: Vec::new(),
        partners: PartnerLookups::Made,
    }
}

fn row(values: &[&str]) -> SqlRow<'static> {
    SqlRow::new(values.iter().map(|value| SqlValue::Text((*value).to_owned().into())).collect())
}

impl Stage {
    fn new() -> Stage {
        let stage = Stage::undefined();
        stage.define(&[]);
        stage
    }

    /// Before the tables are known.
    fn undefined() -> Stage {
        let store = Store::new(Limits::new(1 << 24));
        Stage { store, footprints: Footprints::new(Some(settings()), 1 << 24) }
    }

    fn define(&self, more: &[&str]) {
        now(self.footprints.define(schema(more), &self.store));
    }

    /// A change of a row of `news`: the title of this number.
    fn retitle(&self, id: &str) -> TableChange {
        self.row("news", Some(&[id, "old", "1"]), Some(&[id, "new", "1"]))
    }

    fn row(&self, table: &str, before: Option<&[&str]>, after: Option<&[&str]>) -> TableChange {
        let schema = schema(&[]);
        let table = schema.table_id(table).expect("added");
        TableChange::Row(RowEvent::new(&schema, table, before.map(row), after.map(row)))
    }

    fn look(&self, change: TableChange) -> StatementLook {
        now(self.footprints.look(vec![change], &mut Partners::default(), Duration::ZERO))
    }

    /// Applies a look as the follower of a database does; the change stays open until it is settled.
    fn open(&self, look: &StatementLook) -> page_store::OpenChange {
        let targets: Vec<_> = look.tags().map(ChangeTarget::Tag).collect();
        self.store.open(&Change { site: SITE, targets: &targets }, Strength::Drop)
    }

    fn settle(&self, opened: page_store::OpenChange, look: StatementLook) {
        self.store.settle(opened);
        self.footprints.settled(look, self.store.number());
    }

    /// Stores a page that has run this statement.
    fn store(&self, lease: &page_store::Lease, text: &str) -> Result<(), &'static str> {
        self.store_asking(lease, text, None)
    }

    fn store_asking(
        &self,
        lease: &page_store::Lease,
        text: &str,
        options: Option<&[String]>,
    ) -> Result<(), &'static str> {
        let texts = [text.as_bytes().into()];
        let statements = RenderStatements { options, ..of_texts(&texts) };
        let reads =
            self.footprints.depend(statements, lease.number(), (Timestamp(0), Timestamp(0)));
        let reads = reads.map_err(|refused| refused.reason().as_str())?;
        let mut dependencies: Dependencies = self.store.dependencies(SITE, text.as_bytes());
        for tag in reads.tags() {
            dependencies.tag(&tag);
        }
        let key = self.store.key(text.as_bytes());
        let stored = self.store.insert(key, 0, &dependencies, lease, Payload(Some(reads)));
        stored.map(drop).map_err(|refused| refused.reason.as_str())
    }

    fn has(&self, text: &str) -> bool {
        !self.store.peek(self.store.key(text.as_bytes())).as_slice().is_empty()
    }
}

/// The result of a future that never waits.
fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) {
        std::task::Poll::Ready(result) => result,
        std::task::Poll::Pending => panic!("it waits"),
    }
}

const FIFTH: &str = "SELECT title FROM news WHERE id = 5";

#[test]
fn a_stored_page_is_purged_by_its_rows_alone() {
    let stage = Stage::new();
    stage.store(&stage.store.lease(), FIFTH).expect("nothing has changed");
    let other = stage.look(stage.retitle("6"));
    assert_eq!(other.tags().count(), 0);
    let opened = stage.open(&other);
    stage.settle(opened, other);
    assert!(stage.has(FIFTH));
    let look = stage.look(stage.retitle("5"));
    let opened = stage.open(&look);
    assert!(!stage.has(FIFTH));
    stage.settle(opened, look);
    stage.store(&stage.store.lease(), FIFTH).expect("the render has seen the change");
    assert!(stage.has(FIFTH));
}

#[test]
fn a_render_that_may_not_have_seen_a_change_is_refused() {
    let stage = Stage::new();
    // The statement is new: only the recent changes know of the row.
    let early = stage.store.lease();
    let look = stage.look(stage.retitle("5"));
    let opened = stage.open(&look);
    let while_open = stage.store.lease();
    assert_eq!(stage.store(&early, FIFTH), Err("reads-changed"));
    assert_eq!(stage.store(&while_open, FIFTH), Err("reads-changed"));
    assert_eq!(stage.store(&while_open, "SELECT title FROM news WHERE id = 6"), Ok(()));
    stage.settle(opened, look);
    assert_eq!(stage.store(&early, FIFTH), Err("reads-changed"));
    assert_eq!(stage.store(&while_open, FIFTH), Err("reads-changed"), "it read before settling");
    assert_eq!(stage.store(&stage.store.lease(), FIFTH), Ok(()));
}

#[test]
fn a_statement_that_is_known_is_refused_by_the_store() {
    let stage = Stage::new();
    stage.store(&stage.store.lease(), FIFTH).expect("nothing has changed");
    // The statement is acquired before the look, the page stored after it.
    let lease = stage.store.lease();
    let texts = [FIFTH.as_bytes().into()];
    let statements = of_texts(&texts);
    let reads = stage
        .footprints
        .depend(statements, lease.number(), (Timestamp(0), Timestamp(0)))
        .expect("known");
    let look = stage.look(stage.retitle("5"));
    assert_eq!(look.tags().count(), 1);
    let opened = stage.open(&look);
    let mut dependencies = stage.store.dependencies(SITE, b"/late");
    for tag in reads.tags() {
        dependencies.tag(&tag);
    }
    let key = stage.store.key(b"/late");
    let refused = stage.store.insert(key, 0, &dependencies, &lease, Payload(Some(reads)));
    assert!(refused.is_err());
    stage.settle(opened, look);
}

#[test]
fn a_forgotten_change_refuses_the_statements_that_it_may_touch() {
    let stage = Stage::new();
    let early = stage.store.lease();
    let many: Vec<_> = (0..10_000).map(|_| stage.retitle("6")).collect();
    let look = now(stage.footprints.look(many, &mut Partners::default(), Duration::ZERO));
    let opened = stage.open(&look);
    let while_open = stage.store.lease();
    assert_eq!(stage.store(&while_open, FIFTH), Err("reads-changed"));
    stage.settle(opened, look);
    assert_eq!(stage.store(&early, FIFTH), Err("reads-changed"));
    assert_eq!(stage.store(&stage.store.lease(), FIFTH), Ok(()));
}

/// The lock of the tables is released between two rows, so pages are stored there.
#[test]
fn a_page_that_is_stored_between_two_rows_of_a_look_is_refused_or_purged() {
    const ROWS: u32 = 300;
    let text = |id: u32| format!("SELECT title FROM news WHERE id = {id}");
    for round in 0..10 {
        let stage = Stage::new();
        let early = stage.store.lease();
        // Some statements are in the index before the look.
        for id in (0..ROWS).filter(|id| id % 7 == round % 7) {
            stage.store(&early, &text(id)).expect("nothing has changed");
        }
        let changes: Vec<_> = (0..ROWS).map(|id| stage.retitle(&id.to_string())).collect();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for id in (0..ROWS).rev() {
                    // Refused, or purged by the look.
                    let _ = stage.store(&early, &text(id));
                }
            });
            let look =
                now(stage.footprints.look(changes, &mut Partners::default(), Duration::ZERO));
            let opened = stage.open(&look);
            stage.settle(opened, look);
        });
        for id in 0..ROWS {
            assert!(!stage.has(&text(id)), "round {round}: an old page of row {id}");
        }
    }
}

/// Visitors choose the words of searches and of comments.
#[test]
fn a_comment_for_which_the_budget_is_too_small_purges_all_searches() {
    let stage = Stage::new();
    let title = "abcdefgh cdefghabcd efghabcdefab ghabcdefgh ".repeat(1_500);
    let text = |at: usize| {
        let search = "abcdefgh".repeat(9);
        format!("SELECT id FROM news WHERE title LIKE '%{search}{at}%'")
    };
    let searches = 1_500;
    for at in 0..searches {
        stage.store(&stage.store.lease(), &text(at)).expect("nothing has changed");
    }
    let look = stage.look(stage.row("news", None, Some(&["9", "a short one", "1"])));
    assert_eq!(look.tags().count(), 0);
    let look = stage.look(stage.row("news", None, Some(&["9", &title, "1"])));
    let touched = look.tags().count();
    assert!(touched > searches / 2, "{touched}");
    let opened = stage.open(&look);
    assert_eq!((0..searches).filter(|at| !stage.has(&text(*at))).count(), touched);
    stage.settle(opened, look);
}

#[test]
fn a_full_index_evicts_the_least_used_pages_with_statements() {
    let room = 64;
    let store = Store::new(Limits::new(1 << 24));
    let memory = room * MEMORY_SHARE * STATEMENT_BYTES;
    let stage = Stage { store, footprints: Footprints::new(Some(settings()), memory) };
    stage.define(&[]);
    stage.store(&stage.store.lease(), FIFTH).expect("nothing has changed");
    // A page without statements is older than all others.
    let plain = stage.store.key(b"/plain");
    let none = stage.store.dependencies(SITE, b"/plain");
    let lease = stage.store.lease();
    assert!(stage.store.insert(plain, 0, &none, &lease, Payload(None)).is_ok());
    for id in 0..10 * room {
        while !stage.footprints.has_room() {
            assert!(stage.store.evict_some(8, |page| page.0.is_some()) > 0);
        }
        // Used again and again, as no other is.
        let key = stage.store.key(FIFTH.as_bytes());
        assert_eq!(stage.store.candidates(key).as_slice().len(), 1, "{id}");
        let text = format!("SELECT title FROM news WHERE id = {}", 100 + id);
        assert_eq!(stage.store(&stage.store.lease(), &text), Ok(()), "{id}");
    }
    assert!(!stage.store.peek(plain).as_slice().is_empty(), "it holds no statement");
    assert!(stage.footprints.statements() <= room);
}

#[test]
fn a_definition_of_the_tables_purges_and_refuses() {
    let stage = Stage::new();
    stage.store(&stage.store.lease(), FIFTH).expect("nothing has changed");
    let lease = stage.store.lease();
    stage.define(&[]);
    assert!(stage.has(FIFTH), "the same tables");
    stage.define(&["visit"]);
    assert!(!stage.has(FIFTH));
    assert_eq!(stage.store(&lease, FIFTH), Err("reads-changed"));
    assert_eq!(stage.store(&stage.store.lease(), FIFTH), Ok(()));
}

#[test]
fn statements_are_forgotten_with_their_pages() {
    let stage = Stage::new();
    stage.store(&stage.store.lease(), FIFTH).expect("nothing has changed");
    stage.store(&stage.store.lease(), "SELECT title FROM news WHERE id = 6").expect("no change");
    assert_eq!(stage.footprints.statements(), 2);
    stage.store.drop_pages(&[ChangeTarget::Url(FIFTH.as_bytes())]);
    assert_eq!(stage.footprints.statements(), 1);
    stage.store.drop_pages(&[ChangeTarget::Everything]);
    assert_eq!(stage.footprints.statements(), 0);
}

#[test]
fn partners_are_looked_up() {
    let stage = Stage::new();
    let joined = "SELECT news.title FROM news JOIN author ON author.id = news.author \
                  WHERE author.name = 'Ann'";
    stage.store(&stage.store.lease(), joined).expect("nothing has changed");
    let look = |partners: Option<Vec<SqlRow<'static>>>| {
        let change = vec![stage.retitle("5")];
        let look = now(stage.footprints.look(change, &mut Partners(partners), Duration::ZERO));
        (look.tags().count(), look.lookups)
    };
    assert_eq!(look(Some(vec![row(&["1", "Ann"])])), (1, 1));
    assert_eq!(look(Some(vec![row(&["1", "Bob"])])), (0, 1));
    assert_eq!(look(Some(Vec::new())), (0, 1));
    assert_eq!(look(None), (1, 1), "not known");
}

#[test]
fn options_that_were_not_asked_for_touch_nothing() {
    let stage = Stage::new();
    let all = "SELECT option_name, option_value FROM wp_options";
    let asked = ["home".to_owned()];
    stage.store_asking(&stage.store.lease(), all, Some(&asked)).expect("nothing has changed");
    let of = |name: &str| {
        let change = stage.row("wp_options", Some(&[name, "a"]), Some(&[name, "b"]));
        stage.look(change).tags().count()
    };
    assert_eq!((of("home"), of("blogname"), of("cron")), (1, 0, 0));
}

/// A transaction of many rows, with many searches that each row is compared with.
#[test]
fn a_transaction_for_which_the_budget_is_too_small_changes_its_tables() {
    let stage = Stage::new();
    let lease = stage.store.lease();
    for at in 0..1_500 {
        let text = format!("SELECT id FROM news WHERE title LIKE '%lantern{at}%'");
        stage.store(&lease, &text).expect("nothing has changed");
    }
    let other = "SELECT name FROM author WHERE id = 1";
    stage.store(&lease, other).expect("nothing has changed");
    let title = "some words of a title, ".repeat(40);
    let rows: Vec<_> = (0..1_000)
        .map(|id| stage.row("news", None, Some(&[&id.to_string(), &title, "1"])))
        .collect();
    let look = now(stage.footprints.look(rows, &mut Partners::default(), Duration::ZERO));
    // One row more than the budget, at most.
    assert!(look.steps < search::LOOK_STEPS + (32 << 20), "{}", look.steps);
    assert_eq!(look.tags().count(), 1_500);
    // A page that is made meanwhile: the rows after the last that was compared are not known to anybody.
    let unseen = "SELECT id FROM news WHERE id = 999";
    assert_eq!(stage.store(&lease, unseen), Err("reads-changed"));
    let opened = stage.open(&look);
    stage.settle(opened, look);
    assert!(stage.has(other));
    assert_eq!(stage.store(&stage.store.lease(), unseen), Ok(()));
}

#[test]
fn a_page_made_while_a_row_is_gone_is_refused_although_the_row_comes_back() {
    let stage = Stage::new();
    let text = "SELECT option_value FROM wp_options WHERE option_name = '_transient_a'";
    stage.store(&stage.store.lease(), text).expect("nothing has changed");
    let row: &[&str] = &["_transient_a", "x"];
    let deleted = stage.look(stage.row("wp_options", Some(row), None));
    assert_eq!(deleted.tags().count(), 0, "it is held back");
    let opened = stage.open(&deleted);
    stage.settle(opened, deleted);
    let between = stage.store.lease();
    let inserted = stage.look(stage.row("wp_options", None, Some(row)));
    assert_eq!(inserted.tags().count(), 0, "it has equal values");
    let opened = stage.open(&inserted);
    stage.settle(opened, inserted);
    assert!(stage.has(text), "the page from before shows the row");
    assert_eq!(stage.store(&between, text), Err("reads-changed"));
    assert_eq!(stage.store(&stage.store.lease(), text), Ok(()));
}

#[test]
fn only_the_statement_that_loads_all_options_is_narrowed() {
    let stage = Stage::new();
    let asked = ["home".to_owned()];
    for text in [
        "SELECT option_value FROM wp_options WHERE option_name LIKE 'event_%'",
        "SELECT COUNT(*) FROM wp_options",
        "SELECT option_name FROM wp_options WHERE option_value LIKE '%x%'",
        "SELECT option_name, option_value FROM wp_options WHERE option_value = 'x'",
    ] {
        let lease = stage.store.lease();
        stage.store_asking(&lease, text, Some(&asked)).expect("nothing has changed");
    }
    let before: &[&str] = &["event_7", "x"];
    let change = stage.row("wp_options", Some(before), None);
    assert_eq!(stage.look(change).tags().count(), 4);
}

#[test]
fn unknown_reads_are_refused_with_a_reason() {
    let stage = Stage::new();
    let lease = stage.store.lease();
    assert_eq!(stage.store(&lease, "SELECT my_function(1) FROM news"), Err("reads-unknown"));
    assert_eq!(stage.store(&lease, "SELECT * FROM elsewhere.t"), Err("reads-unknown"));
    let texts: Vec<Box<[u8]>> = (0..2_000)
        .map(|id| format!("SELECT title FROM news WHERE id = {id}").into_bytes().into())
        .collect();
    let statements = of_texts(&texts);
    let refused = stage.footprints.depend(statements, lease.number(), (Timestamp(0), Timestamp(0)));
    assert_eq!(refused.map_err(|refused| refused.reason().as_str()).err(), Some("reads-too-many"));
    assert_eq!(stage.footprints.statements(), 0, "a refused page holds nothing");
    let texts = [b"SELECT NOW()".to_vec().into()];
    let statements = of_texts(&texts);
    let reads = stage
        .footprints
        .depend(statements, lease.number(), (Timestamp(0), Timestamp(0)))
        .expect("known");
    assert!(reads.is_timed);
}

#[test]
fn statements_of_tagged_tables_alone_are_left_out() {
    let stage = Stage::new();
    let texts: [Box<[u8]>; 3] = [
        Box::from(*b"SELECT title FROM news WHERE id = 1"),
        Box::from(*b"SELECT name FROM author WHERE id = 1"),
        Box::from(*b"SELECT title, name FROM news JOIN author ON author.id = news.author"),
    ];
    let reads = |tagged: &[&str], since| {
        let tagged: Vec<String> = tagged.iter().map(|name| (*name).to_owned()).collect();
        let (options, mode) = (None, SqlMode::default());
        let statements =
            RenderStatements { texts: &texts, options, mode, own: &[], tagged: &tagged };
        stage.footprints.depend(statements, since, (Timestamp(0), Timestamp(0)))
    };
    let since = stage.store.number();
    assert_eq!(reads(&[], since).expect("known").len(), 3);
    assert_eq!(reads(&["news", "elsewhere"], since).expect("known").len(), 2);
    assert_eq!(reads(&["news", "author"], since).expect("known").len(), 0);
    assert_eq!(stage.footprints.statements(), 0, "what is left out is released");
    // A row that changes during the render counts only for the statements that are not left out.
    let look = stage.look(stage.row("news", Some(&["1", "a", "9"]), Some(&["1", "b", "9"])));
    let opened = stage.open(&look);
    stage.settle(opened, look);
    let refused =
        |tagged: &[&str]| reads(tagged, since).map_err(|refused| refused.reason().as_str());
    assert_eq!(refused(&["author"]).err(), Some("reads-changed"));
    assert_eq!(refused(&["news", "author"]).map(|reads| reads.len()).ok(), Some(0));
}

#[test]
fn a_text_in_another_mode_is_another_statement() {
    let stage = Stage::new();
    let ansi = SqlMode { has_ansi_quotes: true, ..SqlMode::default() };
    let texts = [Box::from(*b"SELECT id FROM news WHERE \"title\" = 'a'")];
    let mut all = Vec::new();
    for mode in [SqlMode::default(), ansi, ansi] {
        let statements = RenderStatements { mode, ..of_texts(&texts) };
        let since = stage.store.number();
        let reads = stage.footprints.depend(statements, since, (Timestamp(0), Timestamp(0)));
        all.push(reads.expect("they are known"));
    }
    assert_eq!(stage.footprints.statements(), 2);
}

#[test]
fn pages_of_another_server_are_refused() {
    let footprints = Footprints::new(None, 1 << 20);
    footprints.follow_server(&"1".into());
    assert!(footprints.check_server("1").is_ok() && footprints.check_server("").is_ok());
    let refused = footprints.check_server("2").expect_err("another server");
    assert_eq!(refused.reason().as_str(), "reads-unknown");
    assert!(refused.to_string().contains("from the server 2"), "{refused}");
}
