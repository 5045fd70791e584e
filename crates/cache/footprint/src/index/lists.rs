//! The statements that are found by a value, in little memory: most values of a column find one statement, and
//! there are millions of such values.
//!
//! A value is known by 32 bits of its hash, and has eight bytes: the hash, and either the statement itself or the
//! number of a list. Invariant: two values with the same hash share a list, so that a search may return statements
//! of the other value, and never misses one. A statement is in a list once, and is removed in logarithmic time: an
//! invalidation may end all statements with one value.

use super::StatementId;
use hashbrown::HashTable;
use std::collections::BTreeSet;

/// The bit of a place that tells lists from statements.
const LIST: u32 = 1 << 31;

/// The statements that are found by the values of one column.
#[derive(Debug, Default)]
pub(super) struct ValuePlaces(HashTable<ValuePlace>);

/// The statements that one value finds.
#[derive(Debug, Clone, Copy)]
struct ValuePlace {
    /// The lower bits of the value's hash.
    hash: u32,
    /// The statement, or [`LIST`] and the number of a list.
    place: u32,
}

/// The lists of more than one statement.
#[derive(Debug, Default)]
pub(super) struct StatementLists {
    lists: Vec<StatementSet>,
    free: Vec<u32>,
}

/// The longest list that is searched from its beginning.
const FEW_MAX: usize = 64;

/// Statements, each once.
#[derive(Debug)]
pub(super) enum StatementSet {
    Few(Vec<StatementId>),
    Many(BTreeSet<StatementId>),
}

impl Default for StatementSet {
    fn default() -> StatementSet {
        StatementSet::Few(Vec::new())
    }
}

impl StatementSet {
    pub fn insert(&mut self, id: StatementId) {
        match self {
            StatementSet::Few(few) if few.contains(&id) => {}
            StatementSet::Few(few) if few.len() < FEW_MAX => few.push(id),
            StatementSet::Few(few) => {
                let mut many: BTreeSet<StatementId> = few.drain(..).collect();
                many.insert(id);
                *self = StatementSet::Many(many);
            }
            StatementSet::Many(many) => drop(many.insert(id)),
        }
    }

    pub fn remove(&mut self, id: StatementId) {
        match self {
            StatementSet::Few(few) => {
                if let Some(at) = few.iter().position(|own| *own == id) {
                    few.swap_remove(at);
                }
            }
            StatementSet::Many(many) => drop(many.remove(&id)),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = StatementId> {
        let (few, many) = match self {
            StatementSet::Few(few) => (&few[..], None),
            StatementSet::Many(many) => (&[][..], Some(many)),
        };
        few.iter().chain(many.into_iter().flatten()).copied()
    }

    pub fn len(&self) -> usize {
        match self {
            StatementSet::Few(few) => few.len(),
            StatementSet::Many(many) => many.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The hash in a table of the lower bits of a value's hash: the table uses the upper bits as well.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[expect(clippy::cast_possible_truncation, reason = "some bits of a hash are a hash")]
pub(super) fn lower(hash: u64) -> u32 {
    hash as u32
}

impl ValuePlaces {
    /// Adds the statements that a value with this hash finds to `found`.
    pub fn find(&self, hash: u64, lists: &StatementLists, found: &mut Vec<StatementId>) {
        if let Some(place) = self.get(hash) {
            lists.add_to(found, *place);
        }
    }

    /// The number of statements that a value with this hash finds.
    pub fn count(&self, hash: u64, lists: &StatementLists) -> usize {
        self.get(hash).map_or(0, |place| lists.list(*place).map_or(1, StatementSet::len))
    }

    /// Adds the statements of all values to `found`.
    pub fn all(&self, lists: &StatementLists, found: &mut Vec<StatementId>) {
        for place in &self.0 {
            lists.add_to(found, *place);
        }
    }

    /// Whether no value finds a statement.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a statement to those of a value with this hash.
    pub fn insert(&mut self, hash: u64, id: StatementId, lists: &mut StatementLists) {
        let hash = lower(hash);
        match self.0.find_mut(spread(hash), |own| own.hash == hash) {
            Some(place) => place.place = lists.add(place.place, id),
            None => {
                let place = ValuePlace { hash, place: id.0 };
                self.0.insert_unique(spread(hash), place, |own| spread(own.hash));
            }
        }
    }

    /// Removes a statement once from those of a value with this hash.
    pub fn remove(&mut self, hash: u64, id: StatementId, lists: &mut StatementLists) {
        let hash = lower(hash);
        let Ok(mut found) = self.0.find_entry(spread(hash), |own| own.hash == hash) else { return };
        match lists.without(found.get().place, id) {
            Some(place) => found.get_mut().place = place,
            None => {
                found.remove();
            }
        }
    }

    fn get(&self, hash: u64) -> Option<&ValuePlace> {
        let hash = lower(hash);
        self.0.find(spread(hash), |own| own.hash == hash)
    }
}

impl StatementLists {
    /// The list of a place, if it is more than one statement.
    fn list(&self, place: ValuePlace) -> Option<&StatementSet> {
        (place.place & LIST != 0).then(|| &self.lists[(place.place & !LIST) as usize])
    }

    /// Adds the statements of a place to `found`.
    fn add_to(&self, found: &mut Vec<StatementId>, place: ValuePlace) {
        match self.list(place) {
            Some(list) => found.extend(list.iter()),
            None => found.push(StatementId(place.place)),
        }
    }

    /// Adds a statement to those of a place, and returns the place where they are now.
    fn add(&mut self, place: u32, id: StatementId) -> u32 {
        if place & LIST != 0 {
            self.lists[(place & !LIST) as usize].insert(id);
            return place;
        }
        if place == id.0 {
            return place;
        }
        let list = StatementSet::Few(vec![StatementId(place), id]);
        let at = match self.free.pop() {
            Some(at) => {
                self.lists[at as usize] = list;
                at
            }
            None => {
                self.lists.push(list);
                u32::try_from(self.lists.len() - 1).unwrap_or(u32::MAX)
            }
        };
        at | LIST
    }

    /// Removes a statement from those of a place, and returns the place where the others are; `None` if there
    /// are no others.
    fn without(&mut self, place: u32, id: StatementId) -> Option<u32> {
        if place & LIST == 0 {
            return (place != id.0).then_some(place);
        }
        let at = place & !LIST;
        let list = &mut self.lists[at as usize];
        list.remove(id);
        let mut left = list.iter();
        let (Some(only), None) = (left.next(), left.next()) else { return Some(place) };
        drop(left);
        *list = StatementSet::default();
        self.free.push(at);
        Some(only.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(places: &ValuePlaces, hash: u64, lists: &StatementLists) -> Vec<u32> {
        let mut found = Vec::new();
        places.find(hash, lists, &mut found);
        assert_eq!(found.len(), places.count(hash, lists));
        found.sort_unstable();
        found.into_iter().map(StatementId::number).collect()
    }

    #[test]
    fn a_value_finds_the_statements_that_were_added_and_not_removed() {
        let (mut places, mut lists) = (ValuePlaces::default(), StatementLists::default());
        for (hash, id) in [(7, 0), (7, 1), (7, 2), (8, 1), (9, 1), (9, 1)] {
            places.insert(hash, StatementId(id), &mut lists);
        }
        assert_eq!(found(&places, 7, &lists), [0, 1, 2]);
        assert_eq!(found(&places, 9, &lists), [1]);
        assert!(found(&places, 10, &lists).is_empty());
        for (id, left) in [(1, vec![0, 2]), (5, vec![0, 2]), (0, vec![2]), (2, vec![])] {
            places.remove(7, StatementId(id), &mut lists);
            assert_eq!(found(&places, 7, &lists), left);
        }
        let mut all = Vec::new();
        places.all(&lists, &mut all);
        assert_eq!(all.len(), 2);
        // The memory of the list that has ended is used again.
        places.insert(8, StatementId(3), &mut lists);
        assert_eq!((lists.lists.len(), lists.free.len()), (1, 0));
        for (hash, id) in [(8, 1), (8, 3), (9, 1), (9, 1)] {
            places.remove(hash, StatementId(id), &mut lists);
        }
        assert!(places.is_empty() && lists.lists.iter().all(StatementSet::is_empty));
    }

    #[test]
    fn a_long_list_is_a_set() {
        let mut list = StatementSet::default();
        (0..200).chain(0..200).for_each(|id| list.insert(StatementId(id)));
        assert_eq!((list.len(), list.iter().count()), (200, 200));
        (0..200).for_each(|id| list.remove(StatementId(id)));
        assert!(list.is_empty());
    }

    #[test]
    fn values_whose_hashes_share_the_lower_bits_find_the_statements_of_both() {
        let (mut places, mut lists) = (ValuePlaces::default(), StatementLists::default());
        places.insert(5, StatementId(1), &mut lists);
        places.insert(5 | 1 << 40, StatementId(2), &mut lists);
        assert_eq!(found(&places, 5, &lists), [1, 2]);
        places.remove(5, StatementId(1), &mut lists);
        assert_eq!(found(&places, 5 | 1 << 40, &lists), [2]);
    }
}
