//! The result of a change: the tags that it touches, or every page.
//!
//! Invariant: the number of tags with values is limited ([`TAGS_MAX`]). Beyond it, a rule touches its tags
//! for any row of its table. Nothing is ever removed.

use crate::template::TagSpellings;
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of tags of single rows in one transaction. Beyond it, rules touch their tags for any
/// row.
pub const TAGS_MAX: usize = 10_000;
/// The maximum amount of text of a transaction that is searched, in bytes. Beyond it, all searches are
/// touched.
pub const TEXT_BYTES_MAX: usize = 4 << 20;
/// The maximum number of tables that are reported.
const TABLES_MAX: usize = 8;

/// Everything that one transaction touches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TouchedTags {
    tags: BTreeSet<String>,
    tables: BTreeSet<String>,
    /// By the kind of their tags.
    searches: BTreeMap<String, TouchedSearches>,
    text_bytes: usize,
    rows: usize,
    everything: bool,
}

/// The touched searches of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TouchedSearches {
    /// The searches for words that occur in one of these texts.
    Texts(BTreeSet<String>),
    /// All searches of the kind.
    Any,
}

impl TouchedTags {
    /// The tags, sorted, without duplicates.
    pub fn tags(&self) -> impl Iterator<Item = &str> {
        self.tags.iter().map(String::as_str)
    }

    /// The tables whose rules touched something, for explanations. At most 8, and none if every page is
    /// touched for another reason.
    pub fn tables(&self) -> impl Iterator<Item = &str> {
        self.tables.iter().map(String::as_str)
    }

    /// Records a table whose rule touches something.
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

    /// The amount of text to be searched, in bytes.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        self.text_bytes
    }

    /// The touched searches, by the kind of their tags.
    pub fn searches(&self) -> impl Iterator<Item = (&str, &TouchedSearches)> {
        self.searches.iter().map(|(kind, searched)| (kind.as_str(), searched))
    }

    /// Touches the searches of a kind for words in this text.
    pub(crate) fn search(&mut self, kind: &str, text: &str) {
        if self.text_bytes + text.len() > TEXT_BYTES_MAX {
            return self.search_any(kind);
        }
        let none = || TouchedSearches::Texts(BTreeSet::new());
        let searched = self.searches.entry(kind.to_owned()).or_insert_with(none);
        if let TouchedSearches::Texts(texts) = searched
            && !texts.contains(text)
        {
            texts.insert(text.to_owned());
            self.text_bytes += text.len();
        }
    }

    /// Touches all searches of a kind.
    pub(crate) fn search_any(&mut self, kind: &str) {
        self.searches.insert(kind.to_owned(), TouchedSearches::Any);
    }

    /// Marks every page as touched.
    pub fn add_everything(&mut self) {
        self.everything = true;
    }

    /// Adds a constant tag of a rule; the rules limit their number.
    pub(crate) fn add(&mut self, tag: &str) {
        if !self.tags.contains(tag) {
            self.tags.insert(tag.to_owned());
        }
    }

    /// Adds a constant tag in all its spellings.
    pub(crate) fn add_spelled(&mut self, spelled: &TagSpellings) {
        spelled.all().for_each(|tag| self.add(tag));
    }

    /// Adds a tag made from a row, which counts once in all its spellings. Returns whether there was no room for
    /// it.
    pub(crate) fn add_of_row(&mut self, spelled: TagSpellings) -> bool {
        let TagSpellings { tag, others } = spelled;
        if self.tags.contains(&tag) && others.iter().all(|other| self.tags.contains(other)) {
            return false;
        }
        if self.rows >= TAGS_MAX {
            return true;
        }
        self.rows += 1;
        self.tags.insert(tag);
        self.tags.extend(others);
        false
    }
}
