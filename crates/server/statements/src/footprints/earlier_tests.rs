//! Pages of an earlier process: they are restored unless a row changed since that one of their statements reads.

use super::*;
use page_store::{NotRestored, RestoreSession, StoreRefusal, Worth};

const SIXTH: &str = "SELECT title FROM news WHERE id = 6";
const JOINED: &str = "SELECT news.title FROM news JOIN author ON author.id = news.author \
                      WHERE author.name = 'Ann'";

/// The content of a snapshot of an earlier process.
struct Saved {
    tables: u128,
    statements: Vec<(u128, Vec<u8>)>,
    /// The text of the statement of each page, and its key.
    pages: Vec<(&'static str, u128)>,
}

impl Saved {
    /// A process that has a page for each of these statements.
    fn of(texts: &[&'static str]) -> Saved {
        let stage = Stage::new();
        let depend = |text: &'static str| {
            let (texts, mode) = ([text.as_bytes().into()], SqlMode::default());
            let statements = RenderStatements { mode, ..of_texts(&texts) };
            let (now, made) = (stage.store.number(), (Timestamp(0), Timestamp(0)));
            (text, stage.footprints.depend(statements, now, made).expect("no change"))
        };
        let pages: Vec<_> = texts.iter().copied().map(depend).collect();
        let mut walk = stage.footprints.begin_walk().expect("the tables are known");
        let mut statements = Vec::new();
        while let Some(part) = stage.footprints.walk(&mut walk) {
            statements.extend(part);
        }
        let key = |(text, reads): &(&'static str, PageReads)| {
            (*text, stage.footprints.keys(reads, &walk).expect("the same tables")[0])
        };
        Saved { tables: walk.tables(), statements, pages: pages.iter().map(key).collect() }
    }

    /// The next process, before it follows the database.
    fn expected(&self) -> (Stage, RestoreSession<Payload>) {
        let stage = Stage::undefined();
        let restoring = stage.store.restoring(SITE);
        let mut earlier = stage.footprints.earlier(self.tables);
        self.statements.iter().for_each(|(key, bytes)| earlier.add(*key, bytes));
        stage.footprints.expect(earlier);
        (stage, restoring)
    }

    /// Restores the page with this statement. `None`: its statements are not known.
    fn restore(
        &self,
        stage: &Stage,
        restoring: &RestoreSession<Payload>,
        text: &str,
    ) -> Option<Result<(), NotRestored>> {
        let (_, key) = self.pages.iter().find(|(own, _)| *own == text).expect("a page");
        let reads = stage.footprints.restore(&[*key], false)?;
        let mut dependencies: Dependencies = stage.store.dependencies(SITE, text.as_bytes());
        for tag in reads.tags() {
            dependencies.tag(&tag);
        }
        let worth = Worth { uses: 0, is_proven: false };
        let key = stage.store.key(text.as_bytes());
        Some(restoring.restore(key, 0, &dependencies, Payload(Some(reads)), worth, None))
    }
}

const CHANGED: Option<Result<(), NotRestored>> =
    Some(Err(NotRestored::Refused(StoreRefusal::ChangedSince)));

#[test]
fn a_row_that_changed_meanwhile_keeps_its_pages_out_alone() {
    let saved = Saved::of(&[FIFTH, SIXTH]);
    let (stage, restoring) = saved.expected();
    assert!(saved.restore(&stage, &restoring, SIXTH).is_none(), "the tables are not known yet");
    stage.define(&[]);
    let look = stage.look(stage.retitle("5"));
    let opened = stage.open(&look);
    let refused = saved.restore(&stage, &restoring, FIFTH);
    assert_eq!(refused, Some(Err(NotRestored::Refused(StoreRefusal::Unsettled))));
    stage.settle(opened, look);
    assert_eq!(saved.restore(&stage, &restoring, FIFTH), CHANGED);
    assert_eq!(saved.restore(&stage, &restoring, SIXTH), Some(Ok(())));
    // The same statement is shared by a page that is rendered now.
    assert_eq!(stage.footprints.statements(), 2);
    stage.store(&stage.store.lease(), FIFTH).expect("the render has seen the change");
    assert_eq!(stage.footprints.statements(), 2);
    stage.store.drop_pages(&[ChangeTarget::Url(FIFTH.as_bytes())]);
    assert_eq!(stage.footprints.statements(), 2, "held for pages that are not restored yet");
    stage.footprints.end_restoring(Duration::ZERO);
    assert_eq!(stage.footprints.statements(), 1, "that of the page");
    let look = stage.look(stage.retitle("6"));
    let opened = stage.open(&look);
    assert!(!stage.has(SIXTH));
    stage.settle(opened, look);
    assert_eq!(stage.footprints.statements(), 0);
}

#[test]
fn pages_are_not_restored_for_other_tables() {
    let saved = Saved::of(&[FIFTH]);
    let (stage, restoring) = saved.expected();
    stage.define(&["visit"]);
    assert!(saved.restore(&stage, &restoring, FIFTH).is_none());
    assert_eq!(stage.footprints.statements(), 0);
    // They may also change while pages are restored.
    let (stage, restoring) = saved.expected();
    stage.define(&[]);
    assert_eq!(saved.restore(&stage, &restoring, FIFTH), Some(Ok(())));
    let (_, key) = saved.pages[0];
    let reads = stage.footprints.restore(&[key], false).expect("it is held");
    stage.define(&["visit"]);
    assert!(!stage.has(FIFTH));
    assert!(saved.restore(&stage, &restoring, FIFTH).is_none());
    let mut dependencies = stage.store.dependencies(SITE, b"/late");
    for tag in reads.tags() {
        dependencies.tag(&tag);
    }
    let worth = Worth { uses: 0, is_proven: false };
    let key = stage.store.key(b"/late");
    let late = restoring.restore(key, 0, &dependencies, Payload(Some(reads)), worth, None);
    assert_eq!(late, Err(NotRestored::Refused(StoreRefusal::ChangedSince)));
    stage.footprints.end_restoring(Duration::ZERO);
    assert_eq!(stage.footprints.statements(), 0);
}

#[test]
fn a_statement_that_is_not_in_the_snapshot_is_not_taken_from_another_page() {
    let mut saved = Saved::of(&[FIFTH, SIXTH]);
    let (_, key) = saved.pages[0];
    saved.statements.retain(|(own, _)| *own != key);
    let (stage, restoring) = saved.expected();
    stage.define(&[]);
    // Nothing found it when the row changed that the restored page would show.
    let look = stage.look(stage.retitle("5"));
    assert_eq!(look.tags().count(), 0);
    let opened = stage.open(&look);
    stage.settle(opened, look);
    stage.store(&stage.store.lease(), FIFTH).expect("the render has seen the change");
    assert!(saved.restore(&stage, &restoring, FIFTH).is_none());
    assert_eq!(saved.restore(&stage, &restoring, SIXTH), Some(Ok(())));
}

#[test]
fn a_partner_that_was_deleted_meanwhile_is_found_however_long_it_takes() {
    let saved = Saved::of(&[JOINED]);
    let (stage, restoring) = saved.expected();
    stage.define(&[]);
    // Both rows are gone. The first is looked for before the stream has the second.
    let news = stage.row("news", Some(&["5", "old", "1"]), None);
    let author = stage.row("author", Some(&["1", "Ann"]), None);
    let look = |change, seconds| {
        let mut partners = Partners(Some(Vec::new()));
        let now_ = Duration::from_secs(seconds);
        let look = now(stage.footprints.look(vec![change], &mut partners, now_));
        let opened = stage.open(&look);
        let touched = look.tags().count();
        stage.settle(opened, look);
        touched
    };
    assert_eq!(look(news, 1), 0);
    assert_eq!(look(author, 1_000), 1);
    assert_eq!(saved.restore(&stage, &restoring, JOINED), CHANGED);
}

#[test]
fn rows_are_kept_until_the_stream_has_caught_up() {
    let ended = |at: Option<u64>, later: u64| {
        let saved = Saved::of(&[JOINED]);
        let (stage, restoring) = saved.expected();
        stage.define(&[]);
        assert_eq!(saved.restore(&stage, &restoring, JOINED), Some(Ok(())));
        let look = |change, seconds| {
            let mut partners = Partners(Some(Vec::new()));
            let now_ = Duration::from_secs(seconds);
            now(stage.footprints.look(vec![change], &mut partners, now_)).tags().count()
        };
        assert_eq!(look(stage.row("news", Some(&["5", "old", "1"]), None), 1), 0);
        at.into_iter().for_each(|at| stage.footprints.end_restoring(Duration::from_secs(at)));
        look(stage.row("author", Some(&["1", "Ann"]), None), later)
    };
    assert_eq!((ended(None, 900), ended(Some(800), 829), ended(Some(800), 831)), (1, 1, 0));
}

#[test]
fn restoring_may_end_before_the_tables_are_known() {
    let saved = Saved::of(&[FIFTH]);
    let (stage, restoring) = saved.expected();
    stage.footprints.end_restoring(Duration::ZERO);
    stage.define(&[]);
    assert!(saved.restore(&stage, &restoring, FIFTH).is_none());
    assert_eq!(stage.footprints.statements(), 0);
    // Nothing is expected any more when they are known.
    let mut earlier = stage.footprints.earlier(saved.tables);
    saved.statements.iter().for_each(|(key, bytes)| earlier.add(*key, bytes));
    stage.footprints.expect(earlier);
    assert!(saved.restore(&stage, &restoring, FIFTH).is_none());
}

#[test]
fn statements_that_cannot_be_read_or_are_too_many_are_left_out() {
    let mut saved = Saved::of(&[FIFTH, SIXTH]);
    saved.statements[0].1 = b"no reads".to_vec();
    let (stage, restoring) = saved.expected();
    stage.define(&[]);
    assert!(saved.restore(&stage, &restoring, FIFTH).is_none());
    assert_eq!(stage.footprints.statements(), 0, "nothing behind it is read");
    let stage = Stage::undefined();
    let mut earlier = stage.footprints.earlier(saved.tables);
    for key in 0..100_000 {
        earlier.add(key, &saved.statements[1].1);
    }
    stage.footprints.expect(earlier);
    stage.define(&[]);
    let share = (16 << 20) / MEMORY_SHARE / STATEMENT_BYTES;
    assert!((1..=share).contains(&stage.footprints.statements()));
}

#[test]
fn a_page_keeps_that_it_depends_on_the_time() {
    let saved = Saved::of(&["SELECT NOW()"]);
    let (stage, _restoring) = saved.expected();
    stage.define(&[]);
    let (_, key) = saved.pages[0];
    let reads = stage.footprints.restore(&[key, key], true).expect("it is held");
    assert!(reads.is_timed && reads.len() == 1);
    assert!(stage.footprints.restore(&[key; 901], true).is_none());
    drop(reads);
    stage.footprints.end_restoring(Duration::ZERO);
    assert_eq!(stage.footprints.statements(), 0);
}
