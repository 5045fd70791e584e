//! The state of the search and its actors. Each step of an actor is one call of the store, or one event
//! outside it.
//!
//! The truth is two version numbers (data) that writers increment. `visible` is what a render reads now.
//! `must_see` is what has been acknowledged: a later request must be answered from at least these versions.

use page_store::{
    Change, ChangeTarget, Dependencies, FillLimits, Fills, Follower, Leader, Lease, Number,
    OpenChange, Page, PagePredicate, Payload, Site, Store, Strength, Turn,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

const SITE: Site = Site(0);
const TAGS: [&[u8]; 2] = [b"0", b"1"];

/// The versions of the two data.
type Versions = [u64; 2];

/// The content of a page: the versions that its render read, and 0 for data that it did not read.
#[derive(Clone, Copy)]
pub struct Content {
    seen: Versions,
    reads: &'static [usize],
}

impl Content {
    fn is_older_than(&self, versions: &Versions) -> bool {
        self.reads.iter().any(|datum| self.seen[*datum] < versions[*datum])
    }
}

impl Payload for Content {
    fn bytes(&self) -> usize {
        0
    }
}

/// A page that actors request: its URL, the data on which it depends, and its owner.
#[derive(Clone, Copy)]
pub struct Pages {
    pub url: &'static str,
    pub reads: &'static [usize],
    pub owner: Option<&'static str>,
}

impl Pages {
    fn key(self) -> Vec<u8> {
        [self.url, self.owner.unwrap_or_default()].concat().into_bytes()
    }
}

/// The name by which a change affects its datum.
#[derive(Clone, Copy)]
pub enum Way {
    /// The tag of the datum.
    Tag,
    /// A directory above all pages.
    Prefix,
    /// A predicate that is true for all pages.
    Predicate,
    /// The tag of the datum in the scope of an owner.
    OwnerTag(&'static str),
}

/// The limits of a search.
#[derive(Clone, Copy)]
pub struct Limits {
    changes_remembered_max: usize,
    opens_max: usize,
}

impl Limits {
    pub const ROOMY: Self = Self { changes_remembered_max: 100, opens_max: 100 };
    pub const FORGETFUL: Self = Self { changes_remembered_max: 1, opens_max: 100 };
    pub const NO_OPENS: Self = Self { changes_remembered_max: 100, opens_max: 0 };
}

/// The object on which the followers of a render wait.
type Waiter = Rc<RefCell<Answer>>;

#[derive(Clone, Copy)]
enum Answer {
    Awaited,
    Here(Content),
    None,
}

pub struct World {
    pub store: Store<Content>,
    fills: Fills<Waiter>,
    visible: Versions,
    must_see: Versions,
    stale_answer: Option<String>,
    /// The renders in progress on behalf of requests, by key.
    running: BTreeMap<Vec<u8>, usize>,
}

impl World {
    pub fn new(bounds: Limits) -> Self {
        let limits = page_store::Limits {
            changes_remembered_max: bounds.changes_remembered_max,
            predicates_max: bounds.changes_remembered_max.min(16),
            opens_max: bounds.opens_max,
            sweep_pages: 1,
            ..page_store::Limits::new(1 << 20)
        };
        let fills = Fills::new(FillLimits { followers_max: 10, alone_max: 16 });
        let store = Store::with_seed(limits, 1);
        let (visible, must_see, running) = ([0; 2], [0; 2], BTreeMap::new());
        Self { store, fills, visible, must_see, stale_answer: None, running }
    }

    /// The first violation: a stale response, or a stored page that would be one.
    pub fn stale(&self) -> Option<String> {
        let pages = self.store.pages(SITE, &ChangeTarget::Everything, 0, 100).pages;
        let stale = pages
            .iter()
            .find(|page| !page.is_marked() && page.payload().is_older_than(&self.must_see))
            .map(|page| format!("a stale {page:?} in the store"));
        let crowded = self.running.values().any(|count| *count > 1);
        let crowded = crowded.then(|| "two renders of a page at once".to_string());
        self.stale_answer.clone().or(stale).or(crowded)
    }

    fn dependencies(&self, page: Pages) -> Dependencies {
        let mut dependencies = self.store.dependencies(SITE, page.url.as_bytes());
        if let Some(owner) = page.owner {
            dependencies.owner(owner.as_bytes());
        }
        for datum in page.reads {
            match page.owner {
                Some(_) => dependencies.private_tag(TAGS[*datum]),
                None => dependencies.tag(TAGS[*datum]),
            };
        }
        dependencies.place(self.store.key(&page.key()), 0);
        dependencies
    }

    fn render(&self, page: Pages) -> Content {
        Content { seen: self.visible, reads: page.reads }
    }

    fn insert(&self, page: Pages, lease: &Lease, content: Content) {
        let bytes = page.key();
        let key = self.store.key(&bytes);
        // A refusal is as good as an insertion: only the pages that are found count.
        let _ = self.store.insert(key, 0, &self.dependencies(page), lease, content);
    }

    fn answer(&mut self, must_see: &Versions, content: Content, how: &str) {
        if content.is_older_than(must_see) {
            self.stale_answer = Some(format!("a stale answer ({how})"));
        }
    }
}

/// An actor that takes steps.
pub trait Actor {
    fn is_done(&self) -> bool;
    fn can_go_on(&self) -> bool;
    /// Takes the next step; returns its name.
    fn step(&mut self, world: &mut World) -> &'static str;
}

/// A request for a page, with collapse.
pub fn request(page: Pages) -> Box<dyn Actor> {
    let (arrival, must_see) = (None, [0; 2]);
    Box::new(Request { page, asks: true, state: State::Arriving, arrival, must_see })
}

/// A request that takes any response of a leader without checking whether it may.
pub fn careless_request(page: Pages) -> Box<dyn Actor> {
    let (arrival, must_see) = (None, [0; 2]);
    Box::new(Request { page, asks: false, state: State::Arriving, arrival, must_see })
}

struct Request {
    page: Pages,
    asks: bool,
    state: State,
    arrival: Option<Number>,
    must_see: Versions,
}

enum State {
    Arriving,
    Looking,
    Rendering(Leader<Waiter>),
    Storing(Leader<Waiter>, Content),
    Waiting(Follower<Waiter>),
    Done,
}

impl Actor for Request {
    fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    fn can_go_on(&self) -> bool {
        match &self.state {
            State::Waiting(follower) => !matches!(*follower.waiter().borrow(), Answer::Awaited),
            _ => true,
        }
    }

    fn step(&mut self, world: &mut World) -> &'static str {
        match std::mem::replace(&mut self.state, State::Done) {
            State::Arriving => {
                self.arrival = Some(world.store.number());
                self.must_see = world.must_see;
                self.state = State::Looking;
                "arrives"
            }
            State::Looking => self.look(world),
            State::Rendering(leader) => {
                self.state = State::Storing(leader, world.render(self.page));
                "reads"
            }
            State::Storing(leader, content) => {
                world.insert(self.page, leader.lease(), content);
                *world.running.entry(self.page.key()).or_insert(0) -= 1;
                *leader.waiter().borrow_mut() = Answer::Here(content);
                world.answer(&self.must_see, content, "rendered");
                "stores and answers"
            }
            State::Waiting(follower) => self.take_answer(world, follower),
            State::Done => unreachable!("a done actor takes no step"),
        }
    }
}

impl Request {
    fn look(&mut self, world: &mut World) -> &'static str {
        let bytes = self.page.key();
        let key = world.store.key(&bytes);
        let found = world.store.candidates(key);
        if let Some(page) = found.iter().find(|page| !page.is_marked()) {
            world.answer(&self.must_see, *page.payload(), "hit");
            return "hits";
        }
        let arrival = self.arrival.expect("set when it arrived");
        let turn = world.fills.turn(&world.store, key, arrival, 0, waiter);
        self.take_turn(world, turn)
    }

    fn take_turn(&mut self, world: &mut World, turn: Turn<Waiter>) -> &'static str {
        match turn {
            Turn::Lead(leader) => {
                *world.running.entry(self.page.key()).or_insert(0) += 1;
                self.state = State::Rendering(leader);
                "leads"
            }
            Turn::Follow(follower) => {
                self.state = State::Waiting(follower);
                "follows"
            }
            Turn::Alone(_) => unreachable!("nothing here is alone"),
        }
    }

    fn take_answer(&mut self, world: &mut World, follower: Follower<Waiter>) -> &'static str {
        let answer = *follower.waiter().borrow();
        let may_share = follower.may_share(&world.store, &world.dependencies(self.page));
        match answer {
            Answer::Here(content) if may_share.is_ok() || !self.asks => {
                world.answer(&self.must_see, content, "shared");
                "shares"
            }
            Answer::Awaited => unreachable!("it waited"),
            _ => {
                let turn = world.fills.again(&world.store, follower, 0, waiter);
                self.take_turn(world, turn)
            }
        }
    }
}

fn waiter() -> Waiter {
    Rc::new(RefCell::new(Answer::Awaited))
}

/// A leader that ends without a response notifies its followers.
impl Drop for Request {
    fn drop(&mut self) {
        if let State::Rendering(leader) | State::Storing(leader, _) = &self.state {
            *leader.waiter().borrow_mut() = Answer::None;
        }
    }
}

/// A render without collapse: lease, read, store.
pub fn store_only(page: Pages) -> Box<dyn Actor> {
    Box::new(StoreOnly { page, lease: None, content: None, done: false })
}

struct StoreOnly {
    page: Pages,
    lease: Option<Lease>,
    content: Option<Content>,
    done: bool,
}

impl Actor for StoreOnly {
    fn is_done(&self) -> bool {
        self.done
    }

    fn can_go_on(&self) -> bool {
        true
    }

    fn step(&mut self, world: &mut World) -> &'static str {
        match (&self.lease, self.content) {
            (None, _) => {
                self.lease = Some(world.store.lease());
                "takes a lease"
            }
            (Some(_), None) => {
                self.content = Some(world.render(self.page));
                "reads"
            }
            (Some(lease), Some(content)) => {
                world.insert(self.page, lease, content);
                (self.lease, self.done) = (None, true);
                "stores"
            }
        }
    }
}

/// A page that its origin withdraws without a change: the row changes, and a render gets a final response
/// that is not stored. From that response on, no older page may be used.
pub fn withdrawal(page: Pages) -> Box<dyn Actor> {
    Box::new(Withdrawal { page, state: Withdrawing::Committing })
}

struct Withdrawal {
    page: Pages,
    state: Withdrawing,
}

enum Withdrawing {
    Committing,
    Beginning,
    Reading(Lease),
    Superseding(Lease, Content),
    Done,
}

impl Actor for Withdrawal {
    fn is_done(&self) -> bool {
        matches!(self.state, Withdrawing::Done)
    }

    fn can_go_on(&self) -> bool {
        true
    }

    fn step(&mut self, world: &mut World) -> &'static str {
        match std::mem::replace(&mut self.state, Withdrawing::Done) {
            Withdrawing::Committing => {
                self.page.reads.iter().for_each(|datum| world.visible[*datum] += 1);
                self.state = Withdrawing::Beginning;
                "commits without a word"
            }
            Withdrawing::Beginning => {
                self.state = Withdrawing::Reading(world.store.lease());
                "takes a lease"
            }
            Withdrawing::Reading(lease) => {
                self.state = Withdrawing::Superseding(lease, world.render(self.page));
                "gets an answer that is not stored"
            }
            Withdrawing::Superseding(lease, content) => {
                let bytes = self.page.key();
                let key = world.store.key(&bytes);
                let found = world.store.peek(key);
                let is_older = |page: &&Page<Content>| page.payload().is_older_than(&content.seen);
                let older: Vec<_> = found.iter().filter(is_older).cloned().collect();
                let _ = world.store.supersede(key, &[0], &lease, &older);
                for datum in self.page.reads {
                    let must_see = &mut world.must_see[*datum];
                    *must_see = (*must_see).max(content.seen[*datum]);
                }
                "supersedes"
            }
            Withdrawing::Done => unreachable!("a done actor takes no step"),
        }
    }
}

#[derive(Clone, Copy)]
enum Event {
    /// The row becomes visible to renders.
    Commit,
    /// A change is applied and acknowledged when the call returns.
    Change(Strength),
    /// The event of the stream is applied.
    Open,
    /// The open change is settled and acknowledged.
    Settle,
    /// The open change is dropped unsettled.
    LetGo,
    /// All abandoned changes are settled and acknowledged.
    SettleAbandoned,
}

/// A writer that commits, applies the change and acknowledges it.
pub fn writer(datum: usize) -> Box<dyn Actor> {
    script(datum, &[Event::Commit, Event::Change(Strength::Drop)])
}

/// A writer whose change uses another name than the tag of the datum.
pub fn writer_by(way: Way, strength: Strength) -> Box<dyn Actor> {
    let events: &'static [Event] = match strength {
        Strength::Drop => &[Event::Commit, Event::Change(Strength::Drop)],
        Strength::Mark => &[Event::Commit, Event::Change(Strength::Mark)],
    };
    Box::new(Writer { datum: 0, way, events, opened: None, version: 0 })
}

/// A writer with a soft change.
pub fn soft_writer(datum: usize) -> Box<dyn Actor> {
    script(datum, &[Event::Commit, Event::Change(Strength::Mark)])
}

/// A change stream whose event arrives before the row is visible.
pub fn stream(datum: usize) -> Box<dyn Actor> {
    script(datum, &[Event::Open, Event::Commit, Event::Settle])
}

/// A change stream whose event arrives after the row is visible.
pub fn cluster_late(datum: usize) -> Box<dyn Actor> {
    script(datum, &[Event::Commit, Event::Open, Event::Settle])
}

/// A change stream that breaks while a change is open, and settles when it has resumed.
pub fn stream_that_breaks(datum: usize) -> Box<dyn Actor> {
    script(datum, &[Event::Open, Event::LetGo, Event::Commit, Event::SettleAbandoned])
}

/// A faulty stream that settles before the row is visible.
pub fn stream_settled_early(datum: usize) -> Box<dyn Actor> {
    script(datum, &[Event::Open, Event::Settle, Event::Commit, Event::SettleAbandoned])
}

fn script(datum: usize, events: &'static [Event]) -> Box<dyn Actor> {
    Box::new(Writer { datum, way: Way::Tag, events, opened: None, version: 0 })
}

struct Writer {
    datum: usize,
    way: Way,
    events: &'static [Event],
    opened: Option<OpenChange>,
    version: u64,
}

impl Actor for Writer {
    fn is_done(&self) -> bool {
        self.events.is_empty()
    }

    fn can_go_on(&self) -> bool {
        true
    }

    fn step(&mut self, world: &mut World) -> &'static str {
        let (event, rest) = self.events.split_first().expect("a done actor takes no step");
        self.events = rest;
        let targets = [self.target()];
        let change = Change { site: SITE, targets: &targets };
        match event {
            Event::Commit => {
                world.visible[self.datum] += 1;
                self.version = world.visible[self.datum];
                "commits"
            }
            Event::Change(strength) => {
                match self.way {
                    Way::Predicate => {
                        let touches: PagePredicate<Content> = Arc::new(|_: &Page<Content>| true);
                        world.store.change_where(SITE, &touches, *strength, 0)
                    }
                    _ => world.store.change(&change, *strength),
                };
                self.acknowledge(world);
                "changes"
            }
            Event::Open => {
                self.opened = Some(world.store.open(&change, Strength::Drop));
                "opens"
            }
            Event::Settle => {
                world.store.settle(self.opened.take().expect("it was opened"));
                self.acknowledge(world);
                "settles"
            }
            Event::LetGo => {
                self.opened = None;
                "lets go"
            }
            Event::SettleAbandoned => {
                world.store.settle_abandoned();
                self.acknowledge(world);
                "settles what was abandoned"
            }
        }
    }
}

impl Writer {
    fn target(&self) -> ChangeTarget<'static> {
        let tag = TAGS[self.datum];
        match self.way {
            Way::Tag | Way::Predicate => ChangeTarget::Tag(tag),
            Way::Prefix => ChangeTarget::Prefix(b"/p/"),
            Way::OwnerTag(owner) => ChangeTarget::OwnerTag { owner: owner.as_bytes(), tag },
        }
    }

    fn acknowledge(&self, world: &mut World) {
        let must_see = &mut world.must_see[self.datum];
        *must_see = (*must_see).max(self.version);
    }
}
