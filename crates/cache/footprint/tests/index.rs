//! The index finds exactly the statements that a row touches: beside the plain search through all of them.

use footprint::schema::{SqlColumn, SqlSchema};
use footprint::{Index, RowEvent, SqlMode, SqlRow, SqlValue, StatementId, StatementReader};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const COLLATION: Option<&str> = Some("utf8mb4_unicode_520_ci");

fn schema() -> Arc<SqlSchema> {
    let mut schema = SqlSchema::new("site");
    let columns = vec![
        SqlColumn::new("id", "bigint(20)", None, "PRI"),
        SqlColumn::new("author", "int(11)", None, "MUL"),
        SqlColumn::new("status", "varchar(20)", COLLATION, ""),
        SqlColumn::new("title", "text", COLLATION, ""),
    ];
    schema.add("post", columns);
    Arc::new(schema)
}

/// A statement about a few values, so that many rows touch it and many do not.
fn statement() -> impl Strategy<Value = String> {
    let test = prop_oneof![
        (0..6).prop_map(|id| format!("id = {id}")),
        proptest::collection::vec(0..6, 1..4).prop_map(|ids| format!(
            "id IN ({})",
            ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        )),
        (0..3).prop_map(|author| format!("author = {author}")),
        (0..6).prop_map(|id| format!("id < {id}")),
        prop_oneof!["draft", "publish", "Públish"]
            .prop_map(|status| format!("status = '{status}'")),
        Just("title LIKE '%a%'".to_owned()),
        (0..3).prop_map(|author| format!("(author = {author} OR status = 'draft')")),
        Just("author IS NULL".to_owned()),
    ];
    let columns = prop_oneof![Just("id"), Just("title"), Just("COUNT(*)"), Just("*")];
    (columns, proptest::collection::vec(test, 0..3)).prop_map(|(columns, tests)| {
        let condition = if tests.is_empty() { "1 = 1".to_owned() } else { tests.join(" AND ") };
        format!("SELECT {columns} FROM post WHERE {condition}")
    })
}

fn row() -> impl Strategy<Value = SqlRow<'static>> {
    let text = |text: &'static str| SqlValue::Text(text.into());
    let author = prop_oneof![
        4 => (0..3).prop_map(|author: i32| SqlValue::Text(author.to_string().into())),
        1 => Just(SqlValue::Null),
        1 => Just(SqlValue::Unknown),
    ];
    let status = prop_oneof![
        Just(text("draft")),
        Just(text("PUBLISH")),
        Just(text("públish")),
        Just(text("発行"))
    ];
    let title = prop_oneof![Just(text("a title")), Just(text("none")), Just(SqlValue::Unknown)];
    (0..6, author, status, title).prop_map(|(id, author, status, title): (i32, _, _, _)| {
        SqlRow::new(vec![SqlValue::Text(id.to_string().into()), author, status, title])
    })
}

fn event() -> impl Strategy<Value = (Option<SqlRow<'static>>, Option<SqlRow<'static>>)> {
    prop_oneof![
        row().prop_map(|row| (None, Some(row))),
        row().prop_map(|row| (Some(row), None)),
        (row(), row()).prop_map(|(before, after)| (Some(before), Some(after))),
    ]
}

proptest! {
    #[test]
    fn the_index_finds_the_same_statements_as_a_full_search(
        steps in proptest::collection::vec((statement(), any::<bool>()), 1..40),
        events in proptest::collection::vec(event(), 1..8),
    ) {
        let schema = schema();
        let mut reader = StatementReader::new(schema.clone());
        let mut index = Index::new(schema.clone());
        let mut used: BTreeMap<StatementId, usize> = BTreeMap::new();
        let mut keys: Vec<String> = Vec::new();
        for (text, is_kept) in steps {
            let key = keys.iter().position(|known| *known == text).unwrap_or_else(|| {
                keys.push(text.clone());
                keys.len() - 1
            });
            let reads = reader.read(text.as_bytes(), SqlMode::default()).expect("known");
            let id = index.acquire(key as u128, || reads);
            *used.entry(id).or_default() += 1;
            if !is_kept {
                let last = *used.keys().next().expect("one");
                index.release(last);
                let users = used.get_mut(&last).expect("used");
                *users -= 1;
                if *users == 0 {
                    used.remove(&last);
                }
            }
        }
        prop_assert_eq!(index.len(), used.len());
        let table = schema.table_id("post").expect("added");
        for (before, after) in events {
            let event = RowEvent::new(&schema, table, before, after);
            let touches = |id: &&StatementId| {
                let reads = index.reads(**id).expect("used");
                reads.footprints().any(|footprint| footprint.touch(&event).is_some())
            };
            let expected: BTreeSet<StatementId> = used.keys().filter(touches).copied().collect();
            prop_assert_eq!(index.touched(&event), expected);
        }
        let of_table: BTreeSet<StatementId> = index.of_table(table).into_iter().collect();
        prop_assert_eq!(of_table, used.keys().copied().collect::<BTreeSet<_>>());
    }
}
