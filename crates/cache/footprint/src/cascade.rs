//! Changes that the database makes by itself, and that its stream does not report: the actions of foreign
//! keys.
//!
//! A change of a parent counts as a change of its children. Of a child's row only the columns of the key are
//! known; they have the parent's value. The rest of the row is unknown, and touches all footprints that it may
//! touch. Sources: MySQL 8.4 manual, "FOREIGN KEY Constraints"; MariaDB, "Foreign Keys". Not here: triggers,
//! whose changes are in the stream.

use crate::row::{RowEvent, SqlRow, SqlValue};
use crate::schema::{ChildAction, Columns, ForeignKeyAction, SqlSchema, TableId};
use std::collections::{BTreeSet, VecDeque};

/// The maximum number of changes that follow from one. Cycles of keys end here, too.
const FOLLOWING_MAX: usize = 256;

impl RowEvent<'_> {
    /// The changes of rows that the database makes because of this one: those of children, of their
    /// children, and so on. `None` if there are too many; then the children's tables changed as a whole.
    #[must_use]
    pub fn following(&self, schema: &SqlSchema) -> Option<Vec<RowEvent<'static>>> {
        let mut following = Vec::new();
        let mut open: VecDeque<RowEvent<'static>> = VecDeque::new();
        open.extend(children(self, schema));
        while let Some(event) = open.pop_front() {
            if following.len() >= FOLLOWING_MAX {
                return None;
            }
            open.extend(children(&event, schema));
            following.push(event);
        }
        Some(following)
    }
}

impl SqlSchema {
    /// The tables whose rows the database may change because rows of this table change: the children, their
    /// children, and so on. The table itself is among them only if it follows from itself.
    #[must_use]
    pub fn following_tables(&self, table: TableId) -> BTreeSet<TableId> {
        let acts = |key: &&ForeignKeyAction| {
            [key.on_delete, key.on_update].iter().any(|action| *action != ChildAction::None)
        };
        let (mut following, mut open) = (BTreeSet::new(), vec![table]);
        while let Some(parent) = open.pop() {
            for key in self.foreign_keys.iter().filter(|key| key.parent == parent).filter(acts) {
                if following.insert(key.child) {
                    open.push(key.child);
                }
            }
        }
        following
    }
}

fn children<'s>(
    event: &'s RowEvent<'_>,
    schema: &'s SqlSchema,
) -> impl Iterator<Item = RowEvent<'static>> + 's {
    let keys = schema.foreign_keys.iter().filter(|key| key.parent == event.table);
    keys.filter_map(|key| child(key, event, schema))
}

/// The change of a child's row, if the key acts on this change of its parent.
fn child(
    key: &ForeignKeyAction,
    event: &RowEvent<'_>,
    schema: &SqlSchema,
) -> Option<RowEvent<'static>> {
    let before = event.before.as_ref()?;
    let is_referenced = |column: &u16| event.changed.contains(usize::from(*column));
    let action = match &event.after {
        None => key.on_delete,
        Some(_) if key.parent_columns.iter().any(is_referenced) => key.on_update,
        Some(_) => ChildAction::None,
    };
    let after = match (action, &event.after) {
        (ChildAction::None, _) => return None,
        (ChildAction::Follow, None) => None,
        (ChildAction::Follow, Some(after)) => {
            Some(child_row(key, schema, |column| parent_value(after, column)))
        }
        (ChildAction::SetNull, _) => Some(child_row(key, schema, |_| SqlValue::Null)),
    };
    let before = Some(child_row(key, schema, |column| parent_value(before, column)));
    Some(RowEvent { table: key.child, before, after, changed: Columns::ALL })
}

/// A row of the child. Only the columns of the key are known, by the columns of the parent.
fn child_row(
    key: &ForeignKeyAction,
    schema: &SqlSchema,
    value: impl Fn(u16) -> SqlValue<'static>,
) -> SqlRow<'static> {
    let of = |at: usize| {
        let place = key.columns.iter().position(|column| usize::from(*column) == at);
        let parent = place.and_then(|place| key.parent_columns.get(place));
        parent.map_or(SqlValue::Unknown, |column| value(*column))
    };
    SqlRow::new((0..schema.table(key.child).columns.len()).map(of).collect())
}

/// The value of the parent, if the child's is written identically. Texts may differ and still be equal.
fn parent_value(row: &SqlRow<'_>, column: u16) -> SqlValue<'static> {
    match row.get(column) {
        SqlValue::Text(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => {
            SqlValue::Text(text.clone().into_owned().into())
        }
        SqlValue::Text(_) | SqlValue::Unknown => SqlValue::Unknown,
        SqlValue::Null => SqlValue::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::SqlColumn;
    use crate::{SqlMode, StatementReader};
    use std::sync::Arc;

    /// Comments of posts, and votes on comments; both follow their parent.
    fn schema() -> Arc<SqlSchema> {
        let mut schema = SqlSchema::new("site");
        let number = |name: &str, key: &str| SqlColumn::new(name, "int(11)", None, key);
        schema.add("post", vec![number("id", "PRI"), number("views", "")]);
        schema.add(
            "comment",
            vec![number("id", "PRI"), number("post_id", "MUL"), number("karma", "")],
        );
        schema.add("vote", vec![number("comment_id", "MUL")]);
        let id = |name: &str| schema.table_id(name).expect("added");
        let (post, comment, vote) = (id("post"), id("comment"), id("vote"));
        let key = |child, column, parent| ForeignKeyAction {
            child,
            columns: vec![column],
            parent,
            parent_columns: vec![0],
            on_delete: ChildAction::Follow,
            on_update: ChildAction::SetNull,
        };
        schema.add_foreign_key(key(comment, 1, post));
        schema.add_foreign_key(key(vote, 0, comment));
        Arc::new(schema)
    }

    fn row(values: &[&'static str]) -> SqlRow<'static> {
        SqlRow::new(values.iter().map(|value| SqlValue::Text((*value).into())).collect())
    }

    #[test]
    fn a_change_of_a_parent_touches_reads_of_its_children() {
        let schema = schema();
        let mut reader = StatementReader::new(schema.clone());
        let post = schema.table_id("post").expect("added");
        let deleted = RowEvent::new(&schema, post, Some(row(&["5", "1"])), None);
        let viewed = RowEvent::new(&schema, post, Some(row(&["5", "1"])), Some(row(&["5", "2"])));
        let renamed = RowEvent::new(&schema, post, Some(row(&["5", "1"])), Some(row(&["8", "1"])));
        for (statement, event, expected) in [
            ("SELECT id FROM comment WHERE post_id = 5", &deleted, true),
            ("SELECT id FROM comment WHERE post_id = 6", &deleted, false),
            ("SELECT COUNT(*) FROM comment WHERE karma > 3", &deleted, true),
            ("SELECT COUNT(*) FROM vote WHERE comment_id = 70", &deleted, true),
            ("SELECT id FROM comment WHERE post_id = 5", &viewed, false),
            ("SELECT id FROM comment WHERE post_id = 5", &renamed, true),
            ("SELECT id FROM comment WHERE post_id = 8", &renamed, false),
            ("SELECT id FROM comment WHERE post_id IS NULL", &renamed, true),
        ] {
            let reads = reader.read(statement.as_bytes(), SqlMode::default()).expect("known");
            let following = event.following(&schema).expect("few");
            assert_eq!(
                following.iter().any(|event| reads.touched_by(event)),
                expected,
                "{statement}"
            );
        }
    }

    #[test]
    fn the_tables_that_follow_are_those_of_all_generations() {
        let schema = schema();
        let names = |table: &str| {
            let table = schema.table_id(table).expect("added");
            let following = schema.following_tables(table).into_iter();
            following.map(|id| schema.table(id).name.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(names("post"), ["comment", "vote"]);
        assert_eq!(names("comment"), ["vote"]);
        assert!(names("vote").is_empty());
    }

    #[test]
    fn a_cycle_of_keys_ends() {
        let mut schema = SqlSchema::new("site");
        schema.add(
            "node",
            vec![
                SqlColumn::new("id", "int(11)", None, "PRI"),
                SqlColumn::new("parent", "int(11)", None, "MUL"),
            ],
        );
        let node = schema.table_id("node").expect("added");
        schema.add_foreign_key(ForeignKeyAction {
            child: node,
            columns: vec![1],
            parent: node,
            parent_columns: vec![0],
            on_delete: ChildAction::Follow,
            on_update: ChildAction::SetNull,
        });
        let event = RowEvent::new(&schema, node, Some(row(&["1", "0"])), None);
        assert!(event.following(&schema).is_none());
        assert_eq!(schema.following_tables(node), BTreeSet::from([node]));
    }
}
