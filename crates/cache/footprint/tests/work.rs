//! The work for texts that visitors choose: in steps, or in what can be counted, never in time.

use footprint::schema::{SqlColumn, SqlSchema};
use footprint::{
    Index, MatchBudget, RowEvent, SqlMode, SqlRow, SqlValue, StatementCandidate, StatementReader,
};
use std::sync::Arc;

fn schema() -> Arc<SqlSchema> {
    let mut schema = SqlSchema::new("blog");
    let text = |name: &str| SqlColumn::new(name, "longtext", Some("utf8mb4_unicode_520_ci"), "");
    let id = SqlColumn::new("id", "bigint(20)", None, "PRI");
    schema.add("comment", vec![id, text("content"), text("author")]);
    Arc::new(schema)
}

fn comment(schema: &SqlSchema, content: &str) -> RowEvent<'static> {
    let table = schema.table_id("comment").expect("added");
    let text = |text: &str| SqlValue::Text(text.to_owned().into());
    let row = SqlRow::new(vec![text("7"), text(content), text("Ann")]);
    RowEvent::new(schema, table, None, Some(row))
}

/// The steps for a row, and the number of statements that it touches.
fn steps(searches: &[String], content: &str) -> (u64, usize) {
    let schema = schema();
    let (mut reader, mut index) =
        (StatementReader::new(schema.clone()), Index::new(schema.clone()));
    for (search, key) in searches.iter().zip(0..) {
        let text = format!(
            "SELECT id FROM comment WHERE content LIKE '%{search}%' OR author LIKE '%{search}%'"
        );
        let reads = reader.read(text.as_bytes(), SqlMode::default()).expect("known");
        index.acquire(key, || reads);
    }
    let event = comment(&schema, content);
    let keys = Index::keys_of(&schema, index.hasher(), &event);
    let mut budget = MatchBudget::of_row();
    let touched =
        index.candidates(&event, &keys).into_iter().filter(|id| match index.candidate(*id) {
            Some(StatementCandidate::Statement(_, reads)) => {
                reads.touched_within(&event, &mut budget)
            }
            Some(StatementCandidate::Group(_)) | None => panic!("no group"),
        });
    let touched = touched.count();
    (budget.done(), touched)
}

/// A text of `words` words. None of them is a search of the tests.
fn prose(words: usize) -> String {
    (0..words).map(|at| format!("word{at} of this comment, ")).collect()
}

#[test]
fn many_searches_read_a_long_comment_once() {
    let content = prose(2_500);
    assert!(content.len() > 50_000);
    let searches: Vec<String> = (0..6_552).map(|at| format!("lantern{at}")).collect();
    let (done, touched) = steps(&searches, &content);
    assert_eq!(touched, 0);
    // Some passes over the comment for its forms, and some steps for each search.
    assert!(done < 20 * content.len() as u64 + 100 * searches.len() as u64, "{done}");
}

#[test]
fn searches_that_were_made_to_be_slow_do_not_multiply() {
    let searches: Vec<String> = (0..100).map(|at| format!("{}b{at}", "a".repeat(1_400))).collect();
    let content = format!("{}b", "a".repeat(60_000));
    let (done, touched) = steps(&searches, &content);
    // 100 searches of 1,400 letters in 60,000 would be 8,400,000,000 comparisons.
    assert!(done < 40_000_000, "{done}");
    assert_eq!(touched, 0);
}

#[test]
fn statements_beyond_the_budget_count_as_touched() {
    // Each search has the parts of the comment and is not in it, so that the comment is searched for each.
    let content = "abcdefgh cdefghabcd efghabcdefab ghabcdefgh ".repeat(1_500);
    let searches: Vec<String> =
        (0..2_000).map(|at| format!("{}{at}", "abcdefgh".repeat(9))).collect();
    let (done, touched) = steps(&searches, &content);
    assert!(done < 17 << 20, "{done}");
    assert!(touched > 1_000, "{touched}");
}

/// A part of a row's budget never makes a statement untouched that the whole budget shows to be touched.
#[test]
fn a_smaller_budget_untouches_nothing() {
    let schema = schema();
    let mut reader = StatementReader::new(schema.clone());
    let table = schema.table_id("comment").expect("added");
    let row = |author: &str| {
        let text = |text: &str| SqlValue::Text(text.to_owned().into());
        SqlRow::new(vec![text("7"), text("a lantern, and some other words"), text(author)])
    };
    let event = RowEvent::new(&schema, table, Some(row("Ann")), Some(row("Bob")));
    for condition in [
        "content LIKE '%lantern%' AND author = 'Ann'",
        "content LIKE '%lantern%' AND id = 7 AND author <> 'Bob'",
        "(content LIKE '%lantern%' OR content LIKE '%l_mp%') AND author LIKE 'A%'",
        "content NOT LIKE '%lamp%' AND (author = 'Ann' OR author = 'Eve')",
        "NOT (content LIKE '%lamp%' OR author = 'Bob')",
        "content LIKE '%lan_ern%words' AND author IN ('Ann', 'Cid', 'Dan')",
        "content BETWEEN 'a' AND 'b' AND author < 'B'",
    ] {
        let text = format!("SELECT id FROM comment WHERE {condition}");
        let reads = reader.read(text.as_bytes(), SqlMode::default()).expect("known");
        let mut whole = MatchBudget::of_row();
        assert!(reads.touched_within(&event, &mut whole), "{condition}");
        for steps in 0..whole.done() + 2 {
            let mut budget = MatchBudget::new(steps);
            assert!(reads.touched_within(&event, &mut budget), "{condition}: {steps} steps");
        }
    }
}
