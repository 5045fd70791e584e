//! Rules proposed for a schema, as the text of a configuration.
//!
//! A table with a primary key of one column gets its name and its name with the key; a foreign key of
//! one column gets the parent's name with the value, for pages of the parent that list its children; when it
//! is not known which rows changed, any of the table and any of its parents.
//! A proposal is where to begin: which tags the pages have, only the application knows. Not here:
//! anything about pages.

mod wordpress;

pub use wordpress::{NoWordPress, suggest_for_wordpress};

use crate::schema::{ForeignKey, KeyPart, Schema, TableDefinition, TableKind};
use std::fmt::Write as _;

/// Proposes rules for every table; `database` is its name, where there are several.
#[must_use]
pub fn suggest(schema: &Schema, database: Option<&str>) -> String {
    let mut text = String::new();
    for table in schema.tables.values().filter(|table| table.kind == TableKind::Table) {
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
        // Writing to a string does not fail.
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

/// The primary key, if it is one column.
fn key_of(table: &TableDefinition) -> Option<&str> {
    let mut keys = table.columns.iter().filter(|column| column.key == KeyPart::Primary);
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

/// As a basic string of TOML.
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
