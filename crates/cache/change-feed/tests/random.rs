//! Random rules, rows and foreign keys, checked by a simple oracle: a small database that executes the
//! foreign keys row by row and knows the tags of every row before and after. Every change in it must be
//! touched, although only the parent's row is reported.

mod common;

use change_feed::schema::{Action, Schema};
use change_feed::{Feed, Rules, TouchedTags};
use common::{Row, foreign_key, rule, table};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// The tables t0 to t3, each with `id`, `up` (a foreign key to the previous table) and `own`.
const TABLES: usize = 4;

#[derive(Clone, Debug, PartialEq, Eq)]
struct StoredRow {
    id: u8,
    up: Option<u8>,
    own: u8,
}

type Database = Vec<BTreeMap<u8, StoredRow>>;

fn delete(database: &mut Database, actions: &[Action], table: usize, id: u8) {
    database[table].remove(&id);
    if table + 1 == TABLES {
        return;
    }
    let children: Vec<u8> =
        database[table + 1].values().filter(|row| row.up == Some(id)).map(|row| row.id).collect();
    for child in children {
        match actions[table] {
            Action::Cascade => delete(database, actions, table + 1, child),
            Action::Set => database[table + 1].get_mut(&child).expect("it is there").up = None,
            Action::Refuse => {}
        }
    }
}

/// The tags of the rows of a database, each with the row itself, so that changes are visible.
fn tags(database: &Database) -> BTreeSet<(String, String)> {
    let mut all = BTreeSet::new();
    for (table, rows) in database.iter().enumerate() {
        for row in rows.values() {
            all.insert((format!("t{table}"), format!("{row:?}")));
            all.insert((format!("t{table}:{}:{}", row.id, row.own), format!("{row:?}")));
            if let Some(up) = row.up {
                all.insert((format!("up{table}:{up}"), format!("{row:?}")));
            }
        }
    }
    all
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![Just(Action::Refuse), Just(Action::Cascade), Just(Action::Set)]
}

proptest! {
    #[test]
    fn every_change_by_a_cascade_is_touched(
        actions in prop::collection::vec(action(), TABLES - 1),
        rows in prop::collection::vec((0..TABLES, 0u8..4, prop::option::of(0u8..4), 0u8..3), 1..20),
        table_of in 0..TABLES,
        id in 0u8..4,
    ) {
        let mut schema = Schema::default();
        let mut rules = Vec::new();
        for at in 0..TABLES {
            let name = format!("t{at}");
            schema.add(table(&name, &["id", "up", "own"]));
            let (row, up) = (format!("t{at}:{{id}}:{{own}}"), format!("up{at}:{{up}}"));
            rules.push(rule(&name, &[&name, &up]));
            let mut narrow = rule(&name, &[&row]);
            // Stands for all of them.
            narrow.any_row = vec![format!("any{at}")];
            rules.push(narrow);
        }
        for (at, action) in actions.iter().enumerate() {
            let (child, parent) = (format!("t{}", at + 1), format!("t{at}"));
            schema.foreign_keys.push(foreign_key(&child, "up", &parent, *action));
        }
        let mut before: Database = vec![BTreeMap::new(); TABLES];
        for (at, id, up, own) in rows {
            before[at].insert(id, StoredRow { id, up, own });
        }
        let Some(row) = before[table_of].get(&id).cloned() else { return Ok(()) };
        let mut after = before.clone();
        delete(&mut after, &actions, table_of, id);

        let feed = Feed::new(&Rules::compile(&rules).expect("rules"), &schema);
        let mut touched = TouchedTags::default();
        let up = row.up.map(|up| up.to_string());
        let (id, own) = (row.id.to_string(), row.own.to_string());
        let mut cells = vec![("id", id.as_str()), ("own", own.as_str())];
        if let Some(up) = &up {
            cells.push(("up", up));
        }
        feed.row(&format!("t{table_of}"), &Row::delete(&cells), &mut touched);
        let told: BTreeSet<&str> = touched.tags().collect();
        let (old, new) = (tags(&before), tags(&after));
        for (tag, row) in old.symmetric_difference(&new) {
            let any = tag.split(':').next().unwrap_or_default().replace('t', "any");
            let found = told.contains(tag.as_str())
                || told.contains(any.as_str())
                || touched.is_everything();
            prop_assert!(found, "{tag} of {row} is not touched: {told:?}");
        }
    }

    #[test]
    fn no_text_of_a_tag_panics(text in "\\PC{0,40}") {
        let _ = Rules::compile(&[rule("t", &[&text])]);
    }
}
