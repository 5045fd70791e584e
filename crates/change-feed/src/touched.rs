//! What a change touches: tags, or every page.
//!
//! Invariant: the tags with values in them are bounded ([`TAGS_MAX`]); beyond that a rule says what
//! stands for any row of its table. Nothing is ever taken out again.

use crate::template::Spelled;
use std::collections::BTreeSet;

/// How many tags of single rows one transaction may touch before its rules say it for any row.
pub const TAGS_MAX: usize = 10_000;
/// How many tables are named.
const TABLES_MAX: usize = 8;

/// What one transaction touches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Touched {
    tags: BTreeSet<String>,
    tables: BTreeSet<String>,
    rows: usize,
    everything: bool,
}

/// Whether there is room for another tag of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// It is in.
    Taken,
    /// There is none.
    Full,
}

impl Touched {
    /// The tags, each once, in order.
    pub fn tags(&self) -> impl Iterator<Item = &str> {
        self.tags.iter().map(String::as_str)
    }

    /// The tables whose rules touched something, for explanations: 8 at most, and none where every page
    /// is touched for another reason.
    pub fn tables(&self) -> impl Iterator<Item = &str> {
        self.tables.iter().map(String::as_str)
    }

    /// Notes a table whose rule touches something.
    pub(crate) fn by_table(&mut self, table: &str) {
        if self.tables.len() < TABLES_MAX && !self.tables.contains(table) {
            self.tables.insert(table.to_owned());
        }
    }

    /// Whether every page is touched.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.everything
    }

    /// Whether nothing is touched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tags.is_empty() && !self.everything
    }

    /// Every page.
    pub fn add_everything(&mut self) {
        self.everything = true;
    }

    /// A tag that stands in the rules as it is; they bound how many there are.
    pub(crate) fn add(&mut self, tag: &str) {
        if !self.tags.contains(tag) {
            self.tags.insert(tag.to_owned());
        }
    }

    /// The same, in whatever spellings.
    pub(crate) fn add_spelled(&mut self, spelled: &Spelled) {
        spelled.all().for_each(|tag| self.add(tag));
    }

    /// A tag made from a row, which counts once in whatever spellings.
    pub(crate) fn add_of_row(&mut self, spelled: Spelled) -> Room {
        let Spelled { tag, others } = spelled;
        if self.tags.contains(&tag) && others.iter().all(|other| self.tags.contains(other)) {
            return Room::Taken;
        }
        if self.rows >= TAGS_MAX {
            return Room::Full;
        }
        self.rows += 1;
        self.tags.insert(tag);
        self.tags.extend(others);
        Room::Taken
    }
}
