//! The last changes of a site: number, time, cause, names, and what they purged.
//!
//! They are in a ring buffer, which overwrites its oldest entry.

use super::cause::ChangeSource;
use super::shown::cut_bytes;
use page_store::{ChangeTarget, Strength};
use statements::{footprints, terms};
use std::collections::VecDeque;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// The most changes that are remembered.
pub const CHANGES_MAX: usize = 256;
/// The most names of one change that are shown.
pub const NAMES_MAX: usize = 8;
/// The most names of a change by which it can be found.
const FOUND_BY_MAX: usize = 64;

/// A change that was applied.
#[derive(Debug)]
pub struct Change {
    /// The number of the change.
    pub number: u64,
    /// The time, in milliseconds since 1970.
    pub at_ms: u64,
    /// The cause of the change.
    pub by: Arc<ChangeSource>,
    /// Whether pages were purged or marked stale.
    pub strength: Strength,
    /// The names of the change, at most [`NAMES_MAX`].
    pub names: Vec<ChangeName>,
    /// How many further names there are.
    pub names_left_out: usize,
    /// How many pages were purged, and how many marked.
    pub touched: (u64, u64),
    /// The hashes of its names.
    found_by: Vec<u64>,
}

/// A name in a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeName {
    /// The kind: a tag, a URL and so on.
    pub kind: &'static str,
    /// The name; empty for every page, and for private data of a client.
    pub name: Box<str>,
}

impl ChangeName {
    /// Creates the name of a tag.
    pub fn tag(tag: &[u8]) -> ChangeName {
        ChangeName { kind: "tag", name: cut_bytes(tag) }
    }

    /// Creates the name of an expression over URLs.
    pub fn expression() -> ChangeName {
        ChangeName { kind: "expression", name: Box::default() }
    }

    /// Returns the name of a target.
    pub fn of(target: &ChangeTarget<'_>) -> ChangeName {
        let named = |kind, name: &[u8]| ChangeName { kind, name: cut_bytes(name) };
        match target {
            ChangeTarget::Tag(tag) if terms::is_any_text(tag) => named("any-text", b""),
            ChangeTarget::Tag(tag) if footprints::is_statement(tag) => named("statement", b""),
            // The server's own tags for private data (`private`); no tag of an application begins
            // like this.
            ChangeTarget::Tag([0, ..])
            | ChangeTarget::Owner(_)
            | ChangeTarget::OwnerTag { .. }
            | ChangeTarget::OwnerUrl { .. } => named("owner", b""),
            ChangeTarget::Tag(tag) => ChangeName::tag(tag),
            ChangeTarget::Url(url) => {
                named("url", super::shown::masked(&String::from_utf8_lossy(url)).as_bytes())
            }
            ChangeTarget::Path(path) => named("path", path),
            ChangeTarget::Prefix(prefix) => named("prefix", prefix),
            ChangeTarget::Everything => named("everything", b""),
        }
    }

    fn hash(&self) -> u64 {
        xxh3_64(self.name.as_bytes()) ^ xxh3_64(self.kind.as_bytes())
    }
}

impl Change {
    /// Creates a change of these targets; an empty list stands for an expression.
    pub fn new(
        number: u64,
        at_ms: u64,
        by: Arc<ChangeSource>,
        targets: &[ChangeTarget<'_>],
    ) -> Change {
        // Statements have no names: one stands for all.
        let is_statement = |target: &&ChangeTarget<'_>| matches!(target, ChangeTarget::Tag(tag) if footprints::is_statement(tag));
        let statement = targets.iter().find(is_statement);
        let named = || targets.iter().filter(|target| !is_statement(target)).chain(statement);
        let names: Vec<_> = match targets {
            [] => vec![ChangeName::expression()],
            _ => named().take(NAMES_MAX).map(ChangeName::of).collect(),
        };
        let found_by = named().take(FOUND_BY_MAX).map(|one| ChangeName::of(one).hash());
        Change {
            number,
            at_ms,
            by,
            strength: Strength::Drop,
            names_left_out: named().count().saturating_sub(NAMES_MAX),
            names,
            touched: (0, 0),
            found_by: found_by.collect(),
        }
    }
}

/// The last changes, oldest first.
#[derive(Default)]
pub(super) struct Changes {
    ring: VecDeque<Arc<Change>>,
}

impl Changes {
    pub(super) fn add(&mut self, change: Arc<Change>) {
        if self.ring.len() >= CHANGES_MAX {
            self.ring.pop_front();
        }
        self.ring.push_back(change);
    }

    pub(super) fn newest_first(&self) -> Vec<Arc<Change>> {
        self.ring.iter().rev().cloned().collect()
    }

    pub(super) fn last_of(&self, named: &ChangeName) -> Option<Arc<Change>> {
        let everything = ChangeName::of(&ChangeTarget::Everything).hash();
        let hashes = [named.hash(), everything];
        let is_of = |change: &&Arc<Change>| change.found_by.iter().any(|one| hashes.contains(one));
        self.ring.iter().rev().find(is_of).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(number: u64, targets: &[ChangeTarget<'_>]) -> Arc<Change> {
        Arc::new(Change::new(number, 0, Arc::new(ChangeSource::Memcached), targets))
    }

    #[test]
    fn the_oldest_is_forgotten() {
        let mut changes = Changes::default();
        for number in 0..1000 {
            changes.add(change(number, &[ChangeTarget::Tag(b"a")]));
        }
        let all = changes.newest_first();
        assert_eq!((all.len(), all[0].number), (CHANGES_MAX, 999));
    }

    #[test]
    fn the_last_of_a_name_is_found_also_as_everything() {
        let mut changes = Changes::default();
        let many: Vec<String> = (0..20).map(|at| format!("t:{at}")).collect();
        let many: Vec<_> = many.iter().map(|tag| ChangeTarget::Tag(tag.as_bytes())).collect();
        changes.add(change(1, &[ChangeTarget::Everything]));
        changes.add(change(2, &many));
        changes.add(change(3, &[ChangeTarget::Url(b"t:19")]));
        let last = |tag: &[u8]| changes.last_of(&ChangeName::tag(tag)).map(|change| change.number);
        assert_eq!(last(b"t:19"), Some(2), "beyond what is shown");
        assert_eq!(last(b"other"), Some(1));
        let shown = changes.newest_first()[1].clone();
        assert_eq!((shown.names.len(), shown.names_left_out), (NAMES_MAX, 12));
    }

    #[test]
    fn changes_of_private_copies_have_no_name() {
        let own = ChangeName::of(&ChangeTarget::Tag(b"\0owner 1234"));
        assert_eq!(own, ChangeName { kind: "owner", name: "".into() });
        assert_eq!(&*ChangeName::of(&ChangeTarget::Url(b"/x?q=1")).name, "/x?q=…");
    }
}
