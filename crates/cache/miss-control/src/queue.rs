//! The places at the origin, and the requests that wait for one.
//!
//! | call | when | what may follow |
//! |---|---|---|
//! | [`MissQueue::enter`] | a request needs the origin | a place, a wait, or a refusal |
//! | [`MissQueue::enter_if_free`] | a request that no client waits for | a place, or nothing |
//! | [`MissQueue::give`] | after each other call, until it returns none | a waiter is given a place |
//! | [`MissQueue::raise`] | a client of a better level, or with more credit, waits for the same page | the order changes |
//! | [`MissQueue::defer`] | a waiter has waited for its longest wait | it is deferred, unless it was raised |
//! | [`MissQueue::leave`] | no request may wait longer, or the client is gone | |
//! | [`MissQueue::release`] | a request is complete | a place is free |
//!
//! A place is counted from the moment when its waiter is selected, not from when the waiter's task
//! runs. So no request that arrives in between can take it, and a waiter that is gone by then must
//! [release](MissQueue::release) it.
//!
//! By [`MissOrder::Arrival`] all places are for everybody, the first to arrive is the first to get one,
//! and nothing is deferred. By [`MissOrder::Rationed`], confirmed visitors are first, the groups follow
//! in turn ([`Turns`]), and places are reserved ([`TakenPlaces`]).

use crate::group::{ClientLevel, MissGroup, MissKind, comes_before};
use crate::overload::{Overload, OverloadChange};
use crate::shares::{PlaceTerms, TakenPlaces};
use crate::turns::{AgeOrder, Turns};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

/// The longest wait of a request that may be deferred: shorter than a visitor's patience, and longer
/// than a burst of visitors needs.
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// The same under overload, if pages are quick. After a longer wait, the client has often gone.
const WAIT_OVERLOADED: Duration = Duration::from_millis(500);
/// Under overload a request waits for at least so many requests of the usual duration: with one place for unknown
/// clients and pages of 0.4 s, the turn of another group comes after one of them, and 0.5 s may be too short for two.
const WAIT_IN_REQUESTS: u32 = 3;
/// The most waiting requests of one unknown address: those of one browser.
const WAITING_UNKNOWN: u32 = 8;
/// The same of a known address, behind which there may be an office.
const WAITING_KNOWN: u32 = 32;
/// After so many confirmed visitors in sequence, one place goes to the others.
const CONFIRMED_IN_SEQUENCE: u32 = 7;

/// How requests are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissOrder {
    /// In the order of arrival; nothing is deferred.
    #[default]
    Arrival,
    /// By level and group; requests are deferred.
    Rationed,
}

/// The bounds of a queue.
#[derive(Clone, Copy, Debug)]
pub struct QueueLimits {
    /// The concurrent requests at the origin.
    pub places: usize,
    /// The maximum number of waiting requests.
    pub waiting: usize,
    /// The most places for unknown clients under overload; the table applies, too.
    pub unknown: usize,
    /// The longest wait of a request that may be deferred, at least half a second.
    pub longest_wait: Duration,
}

impl QueueLimits {
    /// The bounds with the product's longest wait, two seconds.
    #[must_use]
    pub fn new(places: usize, waiting: usize, unknown: usize) -> QueueLimits {
        QueueLimits { places, waiting, unknown, longest_wait: LONGEST_WAIT }
    }
}

/// A request that needs the origin.
#[derive(Clone, Copy, Debug)]
pub struct Miss {
    /// The evidence about its client.
    pub level: ClientLevel,
    /// The credit of a known client, by which those are ordered under overload.
    pub credit: u8,
    /// The group of its URL.
    pub group: MissGroup,
    /// Its client's address, as a number; none if it is not known, or shared by many clients.
    pub address: Option<u64>,
}

impl Miss {
    fn may_be_deferred(&self) -> bool {
        self.level != ClientLevel::Confirmed && self.group.kind.may_be_deferred()
    }

    /// Whether it shows, while it waits, that the origin is overloaded. Requests of clients without evidence that are
    /// never deferred do, too: otherwise a flood of them would have all places.
    fn is_pressing(&self) -> bool {
        self.level.is_unknown() || self.may_be_deferred()
    }
}

/// A waiter's number. A greater one arrived later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaiterId(u64);

impl WaiterId {
    pub(crate) const FIRST: WaiterId = WaiterId(0);
    pub(crate) const LAST: WaiterId = WaiterId(u64::MAX);
}

/// A place at the origin. It must be [released](MissQueue::release).
#[derive(Debug)]
#[must_use = "a place that is not released is lost"]
pub struct HeldPlace {
    /// The level for which it counts.
    pub level: ClientLevel,
    /// The group of the request.
    pub group: MissGroup,
    /// Whether no other request was at the origin when it was given.
    pub was_alone: bool,
}

/// The result of entering.
#[derive(Debug)]
pub enum QueueEntry {
    /// The request may be sent.
    Place(HeldPlace),
    /// The request waits, at most so long; without a time, as long as any request may.
    Waits(WaiterId, Option<Duration>),
    /// Too many requests wait.
    Full,
    /// The request is deferred at once: its group is the fullest of a full queue, or too many requests
    /// of its address wait.
    Deferred,
}

/// The result for a request that would enter now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissOutlook {
    /// It would be sent at once.
    AtOnce,
    /// It would wait, at most so long; without a time, as long as any request may.
    Waits(Option<Duration>),
    /// It would be deferred at once: too many requests of its address wait.
    Deferred,
    /// The queue is full.
    QueueFull,
}

/// The result of [`MissQueue::defer`].
#[derive(Debug)]
#[must_use]
pub enum Deferral<H> {
    /// It waits no more.
    Deferred(H),
    /// It was raised to a level that is not deferred, and waits on.
    Stays,
    /// It has been given a place, or was deferred before.
    Gone,
}

#[derive(Debug)]
struct QueuedMiss<H> {
    handle: H,
    miss: Miss,
    /// The group in which it waits.
    group: MissGroup,
}

/// The places of one origin, and the requests that wait for one. `H` notifies a waiter.
#[derive(Debug)]
pub struct MissQueue<H> {
    limits: QueueLimits,
    order: MissOrder,
    last_id: u64,
    /// The requests at the origin.
    taken: TakenPlaces,
    waiting: BTreeMap<WaiterId, QueuedMiss<H>>,
    /// Those of confirmed visitors.
    confirmed: BTreeSet<WaiterId>,
    /// Those of all others.
    turns: Turns,
    /// The number of waiters that show an overload.
    pressing: usize,
    /// The time of the last call.
    now: Duration,
    /// The waiters of each address.
    addresses: HashMap<u64, u32>,
    in_sequence: u32,
    overload: Overload,
}

impl<H> MissQueue<H> {
    /// A queue without requests.
    pub fn new(limits: QueueLimits, order: MissOrder) -> MissQueue<H> {
        MissQueue {
            limits,
            order,
            last_id: 0,
            taken: TakenPlaces::new(limits),
            waiting: BTreeMap::new(),
            confirmed: BTreeSet::new(),
            turns: Turns::new(),
            pressing: 0,
            now: Duration::ZERO,
            addresses: HashMap::new(),
            in_sequence: 0,
            overload: Overload::default(),
        }
    }

    /// Gives the request a place, or has it wait. `handle` is called if it waits; `deferred` gets the
    /// handle of a waiter that has to give way to it: one that may be deferred, or, if this client is not unknown, one
    /// of an unknown client.
    pub fn enter(
        &mut self,
        miss: Miss,
        handle: impl FnOnce() -> H,
        deferred: &mut Option<H>,
    ) -> QueueEntry {
        if miss.level == ClientLevel::Confirmed {
            self.taken.note_confirmed(self.now);
        }
        if self.waiting.is_empty() && self.has_place_for(miss.level, miss.group.kind) {
            return QueueEntry::Place(self.taken.occupy(miss.level, miss.group));
        }
        let is_full = self.waiting.len() >= self.limits.waiting;
        if self.order == MissOrder::Arrival {
            return if is_full { QueueEntry::Full } else { self.wait(miss, handle()) };
        }
        if miss.may_be_deferred() && self.has_enough(&miss) {
            return QueueEntry::Deferred;
        }
        let entry = self.wait(miss, handle());
        if !is_full {
            return entry;
        }
        let QueueEntry::Waits(id, _) = entry else { return entry };
        let victim = self.victim(&miss, id);
        let removed = self.remove(victim.unwrap_or(id));
        if victim.is_none() {
            return QueueEntry::Full;
        }
        if victim == Some(id) {
            return QueueEntry::Deferred;
        }
        *deferred = removed.map(|waiter| waiter.handle);
        entry
    }

    /// The waiter that gives way to this request, which has just begun to wait, because the queue is full: it may be that
    /// request itself. None: no waiter gives way.
    ///
    /// | most waiters | the request | gives way |
    /// |---|---|---|
    /// | may be deferred | any | of these, the last in the fullest group |
    /// | are never deferred | of a client with evidence | the newest of these of a client without; else as in the first row |
    /// | are never deferred | of a client without, may be deferred | as in the first row, but itself instead of one with evidence |
    /// | are never deferred | of a client without, is never deferred | none |
    fn victim(&self, miss: &Miss, id: WaiterId) -> Option<WaiterId> {
        let of_flood = || if miss.level.is_unknown() { None } else { self.turns.flood_victim() };
        let deferrable = || self.turns.victim(self.age_order());
        if !self.turns.is_flood() {
            return deferrable().or_else(of_flood);
        }
        if !miss.level.is_unknown() {
            return of_flood().or_else(deferrable);
        }
        let victim = deferrable().filter(|_| miss.may_be_deferred())?;
        let is_unknown = self.waiting.get(&victim).is_some_and(|one| one.miss.level.is_unknown());
        Some(if is_unknown { victim } else { id })
    }

    /// Whether too many requests of its address wait already.
    fn has_enough(&self, miss: &Miss) -> bool {
        let Some(count) = miss.address.and_then(|address| self.addresses.get(&address)) else {
            return false;
        };
        match miss.level {
            // A ticket has a rate of its own, and its client may share the address with a crawler.
            ClientLevel::Passed | ClientLevel::Returned => false,
            ClientLevel::Unknown | ClientLevel::OverRate => *count >= WAITING_UNKNOWN,
            _ => *count >= WAITING_KNOWN,
        }
    }

    fn wait(&mut self, miss: Miss, handle: H) -> QueueEntry {
        self.last_id += 1;
        let id = WaiterId(self.last_id);
        let group = if miss.level == ClientLevel::Confirmed {
            self.confirmed.insert(id);
            miss.group
        } else {
            self.turns.add(&miss, id)
        };
        self.pressing += usize::from(miss.is_pressing());
        if let Some(address) = miss.address {
            *self.addresses.entry(address).or_default() += 1;
        }
        self.waiting.insert(id, QueuedMiss { handle, miss, group });
        QueueEntry::Waits(id, self.longest_wait(&miss))
    }

    /// The longest wait of the request; none if it waits as long as any request may.
    fn longest_wait(&self, miss: &Miss) -> Option<Duration> {
        if self.order == MissOrder::Arrival || !miss.may_be_deferred() {
            return None;
        }
        let usual = self.taken.usual_time() * WAIT_IN_REQUESTS;
        Some(if self.overload.is_on() {
            usual.clamp(WAIT_OVERLOADED, self.limits.longest_wait)
        } else {
            self.limits.longest_wait
        })
    }

    fn remove(&mut self, id: WaiterId) -> Option<QueuedMiss<H>> {
        let waiter = self.waiting.remove(&id)?;
        if waiter.miss.level == ClientLevel::Confirmed {
            self.confirmed.remove(&id);
        } else {
            self.turns.remove(waiter.group, &waiter.miss, id);
        }
        self.pressing -= usize::from(waiter.miss.is_pressing());
        if let Some(address) = waiter.miss.address
            && let Some(count) = self.addresses.get_mut(&address)
        {
            *count -= 1;
            if *count == 0 {
                self.addresses.remove(&address);
            }
        }
        Some(waiter)
    }

    /// Gives the next waiter a place, if there is one for it. The caller notifies it, and calls this
    /// again until it returns none.
    pub fn give(&mut self) -> Option<(H, HeldPlace)> {
        let id = self.select()?;
        let waiter = self.remove(id)?;
        let place = self.taken.occupy(waiter.miss.level, waiter.miss.group);
        Some((waiter.handle, place))
    }

    fn select(&mut self) -> Option<WaiterId> {
        if self.taken.is_full() {
            return None;
        }
        if self.order == MissOrder::Arrival {
            return self.waiting.keys().next().copied();
        }
        let confirmed = self.confirmed.first().copied();
        let others_wait = self.turns.groups() > 0;
        if confirmed.is_some() && (self.in_sequence < CONFIRMED_IN_SEQUENCE || !others_wait) {
            self.in_sequence = if others_wait { self.in_sequence + 1 } else { 0 };
            return confirmed;
        }
        let worst = |kind| {
            ClientLevel::ALL.into_iter().rev().find(|level| self.has_place_for(*level, kind))
        };
        let worst = MissKind::ALL.map(worst);
        let order = self.age_order();
        let other = self.turns.pick(worst, order);
        self.in_sequence = 0;
        other.or(confirmed)
    }

    fn age_order(&self) -> AgeOrder {
        if self.overload.is_on() { AgeOrder::MostCreditFirst } else { AgeOrder::OldestFirst }
    }

    /// The result for a request that would enter now. Nothing changes.
    pub fn outlook(&self, miss: &Miss) -> MissOutlook {
        let is_full = self.waiting.len() >= self.limits.waiting;
        let is_rationed = self.order == MissOrder::Rationed && miss.may_be_deferred();
        if self.waiting.is_empty() && self.has_place_for(miss.level, miss.group.kind) {
            MissOutlook::AtOnce
        } else if is_rationed && self.has_enough(miss) {
            MissOutlook::Deferred
        } else if is_full {
            MissOutlook::QueueFull
        } else {
            MissOutlook::Waits(self.longest_wait(miss))
        }
    }

    /// Whether a place is free for such a request, if no other request waits.
    fn has_place_for(&self, level: ClientLevel, kind: MissKind) -> bool {
        self.taken.has_one_for((level, kind), self.terms())
    }

    fn terms(&self) -> PlaceTerms {
        PlaceTerms { order: self.order, is_overloaded: self.overload.is_on(), now: self.now }
    }

    /// Frees a place, which was held for so long. [`MissQueue::give`] gives it to a waiter.
    pub fn release(&mut self, place: HeldPlace, took: Duration) {
        let terms = self.terms();
        self.taken.release(&place, took, terms);
    }

    /// Removes a waiter. Returns its handle; none if it has been given a place, or was deferred.
    pub fn leave(&mut self, id: WaiterId) -> Option<H> {
        self.remove(id).map(|waiter| waiter.handle)
    }

    /// Defers a waiter after its longest wait.
    pub fn defer(&mut self, id: WaiterId) -> Deferral<H> {
        match self.waiting.get(&id) {
            None => Deferral::Gone,
            Some(waiter) if !waiter.miss.may_be_deferred() => Deferral::Stays,
            Some(_) => self.leave(id).map_or(Deferral::Gone, Deferral::Deferred),
        }
    }

    /// Raises a waiter to a level and credit, because a client with them waits for the same page. If they do not come
    /// before its own ([`comes_before`]), or it does not wait any more, nothing changes. Returns whether it was raised.
    pub fn raise(&mut self, id: WaiterId, (level, credit): (ClientLevel, u8)) -> bool {
        let Some(waiter) = self.waiting.get_mut(&id) else { return false };
        let before = waiter.miss;
        if !comes_before((level, credit), (before.level, before.credit)) {
            return false;
        }
        let raised = Miss { level, credit, ..before };
        waiter.miss = raised;
        self.pressing -= usize::from(before.is_pressing());
        self.pressing += usize::from(raised.is_pressing());
        if level == ClientLevel::Confirmed {
            self.turns.remove(waiter.group, &before, id);
            self.confirmed.insert(id);
        } else {
            self.turns.move_to(waiter.group, (&before, &raised), id);
        }
        true
    }

    /// Brings overload up to date. To be called with each other call, before it and after it.
    pub fn note_time(&mut self, now: Duration) -> Option<OverloadChange> {
        self.now = self.now.max(now);
        self.overload.note(self.pressing > 0, now)
    }

    /// Changes the order. Requests that wait keep their longest waits. An overload is forgotten if the order is
    /// another one, or if it is not watched any more.
    pub fn set_order(&mut self, order: MissOrder, is_watched: bool) {
        if self.order != order || !is_watched {
            self.order = order;
            self.overload.reset();
        }
    }

    /// How requests are ordered.
    pub fn order(&self) -> MissOrder {
        self.order
    }

    /// Whether the origin is overloaded, as of the last time.
    pub fn is_overloaded(&self) -> bool {
        self.overload.is_on()
    }

    /// How long it has been overloaded, if it is.
    pub fn overloaded_for(&self, now: Duration) -> Option<Duration> {
        self.overload.lasts(now)
    }

    /// Gives a place to a request that no client waits for: only if no request waits, the origin is not overloaded,
    /// and `free` places are free. One of them is taken, the others stay free for clients. Nothing waits, and nothing
    /// gives way. The check and the place are one step.
    pub fn enter_if_free(&mut self, group: MissGroup, free: usize) -> Option<HeldPlace> {
        let level = ClientLevel::OverRate;
        let is_calm = self.waiting.is_empty() && !self.overload.is_on();
        let is_free = self.limits.places.saturating_sub(self.busy()) >= free.max(1);
        (is_calm && is_free && self.has_place_for(level, group.kind))
            .then(|| self.taken.occupy(level, group))
    }

    /// Whether a place is free for work that no client waits for: no request waits, and places are not rationed
    /// because of an overload.
    pub fn has_one_to_spare(&self) -> bool {
        let is_rationed = self.order == MissOrder::Rationed && self.overload.is_on();
        !self.taken.is_full() && self.waiting.is_empty() && !is_rationed
    }

    /// The number of requests at the origin.
    pub fn busy(&self) -> usize {
        self.taken.busy()
    }

    /// The number of waiting requests.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The number of groups in which requests wait.
    pub fn groups(&self) -> usize {
        self.turns.groups()
    }

    /// The places that all but confirmed visitors have now, without writes of unknown clients.
    pub fn other_places(&self) -> usize {
        self.taken.for_others(self.terms())
    }

    /// The places that unknown clients have now.
    pub fn unknown_places(&self) -> usize {
        self.taken.for_unknown(self.terms())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1,024 of them wait by default (`limits.origin_queue`), each with a number in one or two sets.
    #[test]
    fn a_waiter_is_small() {
        assert!(size_of::<(WaiterId, QueuedMiss<usize>)>() <= 128);
    }

    /// Neither do their pages give way to it, nor are they deferred because of it.
    #[test]
    fn a_flood_of_writes_does_not_defer_the_pages_of_visitors_with_evidence() {
        const WRITES: [&str; 4] = ["0", "1", "2", "3"];
        let limits = QueueLimits::new(1, WRITES.len(), 1);
        let mut queue = MissQueue::new(limits, MissOrder::Rationed);
        let mut enter = |level: ClientLevel, kind: MissKind, name: &'static str| {
            let group = MissGroup::of(kind, &format!("/{}", kind.as_str()));
            let (miss, mut gave_way) = (Miss { level, credit: 0, group, address: None }, None);
            let entry = queue.enter(miss, || name, &mut gave_way);
            (entry, gave_way)
        };
        let (_held, _) = enter(ClientLevel::Confirmed, MissKind::Page, "at the origin");
        for name in WRITES {
            let (entry, gave_way) = enter(ClientLevel::Unknown, MissKind::Write, name);
            assert!(matches!(entry, QueueEntry::Waits(..)) && gave_way.is_none(), "{name}");
        }
        let (page, gave_way) = enter(ClientLevel::Known, MissKind::Page, "page");
        assert!(matches!(page, QueueEntry::Waits(_, Some(_))), "{page:?}");
        assert_eq!(gave_way, Some("3"));
        let (write, gave_way) = enter(ClientLevel::Unknown, MissKind::Write, "4");
        assert!(matches!(write, QueueEntry::Full) && gave_way.is_none(), "{write:?}");
        let (other, gave_way) = enter(ClientLevel::Returned, MissKind::Page, "other page");
        assert!(matches!(other, QueueEntry::Deferred) && gave_way.is_none(), "{other:?}");
        let (second, gave_way) = enter(ClientLevel::Known, MissKind::Personal, "second page");
        assert!(matches!(second, QueueEntry::Waits(..)), "{second:?}");
        assert_eq!(gave_way, Some("2"));
        // Two writes of five waiters are no flood: of the fullest group, the last gives way.
        let (third, gave_way) = enter(ClientLevel::Known, MissKind::Page, "third page");
        assert!(matches!(third, QueueEntry::Deferred) && gave_way.is_none(), "{third:?}");
    }
}
