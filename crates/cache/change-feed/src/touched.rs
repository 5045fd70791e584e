//! What a change touches: tags, or every page.
//!
//! Invariant: the tags with values in them are bounded ([`TAGS_MAX`]); beyond that a rule says what
//! stands for any row of its table. Nothing is ever taken out again.

use crate::template::Spelled;
use std::collections::{BTreeMap, BTreeSet};

/// How many tags of single rows one transaction may touch before its rules say it for any row.
pub const TAGS_MAX: usize = 10_000;
/// How much text of a transaction is looked through, in bytes; where there is more, all searches are touched.
pub const TEXT_BYTES_MAX: usize = 4 << 20;
/// How many tables are named.
const TABLES_MAX: usize = 8;

/// What one transaction touches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Touched {
    tags: BTreeSet<String>,
    tables: BTreeSet<String>,
    /// By the kind of their tags.
    searches: BTreeMap<String, Searched>,
    text_bytes: usize,
    rows: usize,
    everything: bool,
}

/// Which searches of a kind are touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Searched {
    /// Those for what occurs in one of these texts, each once.
    Texts(BTreeSet<String>),
    /// All.
    Any,
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
        self.tags.is_empty() && self.searches.is_empty() && !self.everything
    }

    /// How much text there is to be looked through, in bytes.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        self.text_bytes
    }

    /// The searches that are touched, by the kind of their tags.
    pub fn searches(&self) -> impl Iterator<Item = (&str, &Searched)> {
        self.searches.iter().map(|(kind, searched)| (kind.as_str(), searched))
    }

    /// Those of a kind for what occurs in this text.
    pub(crate) fn search(&mut self, kind: &str, text: &str) {
        if self.text_bytes + text.len() > TEXT_BYTES_MAX {
            return self.search_any(kind);
        }
        let none = || Searched::Texts(BTreeSet::new());
        let searched = self.searches.entry(kind.to_owned()).or_insert_with(none);
        if let Searched::Texts(texts) = searched
            && !texts.contains(text)
        {
            texts.insert(text.to_owned());
            self.text_bytes += text.len();
        }
    }

    /// All of a kind.
    pub(crate) fn search_any(&mut self, kind: &str) {
        self.searches.insert(kind.to_owned(), Searched::Any);
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
