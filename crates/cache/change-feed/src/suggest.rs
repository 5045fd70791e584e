//! Proposes change rules for a schema, as configuration text.
//!
//! A table whose primary key has one column gets its name as a tag, and its name with the key. A foreign
//! key of one column gets the parent's name with the value, for pages of the parent that list its children.
//! If the changed rows are unknown, the rule touches the table's name and those of its parents. A proposal
//! is only a starting point, because only the application knows which tags its pages have.

mod wordpress;

pub use wordpress::{NoWordPress, suggest_for_wordpress};

use crate::schema::{ForeignKey, Schema, TableDefinition};
use std::fmt::Write as _;

/// Proposes rules for every table. `database` is the name of the database, if the site has several.
#[must_use]
pub fn suggest(schema: &Schema, database: Option<&str>) -> String {
    let mut text = String::new();
    for table in schema.tables.values().filter(|table| !table.is_view) {
        let name = escaped(&table.name);
        let (mut tags, mut any_row) = (vec![name.clone()], vec![name.clone()]);
        tags.extend(key_of(table).map(|key| format!("{name}:{{{}}}", escaped(key))));
        for key in schema.foreign_keys.iter().filter(|key| is_of(key, table)) {
            if let [column] = key.columns.as_slice() {
                let tag = format!("{}:{{{}}}", escaped(&key.parent), escaped(column));
                if !tags.contains(&tag) {
                    tags.push(tag);
                }
                let parent = escaped(&key.parent);
                if !any_row.contains(&parent) {
                    any_row.push(parent);
                }
            }
        }
        // Writing to a string cannot fail.
        let _ = writeln!(text, "[[change]]");
        if let Some(database) = database {
            let _ = writeln!(text, "database = {}", quoted(database));
        }
        let _ = writeln!(text, "table = {}", quoted(&table.name));
        let _ = writeln!(text, "tags = [{}]", list(&tags));
        let _ = writeln!(text, "any_row = [{}]\n", list(&any_row));
    }
    text
}

/// The primary key, if it has one column.
fn key_of(table: &TableDefinition) -> Option<&str> {
    let mut keys = table.columns.iter().filter(|column| column.is_primary_key);
    match (keys.next(), keys.next()) {
        (Some(key), None) => Some(&key.name),
        _ => None,
    }
}

fn is_of(key: &ForeignKey, table: &TableDefinition) -> bool {
    key.child.eq_ignore_ascii_case(&table.name)
}

fn escaped(name: &str) -> String {
    name.replace('{', "{{").replace('}', "}}")
}

fn list(tags: &[String]) -> String {
    tags.iter().map(|tag| quoted(tag)).collect::<Vec<_>>().join(", ")
}

/// The text as a basic string of TOML.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => {
                out.push('\\');
                out.push(letter);
            }
            letter if letter.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(letter));
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}
