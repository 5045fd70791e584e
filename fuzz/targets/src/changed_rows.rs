//! The path from a binary log to the tags of its rows, with rules, foreign keys and a schema, as in the server; and to
//! the rows themselves, for automatic dependencies.
//!
//! The data is a recorded stream as in [`super::change_stream`]. For any input, nothing panics, and the number
//! and length of a transaction's tags stay within their limits. A row has at most the columns of its table.

use super::change_stream::{LIMITS, column, packets};
use change_feed::schema::{Action, Column, ForeignKey, Schema, TableDefinition};
use change_feed::{ChangeRule, Feed, Rules};
use databases::{MariaDbChanges, MariaDbFollowedTables, MariaDbListedTable, MariaDbTables};
use footprint::{SqlValue, TableChange};
use mysql_replication::position::{GtidList, GtidSet, Start};
use mysql_replication::schema::TableShape;
use mysql_replication::{Step, Transactions};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, LazyLock};

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
        is_primary_key: name == "id",
        is_loosely_equal: false,
        is_generated: false,
        is_text: true,
        collation: None,
    };
    let mut schema = Schema::default();
    for name in ["types", "t", "m"] {
        schema.add(TableDefinition {
            name: name.to_owned(),
            is_view: false,
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

/// Two of the recorded tables. The second refers to the first.
fn shapes() -> (HashMap<String, Arc<TableShape>>, MariaDbFollowedTables) {
    let parent = vec![column("id", "int(10) unsigned"), column("a", "enum('x','y')")];
    let parent = Arc::new(TableShape::new(parent));
    let child = Arc::new(TableShape::new(vec![column("a", "int(11)")]));
    let (kind, engine) = ("BASE TABLE", "InnoDB");
    let table = |name, shape| MariaDbListedTable { name, kind, engine, shape: Some(shape) };
    let key = ForeignKey {
        child: "m".to_owned(),
        columns: vec!["a".to_owned()],
        parent: "tt".to_owned(),
        parent_columns: vec!["id".to_owned()],
        on_delete: Action::Cascade,
        on_update: Action::Set,
    };
    let listed = [table("tt", &parent), table("m", &child)];
    let followed = MariaDbFollowedTables::new("news", &listed, &[key], &BTreeMap::new());
    (HashMap::from([("tt".to_owned(), parent), ("m".to_owned(), child)]), followed)
}

/// The tags of a stream. Each of the 3 tables has at most 2 in its rules.
fn touched(data: &[u8], start: &Start) {
    let (shapes, followed) = shapes();
    let schema = followed.schema().clone();
    let tables =
        MariaDbTables::new("news".to_owned(), FEED.clone(), shapes, Some(followed), HashSet::new());
    let mut transactions = Transactions::new(start, LIMITS, tables);
    for packet in packets(data) {
        let Ok(step) = transactions.read(&packet) else { break };
        let Step::Transaction(transaction) = step else { continue };
        let mut changes = MariaDbChanges::default();
        for change in &transaction.changes {
            transactions.watch().touch(change, &mut changes);
        }
        let MariaDbChanges { touched, rows } = changes;
        for change in rows.into_changes() {
            let TableChange::Row(event) = change else { continue };
            let columns = schema.table(event.table).columns.len() as u16;
            assert!(event.images().all(|row| *row.get(columns) == SqlValue::Unknown));
            assert!(event.images().count() > 0);
        }
        let longest = touched.tags().map(str::len).max().unwrap_or_default();
        assert!(touched.tags().count() <= 10_000 + 6 && longest <= 1024, "{longest}");
    }
}
