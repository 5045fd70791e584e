//! Properties of the queue, over random sequences of calls: no more places than there are, no waiter
//! lost, no place idle while a request may have it, groups served in turn.

use miss_control::{
    ClientLevel, Deferral, HeldPlace, Miss, MissGroup, MissKind, MissOrder, MissQueue, QueueEntry,
    QueueLimits, WaiterId, comes_before,
};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const KINDS: [MissKind; 4] = [MissKind::Page, MissKind::Personal, MissKind::Write, MissKind::Part];

/// One call. Numbers select among what there is, modulo its count.
#[derive(Clone, Debug)]
enum Step {
    Enter { level: usize, kind: usize, url: usize, address: u64 },
    Release(usize),
    Leave(usize),
    Defer(usize),
    Raise(usize, usize, u8),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let enter = (0..6usize, 0..KINDS.len(), 0..60usize, 0..40u64);
    let enter =
        enter.prop_map(|(level, kind, url, address)| Step::Enter { level, kind, url, address });
    let one = any::<usize>;
    vec(
        prop_oneof![
            6 => enter,
            4 => one().prop_map(Step::Release),
            1 => one().prop_map(Step::Leave),
            1 => one().prop_map(Step::Defer),
            1 => (one(), 0..6usize, 0..9u8)
                .prop_map(|(at, level, credit)| Step::Raise(at, level, credit)),
            2 => (0..3_000u64).prop_map(Step::Wait),
            // An overload that has begun ends.
            1 => (10_000..15_000u64).prop_map(Step::Wait),
        ],
        1..300,
    )
}

fn group(kind: MissKind, url: usize) -> MissGroup {
    let deep = "/x".repeat(url % 3);
    let query = ["", "?a", "?a&b"][url % 3];
    MissGroup::of(kind, &format!("/s{}{deep}{query}", url / 3))
}

/// A queue beside what the test knows of it. A handle is the number of the request.
struct Tested {
    queue: MissQueue<u32>,
    limits: QueueLimits,
    now: Duration,
    requests: u32,
    waiting: BTreeMap<u32, (WaiterId, Miss)>,
    held: Vec<HeldPlace>,
    ended: BTreeSet<u32>,
}

impl Tested {
    fn new(limits: QueueLimits, order: MissOrder) -> Tested {
        Tested {
            queue: MissQueue::new(limits, order),
            limits,
            now: Duration::ZERO,
            requests: 0,
            waiting: BTreeMap::new(),
            held: Vec::new(),
            ended: BTreeSet::new(),
        }
    }

    fn enter(&mut self, miss: Miss) {
        self.queue.note_time(self.now);
        self.requests += 1;
        let (number, mut deferred) = (self.requests, None);
        let waited = self.queue.waiting();
        match self.queue.enter(miss, || number, &mut deferred) {
            QueueEntry::Place(place) => {
                assert_eq!(waited, 0, "overtakes those that wait");
                self.held.push(place);
                self.end(number);
            }
            QueueEntry::Waits(id, longest) => {
                let deferrable = miss.level != ClientLevel::Confirmed
                    && miss.group.kind.may_be_deferred()
                    && self.queue.order() == MissOrder::Rationed;
                assert_eq!(longest.is_some(), deferrable);
                self.waiting.insert(number, (id, miss));
            }
            QueueEntry::Full => {
                assert!(waited >= self.limits.waiting);
                self.end(number);
            }
            QueueEntry::Deferred => {
                assert_eq!(self.queue.order(), MissOrder::Rationed);
                self.assert_deferrable(&miss);
                self.end(number);
            }
        }
        if let Some(number) = deferred {
            let is_flood = self.is_flood();
            let (_, other) = self.waiting.remove(&number).expect("it waited");
            let may_be_deferred = |miss: &Miss| miss.group.kind.may_be_deferred();
            // Only a flood gives way without being deferrable, and only to better levels.
            if !may_be_deferred(&other) {
                assert!(other.level.is_unknown() && !miss.level.is_unknown());
                let mut deferrable =
                    self.waiting.values().filter(|(_, miss)| may_be_deferred(miss));
                let none = deferrable.all(|(_, miss)| miss.level == ClientLevel::Confirmed);
                assert!(is_flood || none);
            } else {
                self.assert_deferrable(&other);
                assert!(!is_flood || other.level.is_unknown() || !miss.level.is_unknown());
            }
            self.end(number);
        }
        self.settle();
    }

    /// Whether most of the waiters without a confirmed session are never deferred.
    fn is_flood(&self) -> bool {
        let others = self.waiting.values().filter(|(_, miss)| miss.level != ClientLevel::Confirmed);
        let kinds: Vec<MissKind> = others.map(|(_, miss)| miss.group.kind).collect();
        2 * kinds.iter().filter(|kind| !kind.may_be_deferred()).count() > kinds.len()
    }

    fn assert_deferrable(&self, miss: &Miss) {
        assert!(miss.level != ClientLevel::Confirmed && miss.group.kind.may_be_deferred());
    }

    /// Each request ends once.
    fn end(&mut self, number: u32) {
        assert!(self.ended.insert(number), "{number} has ended before");
    }

    /// Gives places until none can be given, and checks everything.
    fn settle(&mut self) {
        while let Some((number, place)) = self.queue.give() {
            let (_, miss) = self.waiting.remove(&number).expect("it waited");
            assert_eq!((place.level, place.group), (miss.level, miss.group));
            self.held.push(place);
            self.end(number);
        }
        self.queue.note_time(self.now);
        assert_eq!(self.queue.busy(), self.held.len());
        assert!(self.held.len() <= self.limits.places);
        assert_eq!(self.queue.waiting(), self.waiting.len());
        assert!(self.waiting.len() <= self.limits.waiting);
        assert_eq!(self.ended.len() + self.waiting.len(), self.requests as usize);
        self.assert_not_idle();
    }

    /// A place is free while a request waits only if it is reserved for better levels.
    fn assert_not_idle(&self) {
        if self.held.len() == self.limits.places || self.waiting.is_empty() {
            return;
        }
        assert_eq!(self.queue.order(), MissOrder::Rationed, "a place is idle");
        let is_write = |level: ClientLevel, group: MissGroup| {
            level.is_unknown() && group.kind == MissKind::Write
        };
        let count =
            |of: &dyn Fn(&HeldPlace) -> bool| self.held.iter().filter(|held| of(held)).count();
        let writes = count(&|held| is_write(held.level, held.group));
        let confirmed = count(&|held| held.level == ClientLevel::Confirmed);
        let others = self.held.len() - writes - confirmed;
        let unknown = count(&|held| held.level.is_unknown() && held.group.kind != MissKind::Write);
        for (_, miss) in self.waiting.values() {
            assert_ne!(miss.level, ClientLevel::Confirmed, "a place is idle");
            let is_limited = if is_write(miss.level, miss.group) {
                writes >= (self.limits.places / 4).max(1)
            } else {
                let is_full = others >= self.queue.other_places();
                is_full || miss.level.is_unknown() && unknown >= self.queue.unknown_places()
            };
            assert!(is_limited, "a place is idle: {miss:?}");
        }
    }

    fn waiter(&self, at: usize) -> Option<u32> {
        let count = self.waiting.len();
        (count > 0).then(|| *self.waiting.keys().nth(at % count).expect("below the count"))
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Enter { level, kind, url, address } => self.enter(Miss {
                level: ClientLevel::ALL[level],
                credit: (url % 7) as u8,
                group: group(KINDS[kind], url),
                address: (address > 4).then_some(address),
            }),
            Step::Release(at) if !self.held.is_empty() => {
                let at = at % self.held.len();
                let place = self.held.swap_remove(at);
                self.queue.release(place, Duration::from_millis(30));
                self.settle();
            }
            Step::Leave(at) => {
                let Some(number) = self.waiter(at) else { return };
                let (id, _) = self.waiting.remove(&number).expect("it waits");
                assert_eq!(self.queue.leave(id), Some(number));
                assert_eq!(self.queue.leave(id), None, "left twice");
                self.end(number);
                self.settle();
            }
            Step::Defer(at) => {
                let Some(number) = self.waiter(at) else { return };
                let (id, miss) = self.waiting[&number];
                match self.queue.defer(id) {
                    Deferral::Deferred(handle) => {
                        assert_eq!(handle, number);
                        self.assert_deferrable(&miss);
                        self.waiting.remove(&number);
                        self.end(number);
                    }
                    Deferral::Stays => assert!(
                        miss.level == ClientLevel::Confirmed || !miss.group.kind.may_be_deferred()
                    ),
                    Deferral::Gone => panic!("it waits"),
                }
                self.settle();
            }
            Step::Raise(at, level, credit) => {
                let Some(number) = self.waiter(at) else { return };
                let (id, miss) = self.waiting.get_mut(&number).expect("it waits");
                let raised = (ClientLevel::ALL[level], credit);
                if comes_before(raised, (miss.level, miss.credit)) {
                    (miss.level, miss.credit) = raised;
                }
                self.queue.raise(*id, raised);
                self.settle();
            }
            Step::Wait(ms) => {
                self.now += Duration::from_millis(ms);
                self.queue.note_time(self.now);
                // The end of overload frees places.
                self.settle();
            }
            Step::Release(_) => {}
        }
    }

    /// Everything ends, and nothing is left.
    fn finish(mut self) {
        while let Some(place) = self.held.pop() {
            self.queue.release(place, Duration::from_millis(30));
            self.settle();
        }
        assert!(self.waiting.is_empty(), "a request waits for ever");
        assert_eq!((self.queue.busy(), self.queue.waiting(), self.queue.groups()), (0, 0, 0));
    }
}

proptest! {
    /// Never more requests than places; no waiter is lost or served twice; no place is idle; in the end
    /// nothing is left.
    #[test]
    fn places_and_waiters_are_accounted_for(
        steps in steps(),
        (places, waiting) in (1..9usize, 0..30usize),
        rationed in any::<bool>(),
    ) {
        let order = if rationed { MissOrder::Rationed } else { MissOrder::Arrival };
        let limits = QueueLimits::new(places, waiting, usize::MAX);
        let mut tested = Tested::new(limits, order);
        for step in steps {
            tested.step(step);
        }
        tested.finish();
    }

    /// By arrival, the first to come is the first to get a place, whatever its level.
    #[test]
    fn by_arrival_the_first_is_the_first(levels in vec(0..6usize, 1..40)) {
        let limits = QueueLimits::new(1, 100, 1);
        let mut queue = MissQueue::new(limits, MissOrder::Arrival);
        let mut place = None;
        for (number, level) in levels.iter().enumerate() {
            let level = ClientLevel::ALL[*level];
            let group = group(MissKind::Page, number);
            let miss = Miss { level, credit: 0, group, address: Some(1) };
            if let QueueEntry::Place(held) = queue.enter(miss, || number, &mut None) {
                place = Some(held);
            }
        }
        let mut order = vec![0];
        while let Some(held) = place.take() {
            queue.release(held, Duration::from_millis(30));
            if let Some((number, held)) = queue.give() {
                order.push(number);
                place = Some(held);
            }
        }
        prop_assert_eq!(order, (0..levels.len()).collect::<Vec<_>>());
    }

    /// A kind is served within as many picks as there are kinds; a shape within as many picks of its
    /// kind, and a first segment within as many picks of its shape, as there are. Late
    /// arrivals change nothing.
    #[test]
    fn each_group_is_served_in_its_turn(
        early in vec((0..KINDS.len(), 0..60usize), 1..60),
        late in vec((0..KINDS.len(), 0..60usize), 0..120),
        level in 1..6usize,
    ) {
        let limits = QueueLimits::new(1, 1_000, 1);
        let mut queue = MissQueue::new(limits, MissOrder::Rationed);
        let enter = |queue: &mut MissQueue<MissGroup>, (kind, url): (usize, usize)| {
            let group = group(KINDS[kind], url);
            let miss = Miss { level: ClientLevel::ALL[level], credit: 0, group, address: None };
            match queue.enter(miss, || group, &mut None) {
                QueueEntry::Place(place) => Some((group, place)),
                _ => None,
            }
        };
        let first = enter(&mut queue, (0, 0)).expect("the place is free");
        let groups: Vec<MissGroup> = early.iter().map(|at| group(KINDS[at.0], at.1)).collect();
        for at in &early {
            enter(&mut queue, *at);
        }
        let count = |of: &dyn Fn(&MissGroup) -> bool| {
            groups.iter().filter(|group| of(group)).collect::<BTreeSet<_>>()
        };
        let kinds = groups.iter().map(|group| group.kind).collect::<BTreeSet<_>>().len();
        let mut place = Some(first.1);
        let mut picks = Vec::new();
        let mut late = late.into_iter();
        while let Some(held) = place.take() {
            queue.release(held, Duration::from_millis(30));
            if let Some((group, held)) = queue.give() {
                picks.push(group);
                place = Some(held);
            }
            // Two arrive for each that is served.
            for at in late.by_ref().take(2) {
                enter(&mut queue, at);
            }
        }
        for wanted in &groups {
            let of_kind: Vec<_> = picks.iter().filter(|pick| pick.kind == wanted.kind).collect();
            let of_shape: Vec<_> =
                of_kind.iter().filter(|pick| pick.shape == wanted.shape).collect();
            let kind_at = picks.iter().position(|pick| pick.kind == wanted.kind);
            let shape_at = of_kind.iter().position(|pick| pick.shape == wanted.shape);
            let section_at = of_shape.iter().position(|pick| pick.section == wanted.section);
            let shapes = count(&|group| group.kind == wanted.kind);
            let shapes = shapes.iter().map(|group| group.shape).collect::<BTreeSet<_>>().len();
            let sections = count(&|group| group.kind == wanted.kind && group.shape == wanted.shape);
            prop_assert!(kind_at.is_some_and(|at| at < kinds), "{wanted:?}: {kind_at:?}");
            prop_assert!(shape_at.is_some_and(|at| at < shapes), "{wanted:?}: {shape_at:?}");
            prop_assert!(section_at.is_some_and(|at| at < sections.len()), "{wanted:?}");
        }
    }
}
