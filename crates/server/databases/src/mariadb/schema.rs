//! Reads the schema of a database. The stream needs it, because events lack column names and
//! signedness; the rules need it too.
//!
//! Sources: MariaDB's manual, "Information Schema COLUMNS, TABLES, KEY_COLUMN_USAGE,
//! REFERENTIAL_CONSTRAINTS". Foreign keys between databases are not followed (`untracked`).

use super::connection::Connection;
use super::followed::{FollowedTables, ListedTable};
use super::untracked::{OutsideKey, UntrackedReason, untracked};
use crate::stream_types::RowDetail;
use change_feed::schema::{Action, Column, ForeignKey, Schema, TableDefinition};
use database_links::fault::ConnectionError;
use footprint::sql_text::put_name;
use mysql_replication::schema::{ColumnShape, TableShape, columns_query};
use mysql_wire::query::QueryLimits;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

const TABLES: &str = "SELECT TABLE_NAME, TABLE_TYPE, ENGINE FROM information_schema.TABLES \
     WHERE TABLE_SCHEMA = DATABASE() ORDER BY TABLE_NAME";
const KEYS: &str = "SELECT k.TABLE_NAME, k.CONSTRAINT_NAME, k.COLUMN_NAME, \
     k.REFERENCED_TABLE_NAME, k.REFERENCED_COLUMN_NAME, r.DELETE_RULE, r.UPDATE_RULE, \
     k.REFERENCED_TABLE_SCHEMA, DATABASE() \
     FROM information_schema.KEY_COLUMN_USAGE k \
     LEFT JOIN information_schema.REFERENTIAL_CONSTRAINTS r \
     ON r.CONSTRAINT_SCHEMA = k.CONSTRAINT_SCHEMA AND r.TABLE_NAME = k.TABLE_NAME \
     AND r.CONSTRAINT_NAME = k.CONSTRAINT_NAME \
     WHERE k.TABLE_SCHEMA = DATABASE() AND k.REFERENCED_TABLE_SCHEMA IS NOT NULL \
     ORDER BY k.TABLE_NAME, k.CONSTRAINT_NAME, k.ORDINAL_POSITION";

/// Table definitions as the stream needs them, by lower-case name.
pub type Shapes = HashMap<String, Arc<TableShape>>;

/// The tables of a database.
pub struct TableDefinitions {
    /// Their form for the rules.
    pub schema: Schema,
    /// Their form for the stream.
    pub shapes: Shapes,
    /// Their form for changed rows with values, if those are reported.
    pub followed: Option<FollowedTables>,
    /// The tables whose rows can change without an event, each with the reason.
    pub untracked: BTreeMap<String, UntrackedReason>,
}

/// Queries the tables of a database.
///
/// # Errors
/// A query failed, or its result is invalid.
pub async fn read(
    connection: &mut Connection,
    name: &str,
    detail: RowDetail,
) -> Result<TableDefinitions, ConnectionError> {
    let rows = connection.query(&columns_query(name, None)).await?;
    let read = TableShape::read_all(&rows);
    let read =
        read.map_err(|refusal| ConnectionError::Said(refusal.as_str(), refusal.to_string()))?;
    let mut shapes: Shapes =
        read.into_iter().map(|((_, table), shape)| (table, Arc::new(shape))).collect();
    let rows = connection.query(TABLES).await?;
    let text = |row, column| rows.text(row, column).unwrap_or_default();
    let listed: Vec<(String, String, String)> =
        (0..rows.rows.len()).map(|row| (text(row, 0), text(row, 1), text(row, 2))).collect();
    let mut schema = Schema::default();
    for (table, kind, _) in &listed {
        let columns = shapes.get(table).map(|shape| shape.columns()).unwrap_or_default();
        let columns = columns.iter().map(column).collect();
        let is_view = kind.contains("VIEW");
        schema.add(TableDefinition { name: table.clone(), is_view, columns });
    }
    let outside;
    (schema.foreign_keys, outside) = foreign_keys(connection).await?;
    let listed: Vec<ListedTable<'_>> = listed
        .iter()
        .map(|(name, kind, engine)| {
            let shape = shapes.get(name).map(AsRef::as_ref);
            ListedTable { name, kind, engine, shape }
        })
        .collect();
    let untracked = untracked(&listed, &schema.foreign_keys, &outside);
    let followed = match detail {
        RowDetail::Values => {
            Some(FollowedTables::new(name, &listed, &schema.foreign_keys, &untracked))
        }
        RowDetail::Tags => None,
    };
    shapes = shapes.into_iter().map(|(table, shape)| (table.to_lowercase(), shape)).collect();
    Ok(TableDefinitions { schema, shapes, followed, untracked })
}

fn column(shape: &ColumnShape) -> Column {
    // Integer keys have the same type on both sides. Other values may differ as text and still be
    // equal.
    let is_whole = shape.declared.split(['(', ' ']).next().is_some_and(|word| {
        matches!(word, "tinyint" | "smallint" | "mediumint" | "int" | "bigint")
    });
    let is_filled = shape.declared.contains("zerofill");
    Column {
        name: shape.name.to_string(),
        is_primary_key: shape.is_in_primary_key(),
        is_loosely_equal: is_filled || !is_whole,
        is_generated: shape.is_generated,
        is_text: is_text(&shape.declared),
        collation: shape.collation.clone(),
    }
}

/// Returns whether a declared type is textual, such as `char(20)` or `longtext`.
fn is_text(declared: &str) -> bool {
    let name = declared.split(['(', ' ']).next().unwrap_or_default();
    name.ends_with("char") || name.ends_with("text")
}

/// The foreign keys within the database, and those to tables of others that change rows.
async fn foreign_keys(
    connection: &mut Connection,
) -> Result<(Vec<ForeignKey>, Vec<OutsideKey>), ConnectionError> {
    let rows = connection.query(KEYS).await?;
    let mut keys: BTreeMap<(String, String), ForeignKey> = BTreeMap::new();
    let mut outside: BTreeMap<(String, String), String> = BTreeMap::new();
    for row in 0..rows.rows.len() {
        let text = |column| rows.text(row, column).unwrap_or_default();
        // A rule that the account may not see counts as a cascade.
        let (on_delete, on_update) = (Action::of_rule(&text(5)), Action::of_rule(&text(6)));
        // Names that differ in case alone are of two databases, or the server writes both in the same case.
        if text(7) != text(8) {
            outside.insert((text(0), text(1)), format!("{}.{}", text(7), text(3)));
            continue;
        }
        let key = keys.entry((text(0), text(1))).or_insert_with(|| ForeignKey {
            child: text(0),
            columns: Vec::new(),
            parent: text(3),
            parent_columns: Vec::new(),
            on_delete,
            on_update,
        });
        key.columns.push(text(2));
        key.parent_columns.push(text(4));
    }
    let mut acting = Vec::new();
    for ((child, name), parent) in outside {
        if acts(connection, &child, &name).await? {
            acting.push(OutsideKey { child, parent });
        }
    }
    Ok((keys.into_values().collect(), acting))
}

/// Whether the engine changes rows of the child by a foreign key. An account that may only read the tables sees the
/// actions of a key in the text of the definition alone. A key that it does not see counts as an action.
async fn acts(
    connection: &mut Connection,
    child: &str,
    name: &str,
) -> Result<bool, ConnectionError> {
    let mut sql = "SHOW CREATE TABLE ".to_owned();
    put_name(&mut sql, child);
    let shown = connection.try_query(&sql, QueryLimits::default()).await?;
    let text = shown.and_then(|rows| rows.text(0, 1)).unwrap_or_default();
    let key = format!("CONSTRAINT `{name}` FOREIGN KEY ");
    let Some(line) = text.lines().find(|line| line.contains(&key)) else { return Ok(true) };
    let has = |action: &str| {
        ["DELETE", "UPDATE"].iter().any(|event| line.contains(&format!(" ON {event} {action}")))
    };
    Ok(["CASCADE", "SET NULL", "SET DEFAULT"].into_iter().any(has))
}
