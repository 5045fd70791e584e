//! Every order of the steps by which a place moves from one request to the next: the table of interleavings in
//! `origin/src/places.rs`, walked completely. A step is what happens there under one lock, or the use of a waiter's
//! channel, which happens under none.
//!
//! Each order must end with all places free and no waiter, and every request has been served, was deferred, or its
//! client is gone. Never are more places held than there are.

use miss_control::{
    ClientLevel, Deferral, HeldPlace, Miss, MissGroup, MissKind, MissOrder, MissQueue, QueueEntry,
    QueueLimits, WaiterId,
};
use std::collections::BTreeSet;
use std::time::Duration;

/// The behaviour of a client that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Patience {
    /// It waits until it is served, or has to give way.
    Waits,
    /// Its longest wait may end at any moment.
    Ends,
    /// It may disconnect at any moment.
    Disconnects,
}

/// The state of a request.
#[derive(Debug)]
enum State {
    Arrives,
    Waits(WaiterId),
    /// Its longest wait has ended just after it was selected: its place is in the channel, or will be.
    Selected,
    Served(HeldPlace),
    /// Its client has disconnected. It leaves the queue, and drops its end of the channel, in this order or the other.
    Gone {
        id: WaiterId,
        has_left: bool,
        is_dropped: bool,
    },
    Ended(&'static str),
}

/// A channel between the queue and one waiter.
#[derive(Debug)]
struct Channel {
    place: Option<HeldPlace>,
    has_sender: bool,
    has_receiver: bool,
}

/// A request, with the places that its task has taken from the queue and not yet sent to their waiters.
struct Request {
    patience: Patience,
    miss: Miss,
    state: State,
    channel: Channel,
    sends: Vec<(usize, HeldPlace)>,
}

/// A step that is possible: the request, and which of its steps.
type Step = (usize, &'static str);

struct World {
    queue: MissQueue<usize>,
    requests: Vec<Request>,
    /// The request whose level a follower raises, until it has.
    raises: Option<usize>,
}

impl World {
    /// One place, which the first request has when the others come.
    fn new(others: &[(Patience, ClientLevel)], waiting: usize, raises: Option<usize>) -> World {
        let limits = QueueLimits::new(1, waiting, 1);
        let first = (Patience::Waits, ClientLevel::Confirmed);
        let request = |(patience, level): (Patience, ClientLevel)| {
            let group = MissGroup::of(MissKind::Page, "/");
            let channel = Channel { place: None, has_sender: true, has_receiver: true };
            let miss = Miss { level, credit: 0, group, address: None };
            Request { patience, miss, state: State::Arrives, channel, sends: Vec::new() }
        };
        let mut requests: Vec<_> = [&[first], others].concat().into_iter().map(request).collect();
        // The follower, whose task sends the places that are free after it has raised a level.
        let follower = request((Patience::Waits, ClientLevel::Confirmed));
        requests.push(Request { state: State::Ended("follows"), ..follower });
        let queue = MissQueue::new(limits, MissOrder::Rationed);
        let mut world = World { queue, requests, raises };
        world.take((0, "arrives"));
        world
    }

    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for (at, request) in self.requests.iter().enumerate() {
            if !request.sends.is_empty() {
                steps.push((at, "sends"));
                continue;
            }
            let can_receive = request.channel.place.is_some() || !request.channel.has_sender;
            match request.state {
                State::Arrives => steps.push((at, "arrives")),
                State::Served(_) => steps.push((at, "releases")),
                State::Waits(_) | State::Selected if can_receive => steps.push((at, "receives")),
                _ => {}
            }
            match (&request.state, request.patience) {
                (State::Waits(_), Patience::Ends) => steps.push((at, "defers")),
                (State::Waits(_), Patience::Disconnects) => steps.push((at, "disconnects")),
                (State::Gone { has_left, is_dropped, .. }, _) => {
                    if !has_left {
                        steps.push((at, "leaves"));
                    }
                    if !is_dropped {
                        steps.push((at, "drops"));
                    }
                }
                _ => {}
            }
        }
        if let Some(at) = self.raises {
            steps.push((at, "is raised"));
        }
        steps
    }

    /// Takes the places that are free for waiters, as the caller does before it releases the lock.
    fn hand_over(&mut self, at: usize) {
        while let Some((waiter, place)) = self.queue.give() {
            self.requests[at].sends.push((waiter, place));
            // The sender is with the place from now on.
        }
    }

    fn release(&mut self, at: usize, place: HeldPlace) {
        self.queue.release(place, Duration::from_millis(30));
        self.hand_over(at);
    }

    fn arrive(&mut self, at: usize) {
        let (miss, mut gives_way) = (self.requests[at].miss, None);
        let state = match self.queue.enter(miss, || at, &mut gives_way) {
            QueueEntry::Place(place) => State::Served(place),
            QueueEntry::Waits(id, _) => State::Waits(id),
            QueueEntry::Full | QueueEntry::Deferred => State::Ended("deferred at once"),
        };
        self.requests[at].state = state;
        self.hand_over(at);
        if let Some(other) = gives_way {
            self.requests[other].channel.has_sender = false;
        }
    }

    fn take(&mut self, (at, step): Step) {
        match step {
            "arrives" => self.arrive(at),
            "is raised" => self.raise(at),
            "sends" => {
                let (waiter, place) = self.requests[at].sends.pop().expect("there is one");
                let channel = &mut self.requests[waiter].channel;
                channel.has_sender = false;
                if channel.has_receiver {
                    channel.place = Some(place);
                } else {
                    self.release(at, place);
                }
            }
            _ => self.take_own((at, step)),
        }
        let sent: usize = self.requests.iter().map(|one| one.sends.len()).sum();
        let kept = self
            .requests
            .iter()
            .filter(|one| matches!(one.state, State::Served(_)) || one.channel.place.is_some());
        assert_eq!(sent + kept.count(), self.queue.busy(), "a place is lost");
        assert!(self.queue.busy() <= 1);
    }

    /// A follower raises the level, behind the lock of the level: before the request enters, or while it waits.
    fn raise(&mut self, at: usize) {
        self.raises = None;
        match self.requests[at].state {
            State::Arrives => self.requests[at].miss.level = ClientLevel::Confirmed,
            State::Waits(id) | State::Gone { id, .. } => {
                self.queue.raise(id, (ClientLevel::Confirmed, 0));
                self.hand_over(self.requests.len() - 1);
            }
            _ => {}
        }
    }

    fn take_own(&mut self, (at, step): Step) {
        let state = std::mem::replace(&mut self.requests[at].state, State::Ended(""));
        self.requests[at].state = match (state, step) {
            (State::Served(place), "releases") => {
                self.release(at, place);
                State::Ended("served")
            }
            (State::Waits(_) | State::Selected, "receives") => {
                match self.requests[at].channel.place.take() {
                    Some(place) => State::Served(place),
                    None => State::Ended("gave way"),
                }
            }
            (State::Waits(id), "defers") => match self.queue.defer(id) {
                Deferral::Deferred(_) => State::Ended("deferred"),
                Deferral::Gone => State::Selected,
                Deferral::Stays => {
                    self.requests[at].patience = Patience::Waits;
                    State::Waits(id)
                }
            },
            (State::Waits(id), "disconnects") => {
                State::Gone { id, has_left: false, is_dropped: false }
            }
            (State::Gone { id, is_dropped, .. }, "leaves") => {
                self.queue.leave(id);
                gone(id, true, is_dropped)
            }
            (State::Gone { id, has_left, .. }, "drops") => {
                let channel = &mut self.requests[at].channel;
                channel.has_receiver = false;
                if let Some(place) = channel.place.take() {
                    self.release(at, place);
                }
                gone(id, has_left, true)
            }
            (state, _) => panic!("{step} in {state:?}"),
        };
    }
}

fn gone(id: WaiterId, has_left: bool, is_dropped: bool) -> State {
    if has_left && is_dropped {
        State::Ended("gone")
    } else {
        State::Gone { id, has_left, is_dropped }
    }
}

/// Runs every order of the steps. Returns the number of orders, and the ends of each request.
fn explore(world: impl Fn() -> World) -> (usize, BTreeSet<(usize, &'static str)>) {
    let (mut choices, mut orders, mut ends) = (Vec::<(usize, usize)>::new(), 0, BTreeSet::new());
    loop {
        let (mut world, mut depth, mut taken) = (world(), 0, Vec::new());
        loop {
            let steps = world.steps();
            if steps.is_empty() {
                break;
            }
            if depth == choices.len() {
                choices.push((0, steps.len()));
            }
            let step = steps[choices[depth].0];
            taken.push(step);
            world.take(step);
            depth += 1;
        }
        orders += 1;
        for (at, request) in world.requests.iter().enumerate() {
            let State::Ended(end) = request.state else { panic!("{at} waits for ever: {taken:?}") };
            ends.insert((at, end));
        }
        assert_eq!((world.queue.busy(), world.queue.waiting()), (0, 0), "{taken:?}");
        while choices.last().is_some_and(|(chosen, of)| chosen + 1 == *of) {
            choices.pop();
        }
        let Some((chosen, _)) = choices.last_mut() else { return (orders, ends) };
        *chosen += 1;
    }
}

#[test]
fn no_order_of_select_leave_raise_and_hand_over_loses_a_place_or_a_waiter() {
    use ClientLevel::{Known, Unknown};
    use Patience::{Disconnects, Ends, Waits};
    for (others, waiting, raises, expected) in [
        (&[(Disconnects, Unknown), (Waits, Unknown)][..], 9, None, &["served", "gone"][..]),
        (&[(Ends, Unknown), (Disconnects, Known)], 9, None, &["served", "deferred", "gone"]),
        (&[(Ends, Unknown), (Waits, Known)], 9, Some(1), &["served", "deferred"]),
        (&[(Disconnects, Unknown), (Ends, Known)], 9, Some(1), &["served", "gone", "deferred"]),
        (&[(Ends, Unknown), (Waits, Known)], 1, None, &["served", "deferred", "gave way"]),
    ] {
        let (orders, ends) = explore(|| World::new(others, waiting, raises));
        println!("{others:?}: {orders} orders");
        assert!(orders > 20, "{others:?}: {orders} orders only");
        for end in expected {
            assert!(ends.iter().any(|(_, one)| one == end), "{others:?}: never {end}: {ends:?}");
        }
    }
}

/// A follower that is never deferred raises its leader: once raised, it is served.
#[test]
fn a_leader_that_is_raised_before_its_wait_ends_is_served() {
    let (_, ends) = explore(|| {
        let others = [(Patience::Ends, ClientLevel::Unknown)];
        let mut world = World::new(&others, 9, Some(1));
        world.take((1, "is raised"));
        world
    });
    assert_eq!(ends, BTreeSet::from([(0, "served"), (1, "served"), (2, "follows")]));
}
