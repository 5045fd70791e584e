//! The statements that are found by a value, in little memory: most values of a column find one statement, and
//! there are millions of such values.
//!
//! A value is known by 32 bits of its hash, and has eight bytes: the hash, and either the statement itself or the
//! number of a list. Invariant: two values with the same hash share a list, so that a search may return statements
//! of the other value, and never misses one. A statement is in a list once for each of its values.

use super::StatementId;
use hashbrown::HashTable;

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
    lists: Vec<Vec<StatementId>>,
    free: Vec<u32>,
}

/// The hash in a table of the lower bits of a value's hash: the table uses the upper bits as well.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[expect(clippy::cast_possible_truncation, reason = "some bits of a hash are a hash")]
fn lower(hash: u64) -> u32 {
    hash as u32
}

impl ValuePlaces {
    /// Adds the statements that a value with this hash finds to `found`.
    pub fn find(&self, hash: u64, lists: &StatementLists, found: &mut Vec<StatementId>) {
        if let Some(place) = self.get(hash) {
            found.extend_from_slice(lists.ids(&place.id(), place));
        }
    }

    /// The number of statements that a value with this hash finds.
    pub fn count(&self, hash: u64, lists: &StatementLists) -> usize {
        self.get(hash).map_or(0, |place| lists.ids(&place.id(), place).len())
    }

    /// Adds the statements of all values to `found`.
    pub fn all(&self, lists: &StatementLists, found: &mut Vec<StatementId>) {
        for place in &self.0 {
            found.extend_from_slice(lists.ids(&place.id(), place));
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

impl ValuePlace {
    /// The statement, if it is no list.
    fn id(self) -> StatementId {
        StatementId(self.place)
    }
}

impl StatementLists {
    /// The statements of a place; `only` is the one of a place without a list.
    fn ids<'s>(&'s self, only: &'s StatementId, place: &ValuePlace) -> &'s [StatementId] {
        match place.place & LIST {
            0 => std::slice::from_ref(only),
            _ => &self.lists[(place.place & !LIST) as usize],
        }
    }

    /// Adds a statement to those of a place, and returns the place where they are now.
    fn add(&mut self, place: u32, id: StatementId) -> u32 {
        if place & LIST != 0 {
            self.lists[(place & !LIST) as usize].push(id);
            return place;
        }
        let list = vec![StatementId(place), id];
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
        if let Some(found) = list.iter().rposition(|own| *own == id) {
            list.swap_remove(found);
        }
        let [only] = list[..] else { return Some(place) };
        *list = Vec::new();
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
        assert_eq!(found(&places, 9, &lists), [1, 1]);
        assert!(found(&places, 10, &lists).is_empty());
        for (id, left) in [(1, vec![0, 2]), (5, vec![0, 2]), (0, vec![2]), (2, vec![])] {
            places.remove(7, StatementId(id), &mut lists);
            assert_eq!(found(&places, 7, &lists), left);
        }
        let mut all = Vec::new();
        places.all(&lists, &mut all);
        assert_eq!(all.len(), 3);
        // The memory of the list that has ended is used again.
        places.insert(8, StatementId(3), &mut lists);
        assert_eq!((lists.lists.len(), lists.free.len()), (2, 0));
        for (hash, id) in [(8, 1), (8, 3), (9, 1), (9, 1)] {
            places.remove(hash, StatementId(id), &mut lists);
        }
        assert!(places.is_empty() && lists.lists.iter().all(Vec::is_empty));
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
