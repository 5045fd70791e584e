//! Tags that pages depend on, and that no rule of any of the site's databases could touch: a rule is
//! missing, or a tag is misspelt, or somebody else says when it changes.
//!
//! Each is looked for when a page is stored that has it; numbers within are all one, for a listing is
//! meant to be read: `news:4` and `news:5` are `news:*`. Bounded ([`LISTED_MAX`]).
//!
//! Lock: that of the list, for a look and an insertion; no other is taken under it.

use crate::config::Database;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many are listed.
pub const LISTED_MAX: usize = 1_000;

/// The list.
#[derive(Default)]
pub struct UncoveredTags {
    tags: Mutex<BTreeSet<String>>,
}

impl UncoveredTags {
    /// Notes those of a page's tags that no rule could touch.
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

    /// Those that were noted since the start, in order.
    pub fn list(&self) -> Vec<String> {
        self.lock().iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.tags.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The tag with a star for each number.
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
