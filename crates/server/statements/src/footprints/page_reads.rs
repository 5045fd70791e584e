//! The statements of one page: the page holds them in the index as long as it exists.
//!
//! A page is dropped under locks of the store, so the drop only puts its statements into a queue.
//! The queue is emptied when a page is made, and when rows are looked for: a page at a time, so that no lock is held
//! while many pages that were purged at once are forgotten.

use footprint::StatementId;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The prefix of the tags for statements. No response field can contain it.
const STATEMENT: &[u8; 5] = b"\0sql ";
/// The length of such a tag in bytes.
const TAG_BYTES: usize = STATEMENT.len() + 8;

/// The tag of a statement.
pub(super) type StatementTag = [u8; TAG_BYTES];

/// Returns whether a tag is one of a statement.
pub fn is_statement(tag: &[u8]) -> bool {
    tag.starts_with(STATEMENT)
}

/// The tag for a statement of this definition of the tables.
pub(super) fn tag(generation: u32, id: StatementId) -> StatementTag {
    let mut tag = [0; TAG_BYTES];
    let (prefix, numbers) = tag.split_at_mut(STATEMENT.len());
    prefix.copy_from_slice(STATEMENT);
    numbers[..4].copy_from_slice(&generation.to_be_bytes());
    numbers[4..].copy_from_slice(&id.number().to_be_bytes());
    tag
}

/// Statements in the index, of one definition of the tables.
#[derive(Debug)]
pub(super) struct Statements {
    pub(super) generation: u32,
    pub(super) ids: Vec<StatementId>,
}

/// The statements of pages that are gone, until they are removed from the index.
#[derive(Debug, Default)]
pub(super) struct ReleaseQueue(Mutex<Vec<Statements>>);

impl ReleaseQueue {
    /// Takes the statements of one page.
    pub(super) fn take_one(&self) -> Option<Statements> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    pub(super) fn put(&self, statements: Statements) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(statements);
    }
}

/// The statements of a page, which stay in the index until this is dropped.
#[derive(Debug)]
pub struct PageReads {
    statements: Statements,
    /// Whether the result of a statement depends on the time of day, or on chance.
    pub is_timed: bool,
    /// How long a new page may be used, if a statement has a constant that depends on the day.
    pub day_lasts: Option<Duration>,
    /// The memory for statements that no page had before.
    new_bytes: usize,
    released: Arc<ReleaseQueue>,
}

impl PageReads {
    pub(super) fn new(generation: u32, released: Arc<ReleaseQueue>) -> PageReads {
        let statements = Statements { generation, ids: Vec::new() };
        PageReads { statements, is_timed: false, day_lasts: None, new_bytes: 0, released }
    }

    /// Adds a statement whose use has been counted in the index. `new_bytes` is the memory that it needs, if no other page
    /// has it: it counts as this page's, so that memory is freed by evicting pages.
    pub(super) fn add(&mut self, id: StatementId, new_bytes: usize) {
        self.new_bytes += new_bytes;
        if self.statements.ids.contains(&id) {
            let generation = self.statements.generation;
            self.released.put(Statements { generation, ids: vec![id] });
        } else {
            self.statements.ids.push(id);
        }
    }

    /// Removes a statement. Returns whether the page had it.
    pub(super) fn remove(&mut self, id: StatementId) -> bool {
        let place = self.ids().position(|at| at == id);
        if let Some(at) = place {
            let generation = self.statements.generation;
            self.released
                .put(Statements { generation, ids: vec![self.statements.ids.swap_remove(at)] });
        }
        place.is_some()
    }

    /// Takes a statement of the `spare` ones in place of another, which becomes a spare one.
    pub(super) fn exchange(&mut self, spare: &mut PageReads, id: StatementId, own: StatementId) {
        let place = |all: &PageReads, id| all.ids().position(|at| at == id);
        if let (Some(at), Some(spare_at)) = (place(self, id), place(spare, own)) {
            mem::swap(&mut self.statements.ids[at], &mut spare.statements.ids[spare_at]);
        }
    }

    /// Frees the room that is not used.
    pub(super) fn finish(&mut self) {
        self.statements.ids.shrink_to_fit();
    }

    pub(super) fn is_of(&self, generation: u32) -> bool {
        self.statements.generation == generation
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = StatementId> {
        self.statements.ids.iter().copied()
    }

    /// The number of different statements.
    pub fn len(&self) -> usize {
        self.statements.ids.len()
    }

    /// Whether the page reads no rows.
    pub fn is_empty(&self) -> bool {
        self.statements.ids.is_empty()
    }

    /// The tags of the statements in the store.
    pub fn tags(&self) -> impl Iterator<Item = [u8; TAG_BYTES]> {
        self.ids().map(|id| tag(self.statements.generation, id))
    }

    /// The memory of the list, and of statements that no page had before, in bytes.
    pub fn heap_bytes(&self) -> usize {
        let list = self.statements.ids.capacity() * size_of::<StatementId>();
        page_store::allocated(list) + self.new_bytes
    }
}

impl Drop for PageReads {
    fn drop(&mut self) {
        let Statements { generation, ids } = &mut self.statements;
        if !ids.is_empty() {
            self.released.put(Statements { generation: *generation, ids: mem::take(ids) });
        }
    }
}
