//! Groups of statements that differ in a bound alone, each sorted by the bound (`crate::nearest`).
//!
//! The index finds a group as it finds a statement: a group has an id, which no statement has ([`GROUP`]). Invariant: a
//! group has at least one statement, and is found by the condition that all of them have. Not here: the look-up.

use super::{Path, StatementId};
use crate::footprint::Reads;
use crate::nearest::{BoundedStatement, GroupKey, OrderKey};
use std::collections::{BTreeSet, HashMap};
use std::ops::RangeInclusive;

/// The bit that tells groups from statements.
const GROUP: u32 = 1 << 30;

/// The groups of an index.
#[derive(Debug, Default)]
pub(super) struct Groups {
    by_key: HashMap<GroupKey, u32>,
    groups: Vec<Option<Group>>,
    free: Vec<u32>,
}

/// Statements that differ in a bound alone.
#[derive(Debug)]
pub(super) struct Group {
    /// The first statement of the group.
    pub reads: Reads,
    /// How the group is found.
    pub path: Path,
    members: BTreeSet<(OrderKey, StatementId)>,
}

impl Group {
    /// The statements with a bound in this range.
    pub fn within(&self, bounds: RangeInclusive<OrderKey>) -> impl Iterator<Item = StatementId> {
        let (first, last) = (StatementId(0), StatementId(u32::MAX));
        let range = (*bounds.start(), first)..=(*bounds.end(), last);
        // A range whose end is before its start is a panic of the standard library.
        let is_range = bounds.start() <= bounds.end();
        let found = is_range.then(|| self.members.range(range));
        found.into_iter().flatten().map(|(_, id)| *id)
    }
}

impl Groups {
    /// The group with this id, if it is one of a group.
    pub fn of_id(id: StatementId) -> Option<u32> {
        (id.0 & GROUP != 0).then_some(id.0 & !GROUP)
    }

    /// The group at this position.
    pub fn get(&self, group: u32) -> Option<&Group> {
        self.groups.get(group as usize)?.as_ref()
    }

    /// Adds a statement to its group. Returns the id of the group if it is new; `path` says how it is found.
    pub fn insert(
        &mut self,
        bounded: BoundedStatement,
        id: StatementId,
        reads: &Reads,
        path: impl FnOnce() -> Path,
    ) -> Option<(StatementId, Path)> {
        let BoundedStatement { key, bound } = bounded;
        if let Some(group) = self.by_key.get(&key) {
            if let Some(group) = &mut self.groups[*group as usize] {
                group.members.insert((bound, id));
            }
            return None;
        }
        let at = self.free.pop().unwrap_or_else(|| {
            self.groups.push(None);
            u32::try_from(self.groups.len() - 1).unwrap_or(u32::MAX)
        });
        let path = path();
        let members = BTreeSet::from([(bound, id)]);
        self.groups[at as usize] = Some(Group { reads: reads.clone(), path, members });
        self.by_key.insert(key, at);
        Some((StatementId(GROUP | at), path))
    }

    /// Removes a statement from its group. Returns the id of the group, and the group, if that was the last one.
    pub fn remove(
        &mut self,
        bounded: &BoundedStatement,
        id: StatementId,
    ) -> Option<(StatementId, Group)> {
        let BoundedStatement { key, bound } = bounded;
        let at = *self.by_key.get(key)?;
        let group = self.groups[at as usize].as_mut()?;
        group.members.remove(&(*bound, id));
        if !group.members.is_empty() {
            return None;
        }
        self.by_key.remove(key);
        self.free.push(at);
        let group = self.groups[at as usize].take()?;
        Some((StatementId(GROUP | at), group))
    }
}
