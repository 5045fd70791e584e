//! Writes of a render itself: a page may depend on rows that it has written before it read them.
//!
//! A change of rows is the page's own for a statement if its transaction is one that the render's connection has
//! committed, by its identifier, and if the statement ran after that for the first time. A commit is answered when its
//! rows are visible to its connection, so the statement has read these rows as the transaction, or a later one, has left
//! them. Rows that were held back (`footprint::profile`) and are released with those of a later transaction would count as
//! that one's; so a transaction is remembered only if none are held.
//!
//! | render: lease, then ... | in the stream | the page |
//! |---|---|---|
//! | writes (T), reads the row | T | depends on a statement of its own, on which T is no change |
//! | writes (T), reads the row | T, then a change U of the row by somebody else | refused: U is not its own |
//! | writes (T), reads the row | U, then T | refused: U is not its own, although the render has seen it |
//! | writes (T), reads the row; stored | T after that | purged: T finds the statement |
//! | reads the row, writes (T), reads it again | T | refused: the first result may be shown (a counter of views) |
//! | begins a transaction, writes, reads the row, commits (T) | T | refused: T was not committed when it read |
//! | writes (T), and the database does not name T, or names it late | T | refused: not known as its own |
//! | writes (T), reads the row; another request wants to join | T | as for any page: by the tags of the page |
//!
//! The statement of its own has the same reads under another number. It enters the index before the recent changes are
//! copied, so a row that is looked for later finds it; those before are among the recent changes, where T alone is left
//! out. A shared number would not do: T has changed its tag. Not here: how transactions are named by a connection.

use footprint::{OwnTransaction, StatementId};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// The maximum number of transactions whose looks are remembered.
const TRANSACTIONS_MAX: usize = 4_096;

/// The looks of recent transactions, by their identifiers.
#[derive(Default)]
pub(super) struct RecentTransactions {
    looks: HashMap<Arc<str>, u64>,
    order: VecDeque<Arc<str>>,
}

/// The looks of a render's own transactions, each with the number of statements that were sent before it was known.
pub(super) type OwnLooks = HashMap<u64, usize>;

impl RecentTransactions {
    /// Records the look of a transaction. Call it before its rows are among the recent changes.
    pub(super) fn note(&mut self, id: Option<Box<str>>, look: u64) {
        let Some(id) = id.map(Arc::<str>::from) else { return };
        self.looks.insert(id.clone(), look);
        self.order.push_back(id);
        if self.order.len() > TRANSACTIONS_MAX {
            self.order.pop_front().and_then(|oldest| self.looks.remove(&oldest));
        }
    }

    /// The looks of a render's own transactions.
    pub(super) fn looks_of(&self, own: &[OwnTransaction]) -> OwnLooks {
        let look = |own: &OwnTransaction| Some((*self.looks.get(&*own.id)?, own.after));
        own.iter().filter_map(look).collect()
    }
}

/// The statements of a render by the place at which each ran first, and the numbers under which a page can have them
/// for itself.
#[derive(Default)]
pub(super) struct OwnReads {
    first: BTreeMap<StatementId, usize>,
    own: BTreeMap<StatementId, StatementId>,
}

impl OwnReads {
    /// Records that a statement ran at this place, or may have.
    pub(super) fn ran(&mut self, id: StatementId, place: usize) {
        let first = self.first.entry(id).or_insert(place);
        *first = place.min(*first);
    }

    /// The statements that ran for the first time after one of these transactions, each with the last of them.
    pub(super) fn after<'o>(
        &self,
        own: &'o [OwnTransaction],
    ) -> Vec<(StatementId, &'o OwnTransaction)> {
        let last = |first: usize| own.iter().rfind(|own| own.after <= first);
        let all = self.first.iter().filter_map(|(id, first)| Some((*id, last(*first)?)));
        all.collect()
    }

    /// Records the number under which the page can have a statement for itself.
    pub(super) fn add_own(&mut self, id: StatementId, own: StatementId) {
        self.own.insert(id, own);
    }

    /// The number under which the page can have a statement for itself, if the look is of a transaction before it.
    pub(super) fn own_of(
        &self,
        id: StatementId,
        look: u64,
        looks: &OwnLooks,
    ) -> Option<StatementId> {
        let first = self.first.get(&id)?;
        let is_before = looks.get(&look).is_some_and(|after| after <= first);
        self.own.get(&id).copied().filter(|_| is_before)
    }
}

/// The key of a statement that a page has for itself. A transaction is one of a single render, so no other page has it;
/// if one had, the changes since would count for both.
pub(super) fn key(seed: u64, id: StatementId, transaction: &OwnTransaction) -> u128 {
    let mut hash = Xxh3::with_seed(seed);
    hash.update(b"own\0");
    hash.update(&id.number().to_be_bytes());
    hash.update(transaction.id.as_bytes());
    hash.digest128()
}
