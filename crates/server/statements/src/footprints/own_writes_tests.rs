//! The interleavings of the table in `own_writes`, with the store.

use super::*;

/// A page of these statements, in order, whose render has committed transactions.
fn store(
    stage: &Stage,
    lease: &page_store::Lease,
    texts: &[&str],
    own: &[(&str, usize)],
) -> Result<(), &'static str> {
    let statements: Vec<Box<[u8]>> = texts.iter().map(|text| text.as_bytes().into()).collect();
    let transaction =
        |(id, after): &(&str, usize)| OwnTransaction { id: (*id).into(), after: *after };
    let own: Vec<OwnTransaction> = own.iter().map(transaction).collect();
    let mode = SqlMode::default();
    let statements = RenderStatements { mode, own: &own, ..of_texts(&statements) };
    let reads = stage.footprints.depend(statements, lease.number(), (Timestamp(0), Timestamp(0)));
    let reads = reads.map_err(|refused| refused.reason().as_str())?;
    let mut dependencies: Dependencies = stage.store.dependencies(SITE, b"/page");
    for tag in reads.tags() {
        dependencies.tag(&tag);
    }
    let key = stage.store.key(b"/page");
    let stored = stage.store.insert(key, 0, &dependencies, lease, Payload(Some(reads)));
    stored.map(drop).map_err(|refused| refused.reason.as_str())
}

/// The rows of a transaction, applied and settled.
fn commit(stage: &Stage, id: &str, change: TableChange) {
    let rows = TransactionRows { id: Some(id.into()), rows: vec![change] };
    let look = now(stage.footprints.look(rows, &mut Partners::default(), Duration::ZERO));
    let opened = stage.open(&look);
    stage.settle(opened, look);
}

fn has(stage: &Stage) -> bool {
    !stage.store.peek(stage.store.key(b"/page")).as_slice().is_empty()
}

const WRITE: &str = "UPDATE news SET title = 'new' WHERE id = 5";
const T: &str = "0-1-7";

#[test]
fn a_page_that_reads_its_own_write_is_stored_and_purged_by_the_next_change() {
    for is_known in [false, true] {
        let stage = Stage::new();
        if is_known {
            // Another page has the statement, so its tag changes.
            stage.store(&stage.store.lease(), FIFTH).expect("nothing has changed");
        }
        let lease = stage.store.lease();
        commit(&stage, T, stage.retitle("5"));
        assert_eq!(store(&stage, &lease, &[WRITE, FIFTH], &[(T, 1)]), Ok(()), "{is_known}");
        assert!(has(&stage) && !stage.has(FIFTH));
        commit(&stage, "0-1-8", stage.retitle("6"));
        assert!(has(&stage), "another row");
        commit(&stage, "0-1-9", stage.retitle("5"));
        assert!(!has(&stage));
        assert_eq!(stage.footprints.statements(), 0, "nothing is left behind");
    }
}

#[test]
fn a_row_that_was_read_before_the_write_is_no_own_one() {
    let texts: [(&[&str], usize); 4] = [
        // A counter of views.
        (&[FIFTH, WRITE], 2),
        (&[FIFTH, WRITE, FIFTH], 2),
        // Another statement has read the row.
        (&["SELECT COUNT(*) FROM news WHERE title = 'old'", WRITE, FIFTH], 2),
        // It ran before the commit.
        (&["BEGIN", WRITE, FIFTH, "COMMIT"], 4),
    ];
    for (texts, after) in texts {
        let stage = Stage::new();
        let lease = stage.store.lease();
        commit(&stage, T, stage.retitle("5"));
        let stored = store(&stage, &lease, texts, &[(T, after)]);
        assert_eq!(stored, Err("reads-changed"), "{texts:?}");
        assert_eq!(stage.footprints.statements(), 0);
    }
}

#[test]
fn changes_of_others_count_before_and_after_the_own_write() {
    let of_page: [&[&str]; 4] = [&["0-2-1", T], &[T, "0-2-1"], &[T, ""], &["0-2-1"]];
    for order in of_page {
        let stage = Stage::new();
        let lease = stage.store.lease();
        order.iter().for_each(|id| commit(&stage, id, stage.retitle("5")));
        let stored = store(&stage, &lease, &[WRITE, FIFTH], &[(T, 1)]);
        assert_eq!(stored, Err("reads-changed"), "{order:?}");
    }
    // A change of the whole table is none of rows.
    let stage = Stage::new();
    let lease = stage.store.lease();
    let news = schema(&[]).table_id("news").expect("added");
    commit(&stage, T, TableChange::Table(news));
    let stored = store(&stage, &lease, &[WRITE, FIFTH], &[(T, 1)]);
    assert_eq!(stored, Err("reads-changed"));
}

#[test]
fn a_write_that_arrives_after_the_page_purges_it() {
    let stage = Stage::new();
    let lease = stage.store.lease();
    assert_eq!(store(&stage, &lease, &[WRITE, FIFTH], &[(T, 1)]), Ok(()));
    commit(&stage, T, stage.retitle("5"));
    assert!(!has(&stage));
}

/// The own write is not settled yet: only its own connection is known to see it.
#[test]
fn a_write_that_is_still_open_is_an_own_one_as_well() {
    let stage = Stage::new();
    let lease = stage.store.lease();
    let rows = TransactionRows { id: Some(T.into()), rows: vec![stage.retitle("5")] };
    let look = now(stage.footprints.look(rows, &mut Partners::default(), Duration::ZERO));
    let opened = stage.open(&look);
    assert_eq!(store(&stage, &lease, &[WRITE, FIFTH], &[(T, 1)]), Ok(()));
    stage.settle(opened, look);
    assert!(has(&stage));
}

/// A deleted row of somebody else that is held back is released with the rows of the own transaction.
#[test]
fn a_row_that_is_released_with_an_own_write_is_no_own_one() {
    let texts = ["SELECT option_value FROM wp_options WHERE option_name = '_transient_a'", FIFTH];
    for (is_held, expected) in [(false, Ok(())), (true, Err("reads-changed"))] {
        let stage = Stage::new();
        if is_held {
            let deleted = stage.row("wp_options", Some(&["_transient_a", "1"]), None);
            commit(&stage, "0-2-1", deleted);
        }
        let lease = stage.store.lease();
        let rows = TransactionRows { id: Some(T.into()), rows: vec![stage.retitle("5")] };
        let late = Duration::from_secs(10);
        let look = now(stage.footprints.look(rows, &mut Partners::default(), late));
        let opened = stage.open(&look);
        stage.settle(opened, look);
        assert_eq!(store(&stage, &lease, &texts, &[(T, 0)]), expected);
    }
}
