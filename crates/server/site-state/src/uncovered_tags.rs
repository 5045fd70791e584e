//! Uncovered tags: tags of stored pages that no rule of the site's databases can produce. A rule is
//! missing, or a tag is misspelt, or the application itself invalidates it.
//!
//! A page's tags are checked when it is stored. Each number within a tag is replaced by a star to
//! keep the list short: `news:4` and `news:5` are `news:*`. The list is bounded ([`LISTED_MAX`]).
//!
//! Lock: that of the list, for a look and an insertion; no other is taken under it.

use config::Database;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most tags that are listed.
pub const LISTED_MAX: usize = 1_000;

/// The list of uncovered tags.
#[derive(Default)]
pub struct UncoveredTags {
    tags: Mutex<BTreeSet<String>>,
}

impl UncoveredTags {
    /// Adds those of a page's tags that no rule can produce.
    pub fn note<'a>(&self, databases: &[Arc<Database>], tags: impl Iterator<Item = &'a [u8]>) {
        if databases.is_empty() {
            return;
        }
        for tag in tags.filter_map(|tag| std::str::from_utf8(tag).ok()) {
            if databases.iter().any(|database| database.rules.could_touch(tag)) {
                continue;
            }
            let alike = alike(tag);
            let mut listed = self.lock();
            if listed.len() < LISTED_MAX {
                listed.insert(alike);
            }
        }
    }

    /// Returns the tags recorded since the start, sorted.
    pub fn list(&self) -> Vec<String> {
        self.lock().iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.tags.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the tag with a star for each number.
fn alike(tag: &str) -> String {
    let mut out = String::with_capacity(tag.len());
    for letter in tag.chars() {
        match letter {
            '0'..='9' if out.ends_with('*') => {}
            '0'..='9' => out.push('*'),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_all_one() {
        assert_eq!(alike("news:1234"), "news:*");
        assert_eq!(alike("a1b22"), "a*b*");
    }
}
