//! Random calls checked by a simple oracle: lists of pages, changes and open names, all searched from end
//! to end. After every call the store is validated and must contain exactly the oracle's pages. Every
//! refusal and every permission to share must be the oracle's.
//!
//! Without the lease check (`--features without-lease-check`) the same test must find a stale page.

#![cfg(not(feature = "loom"))]

mod common;
#[path = "random/oracle.rs"]
mod oracle;

use common::{SITE, TestPayload};
use oracle::{MadeFrom, Oracle};
use page_store::{
    AgeStep, Candidates, Change, ChangeTarget, Dependencies, IdleScan, Lease, Limits, NotReplaced,
    Number, OpenChange, Page, PagePredicate, Store, Strength,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::sync::Arc;

/// URLs with and without queries, above and below each other, so that paths, prefixes and URLs overlap.
const URLS: [&str; 8] = ["/", "/a", "/a?x", "/a?y", "/a/", "/a/b", "/a/b?x", "/b/a/"];
const TAGS: [&str; 4] = ["p", "q", "r", "/a"];
const OWNERS: [&str; 2] = ["ann", "/a"];
/// The text that predicates search for in a URL.
const PARTS: [&str; 3] = ["/b", "?x", "no"];
/// The number of slots for leases and for open changes.
const PLACES: usize = 4;

#[derive(Clone, Copy, Debug)]
enum TargetKind {
    Tag(usize),
    Url(usize),
    Path(usize),
    Prefix(usize),
    Everything,
    Owner(usize),
    OwnerTag(usize, usize),
    OwnerUrl(usize, usize),
}

impl TargetKind {
    fn target(self) -> ChangeTarget<'static> {
        match self {
            Self::Tag(at) => ChangeTarget::Tag(TAGS[at].as_bytes()),
            Self::Url(at) => ChangeTarget::Url(URLS[at].as_bytes()),
            Self::Path(at) => ChangeTarget::Path(URLS[at].as_bytes()),
            Self::Prefix(at) => ChangeTarget::Prefix(URLS[at].as_bytes()),
            Self::Everything => ChangeTarget::Everything,
            Self::Owner(at) => ChangeTarget::Owner(OWNERS[at].as_bytes()),
            Self::OwnerTag(owner, tag) => ChangeTarget::OwnerTag {
                owner: OWNERS[owner].as_bytes(),
                tag: TAGS[tag].as_bytes(),
            },
            Self::OwnerUrl(owner, url) => ChangeTarget::OwnerUrl {
                owner: OWNERS[owner].as_bytes(),
                url: URLS[url].as_bytes(),
            },
        }
    }
}

#[derive(Clone, Debug)]
enum Call {
    TakeLease(usize),
    GiveBack(usize),
    Insert {
        lease: usize,
        variant: u32,
        made_from: MadeFrom,
        bytes: usize,
    },
    Change(Vec<TargetKind>, bool),
    ChangeWhere(usize, bool),
    Open(usize, Vec<TargetKind>, bool),
    Settle(usize),
    LetGo(usize),
    SettleAbandoned,
    Remove(usize),
    /// A response that is not stored; the bits say which of the pages at the URL are older.
    Supersede {
        lease: usize,
        url: usize,
        variant: u32,
        older: u8,
    },
    Replace {
        url: usize,
        bytes: usize,
    },
    Share {
        lease: usize,
        back: u64,
        made_from: MadeFrom,
    },
    Ask(usize),
    /// A scan that stands for this many scans, with a lookup between its two steps.
    GrowOlder(u8, usize),
}

fn what() -> impl Strategy<Value = TargetKind> {
    prop_oneof![
        6 => (0..TAGS.len()).prop_map(TargetKind::Tag),
        2 => (0..URLS.len()).prop_map(TargetKind::Url),
        2 => (0..URLS.len()).prop_map(TargetKind::Path),
        2 => (0..URLS.len()).prop_map(TargetKind::Prefix),
        1 => Just(TargetKind::Everything),
        1 => (0..OWNERS.len()).prop_map(TargetKind::Owner),
        1 => (0..OWNERS.len(), 0..TAGS.len()).prop_map(|(owner, at)| TargetKind::OwnerTag(owner, at)),
        1 => (0..OWNERS.len(), 0..URLS.len()).prop_map(|(owner, at)| TargetKind::OwnerUrl(owner, at)),
    ]
}

fn made_from() -> impl Strategy<Value = MadeFrom> {
    let tags = || prop::collection::vec(prop::sample::select(&TAGS[..]), 0..3);
    let owner = prop::option::weighted(0.3, (prop::sample::select(&OWNERS[..]), tags()));
    (prop::sample::select(&URLS[..]), tags(), owner).prop_map(|(url, tags, owner)| MadeFrom {
        url,
        tags,
        owner,
    })
}

fn call() -> impl Strategy<Value = Call> {
    let whats = || prop::collection::vec(what(), 0..3);
    let place = || 0..PLACES;
    let url = || 0..URLS.len();
    prop_oneof![
        3 => place().prop_map(Call::TakeLease),
        1 => place().prop_map(Call::GiveBack),
        8 => (place(), 0..3u32, made_from(), 0..3_000usize).prop_map(
            |(lease, variant, made_from, bytes)| Call::Insert { lease, variant, made_from, bytes }
        ),
        4 => (whats(), any::<bool>()).prop_map(|(whats, hard)| Call::Change(whats, hard)),
        2 => (0..PARTS.len(), any::<bool>())
            .prop_map(|(part, hard)| Call::ChangeWhere(part, hard)),
        2 => (place(), whats(), any::<bool>())
            .prop_map(|(at, whats, hard)| Call::Open(at, whats, hard)),
        2 => place().prop_map(Call::Settle),
        1 => place().prop_map(Call::LetGo),
        1 => Just(Call::SettleAbandoned),
        1 => url().prop_map(Call::Remove),
        3 => (place(), url(), 0..=EVERY, any::<u8>()).prop_map(|(lease, url, variant, older)| {
            Call::Supersede { lease, url, variant, older }
        }),
        3 => (url(), 0..3_000usize).prop_map(|(url, bytes)| Call::Replace { url, bytes }),
        3 => (place(), 0..5u64, made_from())
            .prop_map(|(lease, back, made_from)| Call::Share { lease, back, made_from }),
        2 => url().prop_map(Call::Ask),
        4 => (1..9u8, url()).prop_map(|(rounds, url)| Call::GrowOlder(rounds, url)),
    ]
}

/// In a call that supersedes: every variant of the URL.
const EVERY: u32 = oracle::EVERY;

/// Whether the store must agree with the oracle exactly, or only within bounds.
#[cfg_attr(feature = "without-lease-check", allow(dead_code))]
#[derive(Clone, Copy, PartialEq, Eq)]
enum Exactness {
    Exact,
    /// Pages may be evicted, and renders may be refused for lack of memory.
    Bounded,
}

struct Run {
    store: Store<TestPayload>,
    oracle: Oracle,
    exactness: Exactness,
    leases: [Option<Lease>; PLACES],
    opened: [Option<(OpenChange, usize)>; PLACES],
    /// Arrival stamps: every value that the clock has had.
    stamps: Vec<Number>,
}

impl Run {
    fn new(limits: Limits, exactness: Exactness) -> Self {
        let oracle = Oracle::new(limits.variants_max);
        let store = Store::new(limits);
        let stamps = vec![store.number()];
        let (leases, opened) = (Default::default(), Default::default());
        Self { store, oracle, exactness, leases, opened, stamps }
    }

    fn apply(&mut self, call: &Call) {
        match call {
            Call::TakeLease(at) => self.leases[*at] = Some(self.store.lease()),
            Call::GiveBack(at) => self.leases[*at] = None,
            Call::Insert { lease, variant, made_from, bytes } => {
                self.insert(*lease, *variant, made_from, *bytes);
            }
            Call::Change(whats, hard) => self.change(whats, *hard),
            Call::ChangeWhere(part, hard) => self.change_where(PARTS[*part], *hard),
            Call::Open(at, whats, hard) => self.open(*at, whats, *hard),
            Call::Settle(at) => {
                if let Some((opened, of_oracle)) = self.opened[*at].take() {
                    let number = self.store.settle(opened);
                    self.oracle.settle(number.get(), of_oracle);
                }
            }
            Call::LetGo(at) => {
                if let Some((opened, of_oracle)) = self.opened[*at].take() {
                    drop(opened);
                    self.oracle.abandon(of_oracle);
                }
            }
            Call::SettleAbandoned => {
                let number = self.store.settle_abandoned();
                self.oracle.settle_abandoned(number.get());
            }
            Call::Remove(url) => self.remove(*url),
            Call::Supersede { lease, url, variant, older } => {
                self.supersede(*lease, URLS[*url], *variant, *older);
            }
            Call::Replace { url, bytes } => self.replace(*url, *bytes),
            Call::Share { lease, back, made_from } => self.share(*lease, *back, made_from),
            Call::Ask(url) => drop(self.ask(*url)),
            Call::GrowOlder(rounds, url) => self.grow_older(*rounds, *url),
        }
        if self.stamps.last() != Some(&self.store.number()) {
            self.stamps.push(self.store.number());
        }
        self.compare();
    }

    fn insert(&mut self, lease: usize, variant: u32, made_from: &MadeFrom, bytes: usize) {
        let Some(lease) = &self.leases[lease] else { return };
        let made = TestPayload { from: self.oracle.renders(), bytes };
        let key = self.store.key(made_from.url.as_bytes());
        let dependencies = self.depends(made_from);
        let stored = self.store.insert(key, variant, &dependencies, lease, made.clone());
        let stored = stored.map_err(|refused| refused.reason);
        let lease = lease.number().get();
        match (self.exactness, &stored) {
            (Exactness::Exact, Err(reason)) => {
                let may = self.oracle.reasons_to_refuse(variant, made_from, lease);
                assert!(may.contains(reason), "refused as {reason}, should be one of {may:?}");
            }
            (_, Ok(_)) => self.oracle.insert(variant, made_from, lease, made.from),
            (Exactness::Bounded, Err(_)) => {}
        }
        if self.exactness == Exactness::Exact && stored.is_ok() {
            let may = self.oracle.reasons_before_last_insert();
            assert!(may.is_empty(), "stored in spite of {may:?}");
        }
    }

    fn depends(&self, made_from: &MadeFrom) -> Dependencies {
        let mut depends = common::depends(&self.store, made_from.url, &made_from.tags);
        if let Some((owner, tags)) = &made_from.owner {
            depends.owner(owner.as_bytes());
            tags.iter().for_each(|tag| {
                depends.private_tag(tag.as_bytes());
            });
        }
        depends
    }

    fn change(&mut self, whats: &[TargetKind], hard: bool) {
        let targets: Vec<ChangeTarget<'_>> = whats.iter().map(|what| what.target()).collect();
        let strength = if hard { Strength::Drop } else { Strength::Mark };
        let applied = self.store.change(&Change { site: SITE, targets: &targets }, strength);
        let expected = self.oracle.change(applied.number.get(), &targets, strength);
        if self.exactness == Exactness::Exact {
            assert_eq!((applied.dropped, applied.marked), expected);
        }
    }

    fn change_where(&mut self, part: &'static str, hard: bool) {
        let touches: PagePredicate<TestPayload> = Arc::new(move |page: &Page<TestPayload>| {
            String::from_utf8_lossy(page.key().bytes()).contains(part)
        });
        let strength = if hard { Strength::Drop } else { Strength::Mark };
        let applied = self.store.change_where(SITE, &touches, strength, 0);
        let expected = self.oracle.change_where(applied.number.get(), part, strength);
        if self.exactness == Exactness::Exact {
            assert_eq!((applied.dropped, applied.marked), expected);
        }
    }

    fn open(&mut self, at: usize, whats: &[TargetKind], hard: bool) {
        if self.opened[at].is_some() {
            return;
        }
        let targets: Vec<ChangeTarget<'_>> = whats.iter().map(|what| what.target()).collect();
        let strength = if hard { Strength::Drop } else { Strength::Mark };
        let opened = self.store.open(&Change { site: SITE, targets: &targets }, strength);
        self.oracle.change(opened.applied().number.get(), &targets, strength);
        let of_oracle = self.oracle.open(opened.applied().number.get(), &targets);
        self.opened[at] = Some((opened, of_oracle));
    }

    fn ask(&mut self, url: usize) -> Candidates<TestPayload> {
        self.oracle.asked(URLS[url]);
        self.store.candidates(self.store.key(URLS[url].as_bytes()))
    }

    fn grow_older(&mut self, rounds: u8, asked: usize) {
        let mut round = IdleScan::new(AgeStep::By(rounds));
        let mut inactive = Vec::new();
        while !round.is_over() {
            inactive.extend(self.store.grow_older(&mut round));
        }
        self.oracle.grow_older(rounds);
        drop(self.ask(asked));
        let dropped = self.store.remove_inactive(&inactive);
        let expected = self.oracle.remove_inactive();
        match self.exactness {
            Exactness::Exact => assert_eq!(dropped, expected),
            Exactness::Bounded => assert!(dropped <= expected),
        }
    }

    fn remove(&mut self, url: usize) {
        let candidates = self.ask(url);
        if let Some(page) = candidates.iter().next() {
            self.store.remove(page);
            self.oracle.remove(page.payload().from);
        }
    }

    /// Supersedes the variants of the older pages and one more, or every variant.
    fn supersede(&mut self, lease: usize, url: &'static str, variant: u32, bits: u8) {
        let Some(lease) = &self.leases[lease] else { return };
        let key = self.store.key(url.as_bytes());
        let found = self.store.peek(key);
        let is_chosen = |(at, _): &(usize, &Page<TestPayload>)| bits >> (at % 8) & 1 == 1;
        let older: Vec<Page<TestPayload>> =
            found.iter().enumerate().filter(is_chosen).map(|(_, page)| page.clone()).collect();
        let mut variants: Vec<u32> = older.iter().map(|page| page.variant()).collect();
        variants.push(variant);
        let done = match variant {
            EVERY => self.store.supersede_key(key, lease, &older),
            _ => self.store.supersede(key, &variants, lease, &older),
        };
        let renders: Vec<u64> = older.iter().map(|page| page.payload().from).collect();
        let number = done.number.get();
        let removed = self.oracle.supersede(number, url, &variants, lease.number().get(), &renders);
        let gone: Vec<u64> = done.removed.iter().map(|page| page.payload().from).collect();
        assert_eq!(gone, removed);
        assert!(done.removed.iter().all(|page| !page.is_stored()));
    }

    /// Another form of the same render. The oracle knows only renders and sees no difference.
    fn replace(&mut self, url: usize, bytes: usize) {
        let candidates = self.store.peek(self.store.key(URLS[url].as_bytes()));
        for page in candidates.iter() {
            let made = TestPayload { from: page.payload().from, bytes };
            match self.store.replace_payload(page, made) {
                Ok(new) => {
                    assert!(!page.is_marked(), "a mark is lost");
                    let gone = self.store.replace_payload(page, page.payload().clone());
                    assert_eq!(gone.err(), Some(NotReplaced::NotStored));
                    assert_eq!(described(&new), described(page));
                }
                Err(reason) => {
                    let expected = if page.is_marked() {
                        NotReplaced::Marked
                    } else if self.exactness == Exactness::Bounded {
                        // An earlier page that grew may have evicted this one.
                        return;
                    } else {
                        NotReplaced::TooLarge
                    };
                    assert_eq!(reason, expected);
                }
            }
        }
    }

    fn share(&mut self, lease: usize, back: u64, made_from: &MadeFrom) {
        let Some(lease) = &self.leases[lease] else { return };
        let at = self.stamps.len().saturating_sub(1 + back as usize);
        let arrival = self.stamps[at];
        let mut dependencies = self.depends(made_from);
        dependencies.place(self.store.key(made_from.url.as_bytes()), 0);
        let may = self.store.may_share(lease.number(), arrival, &dependencies).is_ok();
        let (lease, arrival) = (lease.number().get(), arrival.get());
        if may {
            let why_not = self.oracle.why_not_share(made_from, lease, arrival);
            assert_eq!(why_not, None, "shared with lease {lease}, arrival {arrival}");
        } else if self.exactness == Exactness::Exact {
            assert!(!self.oracle.nothing_since(made_from, lease), "refused for no reason");
        }
    }

    fn compare(&self) {
        self.store.validate();
        for url in URLS {
            let candidates = self.store.peek(self.store.key(url.as_bytes()));
            let found = candidates.iter().map(described).collect::<Vec<_>>();
            let expected = self.oracle.pages(url);
            match self.exactness {
                Exactness::Exact => assert_eq!(found, expected, "at {url}"),
                Exactness::Bounded => {
                    assert!(
                        found.iter().all(|page| expected.contains(page)),
                        "at {url}: {found:?}"
                    );
                }
            }
        }
    }
}

/// Variant, render, lease, mark.
fn described(page: &Page<TestPayload>) -> (u64, u64, u64, bool) {
    (page.variant().into(), page.payload().from, page.lease().get(), page.is_marked())
}

fn run(calls: &[Call], limits: Limits, exactness: Exactness) {
    let mut run = Run::new(limits, exactness);
    for call in calls {
        run.apply(call);
    }
    let Run { store, leases, opened, .. } = run;
    drop((leases, opened));
    drop(store.lease());
    assert_eq!(store.stats().changes_remembered, 0);
    store.validate();
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    prop::collection::vec(call(), 1..80)
}

fn config(cases: u32) -> Config {
    Config { cases, failure_persistence: None, max_shrink_iters: 2_000, ..Config::default() }
}

#[cfg(not(feature = "without-lease-check"))]
#[test]
fn the_store_is_the_oracle() {
    let limits =
        || Limits { sweep_pages: 2, variants_max: 2, predicates_max: 100, ..Limits::new(1 << 24) };
    TestRunner::new(config(2_000))
        .run(&calls(), |calls| {
            run(&calls, limits(), Exactness::Exact);
            Ok(())
        })
        .unwrap();
}

#[cfg(not(feature = "without-lease-check"))]
#[test]
fn a_small_store_holds_nothing_that_the_oracle_does_not() {
    let limits = || Limits {
        sweep_pages: 1,
        changes_remembered_max: 2,
        opens_max: 2,
        predicates_max: 1,
        owner_pages_max: 2,
        page_bytes_max: 3_000,
        // An empty store already takes most of it.
        ..Limits::new(50_000)
    };
    let evicted = std::cell::Cell::new(0);
    TestRunner::new(config(1_000))
        .run(&calls(), |calls| {
            let mut all = Run::new(limits(), Exactness::Bounded);
            calls.iter().for_each(|call| all.apply(call));
            evicted.set(evicted.get() + all.store.stats().counters.evicted);
            Ok(())
        })
        .unwrap();
    assert!(evicted.get() > 0, "the budget is too large to show anything");
}

#[cfg(feature = "without-lease-check")]
#[test]
fn without_the_lease_check_a_stale_page_is_found() {
    let found = TestRunner::new(config(2_000)).run(&calls(), |calls| {
        run(&calls, Limits::new(1 << 24), Exactness::Exact);
        Ok(())
    });
    let failure = found.unwrap_err().to_string();
    assert!(failure.contains("stored in spite of"), "{failure}");
}
