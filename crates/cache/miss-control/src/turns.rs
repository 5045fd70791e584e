//! The waiting requests in their groups, and whose turn it is (max-min fairness).
//!
//! Free places go to the kinds in turn, then to the shapes of the kind, then to its first segments. A
//! turn is a number: the group with the smallest is next, and gets a new one when it is served. A group
//! that begins to wait gets a new one, too, so it is behind all that wait already. Therefore a group
//! whose requests may be served is served within as many picks of its parent as it has siblings.
//!
//! Within a group the best level is first. In a level the oldest waiter is first, and under overload the one with the
//! most credit: a crawler has the credit of one page at an address, a visitor that of a visit.
//!
//! A pick looks at every group, at most one for each waiter, and at most [`SECTIONS_MAX`] and one more
//! for each kind and shape.

use crate::group::{ClientLevel, MissGroup, MissKind, UrlShape};
use crate::queue::{Miss, WaiterId};
use std::collections::{BTreeMap, BTreeSet};

/// The most first segments of one kind and shape that are distinguished; further ones wait together.
const SECTIONS_MAX: usize = 32;

/// Which of a group's requests of one level is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AgeOrder {
    OldestFirst,
    /// Under overload: the client with the most credit, and of several the newest, because the oldest will be deferred
    /// anyway.
    MostCreditFirst,
}

/// A kind or a shape: its turn, and the number of its waiters.
#[derive(Clone, Copy, Debug, Default)]
struct Branch {
    turn: u64,
    waiters: usize,
}

/// The waiters of one group, and its turn.
#[derive(Debug, Default)]
struct Leaf {
    turn: u64,
    /// By level, then by credit, then by age.
    waiters: BTreeSet<(ClientLevel, u8, WaiterId)>,
}

/// All groups with waiters.
#[derive(Debug)]
pub(crate) struct Turns {
    last: u64,
    kinds: [Branch; MissKind::COUNT],
    shapes: Box<[[Branch; UrlShape::COUNT]; MissKind::COUNT]>,
    leaves: BTreeMap<MissGroup, Leaf>,
}

impl Turns {
    pub(crate) fn new() -> Turns {
        Turns {
            last: 0,
            kinds: Default::default(),
            shapes: Box::new([[Branch::default(); UrlShape::COUNT]; MissKind::COUNT]),
            leaves: BTreeMap::new(),
        }
    }

    /// Adds a waiter. Returns the group in which it waits.
    pub(crate) fn add(&mut self, miss: &Miss, id: WaiterId) -> MissGroup {
        let group = self.place_of(miss.group);
        self.last += 1;
        let turn = self.last;
        let (kind, shape) = (group.kind as usize, group.shape.index());
        for branch in [&mut self.kinds[kind], &mut self.shapes[kind][shape]] {
            if branch.waiters == 0 {
                branch.turn = turn;
            }
            branch.waiters += 1;
        }
        let leaf = self.leaves.entry(group).or_insert_with(|| Leaf { turn, ..Leaf::default() });
        leaf.waiters.insert((miss.level, miss.credit, id));
        group
    }

    /// The group itself, or the one of all first segments that are not distinguished.
    fn place_of(&self, group: MissGroup) -> MissGroup {
        if self.leaves.contains_key(&group) {
            return group;
        }
        let from_first = self.leaves.range(group.first()..).map(|(other, _)| other);
        let siblings = from_first.take_while(|other| other.first() == group.first());
        if siblings.take(SECTIONS_MAX).count() < SECTIONS_MAX { group } else { group.other() }
    }

    /// Removes a waiter from the group in which it waits.
    pub(crate) fn remove(&mut self, group: MissGroup, miss: &Miss, id: WaiterId) {
        let Some(leaf) = self.leaves.get_mut(&group) else { return };
        if !leaf.waiters.remove(&(miss.level, miss.credit, id)) {
            return;
        }
        if leaf.waiters.is_empty() {
            self.leaves.remove(&group);
        }
        let kind = group.kind as usize;
        self.kinds[kind].waiters -= 1;
        self.shapes[kind][group.shape.index()].waiters -= 1;
    }

    /// Moves a waiter of a group to another level and credit.
    pub(crate) fn move_to(&mut self, group: MissGroup, (from, to): (&Miss, &Miss), id: WaiterId) {
        if let Some(leaf) = self.leaves.get_mut(&group)
            && leaf.waiters.remove(&(from.level, from.credit, id))
        {
            leaf.waiters.insert((to.level, to.credit, id));
        }
    }

    /// The next waiter of a level up to the `worst` of its kind, without removing it; its group's turn is over.
    pub(crate) fn pick(
        &mut self,
        worst: [Option<ClientLevel>; MissKind::COUNT],
        order: AgeOrder,
    ) -> Option<WaiterId> {
        let turn = |group: &MissGroup, leaf: &Leaf| {
            let kind = group.kind as usize;
            let shape = self.shapes[kind][group.shape.index()];
            (self.kinds[kind].turn, shape.turn, leaf.turn)
        };
        let may_go = |group: &MissGroup, leaf: &Leaf| {
            let worst = worst[group.kind as usize];
            let best = leaf.waiters.first().map(|(level, ..)| *level);
            worst.is_some_and(|worst| best.is_some_and(|best| best <= worst))
        };
        let eligible = self.leaves.iter().filter(|(group, leaf)| may_go(group, leaf));
        let group = *eligible.min_by_key(|(group, leaf)| turn(group, leaf))?.0;
        self.last += 1;
        let kind = group.kind as usize;
        self.kinds[kind].turn = self.last;
        self.shapes[kind][group.shape.index()].turn = self.last;
        let leaf = self.leaves.get_mut(&group)?;
        leaf.turn = self.last;
        let (level, ..) = *leaf.waiters.first()?;
        // Requests that are never deferred would starve if others could come before them for ever.
        match if group.kind.may_be_deferred() { order } else { AgeOrder::OldestFirst } {
            AgeOrder::OldestFirst => leaf.of_level(level).min(),
            AgeOrder::MostCreditFirst => leaf.of_level(level).next_back(),
        }
    }

    /// The waiter that gives way when the queue is full: of the group with the most waiters, among
    /// those that may be deferred, the one that this order would pick last.
    pub(crate) fn victim(&self, order: AgeOrder) -> Option<WaiterId> {
        let all = self.leaves.iter().filter(|(group, _)| group.kind.may_be_deferred());
        let (_, fullest) = all.max_by_key(|(_, leaf)| leaf.waiters.len())?;
        fullest.last(order)
    }

    /// The request that gives way when the queue is full of those that are never deferred: of the group with the most,
    /// the newest of a client without evidence. The oldest are next.
    pub(crate) fn flood_victim(&self) -> Option<WaiterId> {
        let never = self.leaves.iter().filter(|(group, _)| !group.kind.may_be_deferred());
        let unknown =
            |leaf: &Leaf| leaf.waiters.last().is_some_and(|(level, ..)| level.is_unknown());
        let (_, fullest) =
            never.filter(|(_, leaf)| unknown(leaf)).max_by_key(|(_, leaf)| leaf.waiters.len())?;
        fullest.last(AgeOrder::OldestFirst)
    }

    /// Whether most of the waiters are never deferred.
    pub(crate) fn is_flood(&self) -> bool {
        let (mut all, mut never) = (0, 0);
        for kind in MissKind::ALL {
            let waiters = self.kinds[kind as usize].waiters;
            all += waiters;
            never += if kind.may_be_deferred() { 0 } else { waiters };
        }
        2 * never > all
    }

    /// The number of groups with waiters.
    pub(crate) fn groups(&self) -> usize {
        self.leaves.len()
    }
}

impl Leaf {
    /// The waiter that this order picks last.
    fn last(&self, order: AgeOrder) -> Option<WaiterId> {
        let (worst, ..) = *self.waiters.last()?;
        match order {
            AgeOrder::OldestFirst => self.of_level(worst).max(),
            AgeOrder::MostCreditFirst => self.of_level(worst).next(),
        }
    }

    /// Its waiters of one level, by their credit, the least first.
    fn of_level(&self, level: ClientLevel) -> impl DoubleEndedIterator<Item = WaiterId> {
        let all = (level, 0, WaiterId::FIRST)..=(level, u8::MAX, WaiterId::LAST);
        self.waiters.range(all).map(|(.., id)| *id)
    }
}
