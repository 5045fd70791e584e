//! The path from a binary log to the tags of its rows, with rules, foreign keys and a schema, as in the server.
//!
//! The data is a recorded stream as in [`super::change_stream`]. For any input, nothing panics, and the number
//! and length of a transaction's tags stay within their limits.

use super::change_stream::{LIMITS, packets};
use change_feed::schema::{
    Action, Column, Equality, ForeignKey, KeyPart, Schema, TableDefinition, TableKind,
};
use change_feed::{ChangeRule, Feed, Rules, TouchedTags};
use change_sources::MariaDbTables;
use mysql_replication::position::{GtidList, GtidSet, Start};
use mysql_replication::{Step, Transactions};
use std::collections::HashMap;
use std::sync::LazyLock;

/// Rules for the tables of the recordings, and a schema in which one refers to the other.
static FEED: LazyLock<Feed> = LazyLock::new(|| {
    let rule = |table: &str, tag: &str| ChangeRule {
        table: table.to_owned(),
        tags: vec![table.to_owned(), tag.to_owned()],
        when_changed: vec!["id".to_owned()],
        any_row: vec![format!("any-{table}")],
        ..ChangeRule::default()
    };
    let rules = [rule("types", "types:{id}:{a}"), rule("t", "t:{id}"), rule("m", "m:{a}")];
    let column = |name: &str| Column {
        name: name.to_owned(),
        key: if name == "id" { KeyPart::Primary } else { KeyPart::None },
        equality: Equality::AsWritten,
        is_generated: false,
        is_text: true,
        collation: None,
    };
    let mut schema = Schema::default();
    for name in ["types", "t", "m"] {
        schema.add(TableDefinition {
            name: name.to_owned(),
            kind: TableKind::Table,
            columns: ["id", "a"].map(column).to_vec(),
        });
    }
    schema.foreign_keys.push(ForeignKey {
        child: "t".to_owned(),
        columns: vec!["id".to_owned()],
        parent: "types".to_owned(),
        parent_columns: vec!["id".to_owned()],
        on_delete: Action::Cascade,
        on_update: Action::Set,
    });
    let rules = Rules::compile(&rules).expect("rules that can be used");
    Feed::new(&rules, &schema)
});

/// Runs the whole path, from each kind of start.
pub fn run(data: &[u8]) {
    for start in [Start::MariaDb(GtidList::default()), Start::MySql(GtidSet::default())] {
        touched(data, &start);
    }
}

/// The tags of a stream. Each of the 3 tables has at most 2 in its rules.
fn touched(data: &[u8], start: &Start) {
    let tables = MariaDbTables::new("news".to_owned(), FEED.clone(), HashMap::new());
    let mut transactions = Transactions::new(start, LIMITS, tables);
    for packet in packets(data) {
        let Ok(step) = transactions.read(&packet) else { break };
        let Step::Transaction(transaction) = step else { continue };
        let mut touched = TouchedTags::default();
        for change in &transaction.changes {
            transactions.watch().touch(change, &mut touched);
        }
        let longest = touched.tags().map(str::len).max().unwrap_or_default();
        assert!(touched.tags().count() <= 10_000 + 6 && longest <= 1024, "{longest}");
    }
}
