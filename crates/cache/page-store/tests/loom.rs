//! Interleavings *within* the calls, under the memory model of the machine, which the state-space search
//! cannot see. Run with `cargo test -p page-store --features loom --test loom --release`.
//!
//! Each test is one race, which loom runs under every schedule. An acknowledgement in one thread is a join
//! in the test: everything after it must see the change. Under `without-lease-check` the first test must
//! find the stale page.

#![cfg(feature = "loom")]

#[path = "loom/restore.rs"]
mod restore;

use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use page_store::{
    Change, ChangeTarget, Dependencies, FillLimits, Fills, Lease, Limits, Page, PagePredicate,
    Payload, Site, Store, StoreRefusal, Strength, Turn,
};
use std::sync::Arc;

const SITE: Site = Site(0);
const NEWS: &[ChangeTarget<'static>] = &[ChangeTarget::Tag(b"news")];

/// The version of the data from which a page was rendered.
struct Version(u64);

impl Payload for Version {
    fn bytes(&self) -> usize {
        0
    }
}

type TestStore = Store<Version>;

/// Runs the race under every schedule, without a limit on preemptions. Fails if there were too few
/// schedules to matter.
fn explore(race: impl Fn() + Sync + Send + 'static) {
    explore_at_least(20, race);
}

/// The same with a minimum number of schedules, for calls that take only one lock once.
fn explore_at_least(least: usize, race: impl Fn() + Sync + Send + 'static) {
    let schedules = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = Arc::clone(&schedules);
    let model = loom::model::Builder::new();
    model.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        race();
    });
    let schedules = schedules.load(Ordering::Relaxed);
    println!("{schedules} schedules");
    assert!(schedules >= least, "{schedules} schedules only");
}

fn store() -> TestStore {
    Store::with_seed(Limits { sweep_pages: 1, ..Limits::new(1 << 16) }, 1)
}

fn dependencies(store: &TestStore) -> Dependencies {
    let mut dependencies = store.dependencies(SITE, b"/");
    dependencies.tag(b"news");
    dependencies
}

fn insert(store: &TestStore, key: &[u8], lease: &Lease, version: u64) -> Result<(), StoreRefusal> {
    let key = store.key(key);
    let stored = store.insert(key, 0, &dependencies(store), lease, Version(version));
    stored.map(|_| ()).map_err(|refused| refused.reason)
}

fn change(store: &TestStore) {
    store.change(&Change { site: SITE, targets: NEWS }, Strength::Drop);
}

/// The oldest version stored under `key`, if there is one.
fn stored(store: &TestStore, key: &[u8]) -> Option<u64> {
    let found = store.candidates(store.key(key));
    found.iter().filter(|page| !page.is_marked()).map(|page| page.payload().0).min()
}

/// A render: lease, read, insertion.
fn render(store: &TestStore, truth: &AtomicU64, key: &[u8]) {
    let lease = store.lease();
    let version = truth.load(Ordering::SeqCst);
    let _ = insert(store, key, &lease, version);
}

#[test]
#[cfg_attr(feature = "without-lease-check", should_panic(expected = "stale"))]
fn insert_against_change() {
    insert_against(|store, _| change(store));
}

/// Races a render with a change of the data and with its application by `take_in`.
fn insert_against(take_in: impl Fn(&TestStore, &AtomicU64) + Sync + Send + 'static) {
    explore(move || {
        let (store, truth) = (store(), Arc::new(AtomicU64::new(0)));
        let rendering = {
            let (store, truth) = (store.clone(), Arc::clone(&truth));
            thread::spawn(move || render(&store, &truth, b"/"))
        };
        truth.store(1, Ordering::SeqCst);
        take_in(&store, &truth);
        assert_ne!(stored(&store, b"/"), Some(0), "stale right after it was taken in");
        rendering.join().unwrap();
        assert_ne!(stored(&store, b"/"), Some(0), "stale at the end");
        store.validate();
    });
}

fn change_where(store: &TestStore, strength: Strength) {
    let touches: PagePredicate<Version> = Arc::new(|_: &Page<Version>| true);
    store.change_where(SITE, &touches, strength, 0);
}

/// Both the sweep and the insertion evaluate a predicate outside the lock.
#[test]
#[cfg_attr(feature = "without-lease-check", should_panic(expected = "stale"))]
fn insert_against_a_change_by_predicate() {
    explore(|| {
        let (store, truth) = (store(), Arc::new(AtomicU64::new(0)));
        insert(&store, b"other", &store.lease(), 0).unwrap();
        let rendering = {
            let (store, truth) = (store.clone(), Arc::clone(&truth));
            thread::spawn(move || render(&store, &truth, b"/"))
        };
        truth.store(1, Ordering::SeqCst);
        change_where(&store, Strength::Drop);
        for key in [&b"/"[..], b"other"] {
            assert_ne!(stored(&store, key), Some(0), "stale right after the change");
        }
        rendering.join().unwrap();
        assert_ne!(stored(&store, b"/"), Some(0), "stale at the end");
        store.validate();
    });
}

/// The same for a private page of an owner who may have one page only.
#[test]
#[cfg_attr(feature = "without-lease-check", should_panic(expected = "stale"))]
fn private_insert_against_a_change_of_its_owner() {
    explore(|| {
        let limits = Limits { owner_pages_max: 1, sweep_pages: 1, ..Limits::new(1 << 16) };
        let (store, truth) = (TestStore::with_seed(limits, 1), Arc::new(AtomicU64::new(0)));
        let private = |store: &TestStore, key: &[u8], lease: &Lease, version| {
            let mut dependencies = store.dependencies(SITE, key);
            dependencies.owner(b"ann");
            let _ = store.insert(store.key(key), 0, &dependencies, lease, Version(version));
        };
        private(&store, b"a", &store.lease(), 0);
        let rendering = {
            let (store, truth) = (store.clone(), Arc::clone(&truth));
            thread::spawn(move || {
                let lease = store.lease();
                private(&store, b"b", &lease, truth.load(Ordering::SeqCst));
            })
        };
        truth.store(1, Ordering::SeqCst);
        let targets = &[ChangeTarget::Owner(b"ann")];
        store.change(&Change { site: SITE, targets }, Strength::Drop);
        for key in [b"a", b"b"] {
            assert_ne!(stored(&store, key), Some(0), "stale right after the change");
        }
        rendering.join().unwrap();
        assert_ne!(stored(&store, b"b"), Some(0), "stale at the end");
        store.validate();
    });
}

/// A final response that is not stored, for a render that read `truth`: older pages must not be used any
/// more.
fn supersede(store: &TestStore, truth: &AtomicU64, key: &[u8]) {
    let lease = store.lease();
    let version = truth.load(Ordering::SeqCst);
    let key = store.key(key);
    let older = || -> Vec<Page<Version>> {
        let found = store.peek(key);
        found.iter().filter(|page| page.payload().0 < version).cloned().collect()
    };
    store.supersede(key, &[0], &lease, &older());
    // A page may be stored between the lookup and the call.
    while !older().is_empty() {
        store.supersede(key, &[0], &lease, &older());
    }
}

#[test]
#[cfg_attr(feature = "without-lease-check", should_panic(expected = "stale"))]
fn insert_against_an_answer_that_is_not_stored() {
    insert_against(|store, truth| supersede(store, truth, b"/"));
}

#[cfg(not(feature = "without-lease-check"))]
mod checked {
    use super::*;

    /// A page whose payload is replaced in between is removed nevertheless, and a newer page stays.
    #[test]
    fn replacing_a_payload_against_an_answer_that_is_not_stored() {
        explore(|| {
            let (store, truth) = (store(), Arc::new(AtomicU64::new(1)));
            insert(&store, b"a", &store.lease(), 0).unwrap();
            let replacing = {
                let store = store.clone();
                thread::spawn(move || replace(&store, b"a"))
            };
            supersede(&store, &truth, b"a");
            assert_eq!(stored(&store, b"a"), None, "stale right after the answer");
            replacing.join().unwrap();
            assert_eq!(stored(&store, b"a"), None, "stale at the end");
            insert(&store, b"a", &store.lease(), 1).unwrap();
            supersede(&store, &truth, b"a");
            assert_eq!(stored(&store, b"a"), Some(1), "a newer page was removed");
            store.validate();
        });
    }

    /// A drop of several pages releases the lock between any two of them; renders enter in between.
    #[test]
    fn insert_against_a_change_in_batches() {
        explore(|| {
            let (store, truth) = (store(), Arc::new(AtomicU64::new(0)));
            let lease = store.lease();
            for key in [b"a", b"b"] {
                insert(&store, key, &lease, 0).unwrap();
            }
            drop(lease);
            let rendering = {
                let (store, truth) = (store.clone(), Arc::clone(&truth));
                thread::spawn(move || render(&store, &truth, b"c"))
            };
            truth.store(1, Ordering::SeqCst);
            change(&store);
            for key in [b"a", b"b", b"c"] {
                assert_ne!(stored(&store, key), Some(0), "stale right after the change");
            }
            rendering.join().unwrap();
            assert_ne!(stored(&store, b"c"), Some(0), "stale at the end");
            store.validate();
        });
    }

    #[test]
    fn insert_against_two_changes() {
        explore(|| {
            let (store, truth) = (store(), Arc::new(AtomicU64::new(0)));
            let rendering = {
                let (store, truth) = (store.clone(), Arc::clone(&truth));
                thread::spawn(move || render(&store, &truth, b"/"))
            };
            let changing = {
                let (store, truth) = (store.clone(), Arc::clone(&truth));
                thread::spawn(move || {
                    let version = truth.fetch_add(1, Ordering::SeqCst) + 1;
                    change(&store);
                    assert!(stored(&store, b"/").is_none_or(|found| found >= version), "stale");
                })
            };
            let version = truth.fetch_add(1, Ordering::SeqCst) + 1;
            change(&store);
            assert!(stored(&store, b"/").is_none_or(|found| found >= version), "stale");
            rendering.join().unwrap();
            changing.join().unwrap();
            assert!(stored(&store, b"/").is_none_or(|found| found == 2), "stale at the end");
            store.validate();
        });
    }

    /// The event arrives before the row is visible; a render in between reads the old row.
    #[test]
    fn insert_against_open_and_settle() {
        explore(|| {
            let (store, truth) = (store(), Arc::new(AtomicU64::new(0)));
            let rendering = {
                let (store, truth) = (store.clone(), Arc::clone(&truth));
                thread::spawn(move || render(&store, &truth, b"/"))
            };
            let opened = store.open(&Change { site: SITE, targets: NEWS }, Strength::Drop);
            assert_eq!(stored(&store, b"/"), None, "stored while open");
            truth.store(1, Ordering::SeqCst);
            store.settle(opened);
            assert_ne!(stored(&store, b"/"), Some(0), "stale after the settlement");
            rendering.join().unwrap();
            assert_ne!(stored(&store, b"/"), Some(0), "stale at the end");
            store.validate();
        });
    }

    /// The same with more pages than one batch: the lock is released before the first of them is dropped,
    /// when the change has its number and is open already.
    #[test]
    fn insert_against_open_and_settle_in_batches() {
        explore(|| {
            let (store, truth) = (store(), Arc::new(AtomicU64::new(0)));
            for key in [b"a", b"b"] {
                insert(&store, key, &store.lease(), 0).unwrap();
            }
            let rendering = {
                let (store, truth) = (store.clone(), Arc::clone(&truth));
                thread::spawn(move || render(&store, &truth, b"a"))
            };
            let opened = store.open(&Change { site: SITE, targets: NEWS }, Strength::Drop);
            for key in [b"a", b"b"] {
                assert_eq!(stored(&store, key), None, "stored while open");
            }
            truth.store(1, Ordering::SeqCst);
            store.settle(opened);
            assert_ne!(stored(&store, b"a"), Some(0), "stale after the settlement");
            rendering.join().unwrap();
            assert_ne!(stored(&store, b"a"), Some(0), "stale at the end");
            store.validate();
        });
    }

    /// Replaces the payload of the page under `key`, if there is one.
    fn replace(store: &TestStore, key: &[u8]) {
        for page in store.candidates(store.key(key)).iter() {
            let _ = store.replace_payload(page, Version(0));
        }
    }

    /// Payloads are replaced while a change drops or marks the pages, also between two batches: neither is
    /// lost, whichever is first.
    #[test]
    fn replacing_payloads_against_a_change_in_batches() {
        for strength in [Strength::Drop, Strength::Mark] {
            explore(move || {
                let store = store();
                for key in [b"a", b"b"] {
                    insert(&store, key, &store.lease(), 0).unwrap();
                }
                let replacing = {
                    let store = store.clone();
                    thread::spawn(move || [b"a", b"b"].map(|key| replace(&store, key)))
                };
                store.change(&Change { site: SITE, targets: NEWS }, strength);
                for key in [b"a", b"b"] {
                    assert_eq!(stored(&store, key), None, "stale right after the change");
                }
                replacing.join().unwrap();
                for key in [b"a", b"b"] {
                    assert_eq!(stored(&store, key), None, "stale at the end");
                }
                store.validate();
            });
        }
    }

    /// The same for a predicate, which checks a page in one hold of the lock and drops it in the next.
    #[test]
    fn replacing_a_payload_against_a_change_by_predicate() {
        for strength in [Strength::Drop, Strength::Mark] {
            explore(move || {
                let store = store();
                insert(&store, b"a", &store.lease(), 0).unwrap();
                let replacing = {
                    let store = store.clone();
                    thread::spawn(move || [(); 2].map(|()| replace(&store, b"a")))
                };
                change_where(&store, strength);
                assert_eq!(stored(&store, b"a"), None, "stale right after the change");
                replacing.join().unwrap();
                assert_eq!(stored(&store, b"a"), None, "stale at the end");
                store.validate();
            });
        }
    }

    /// A lookup always finds the page, in its old form or its new one.
    #[test]
    fn replacing_a_payload_against_lookups() {
        explore(|| {
            let store = store();
            insert(&store, b"/", &store.lease(), 0).unwrap();
            let replacing = {
                let store = store.clone();
                thread::spawn(move || [(); 2].map(|()| replace(&store, b"/")))
            };
            for _ in 0..3 {
                assert_eq!(stored(&store, b"/"), Some(0), "gone for a moment");
            }
            replacing.join().unwrap();
            assert_eq!(store.stats().counters.swapped, 2);
            store.validate();
        });
    }

    /// A lookup that begins after the change was acknowledged, which a flag shows, as for a client.
    #[test]
    fn candidates_against_change() {
        for strength in [Strength::Drop, Strength::Mark] {
            explore(move || {
                let store = store();
                insert(&store, b"/", &store.lease(), 0).unwrap();
                let acknowledged = Arc::new(AtomicU64::new(0));
                let changing = {
                    let (store, acknowledged) = (store.clone(), Arc::clone(&acknowledged));
                    thread::spawn(move || {
                        let change = Change { site: SITE, targets: NEWS };
                        let number = store.change(&change, strength).number;
                        acknowledged.store(number.get(), Ordering::Release);
                    })
                };
                let number = acknowledged.load(Ordering::Acquire);
                let arrival = store.number();
                let found = stored(&store, b"/");
                assert!(arrival.get() >= number, "a stamp behind what was acknowledged");
                assert!(
                    number == 0 || found.is_none(),
                    "a page from before an acknowledged change"
                );
                changing.join().unwrap();
                store.validate();
            });
        }
    }

    /// A released lease allows changes to be forgotten; a render with another lease must still be refused.
    #[test]
    fn lease_drop_against_prune() {
        explore(|| {
            let store = store();
            let (old, other) = (store.lease(), store.lease());
            let giving_back = thread::spawn(move || drop(old));
            let changing = {
                let store = store.clone();
                thread::spawn(move || change(&store))
            };
            let early = insert(&store, b"/", &other, 0);
            assert!(matches!(early, Ok(()) | Err(StoreRefusal::ChangedSince)), "{early:?}");
            changing.join().unwrap();
            assert_eq!(stored(&store, b"/"), None, "stale after the change");
            let late = insert(&store, b"/", &other, 0);
            assert_eq!(late, Err(StoreRefusal::ChangedSince));
            giving_back.join().unwrap();
            drop(other);
            assert_eq!(store.stats().changes_remembered, 0);
            store.validate();
        });
    }

    /// A request that arrives after a change and finds an old render in progress.
    #[test]
    fn lead_and_follow_against_change() {
        explore(|| {
            let (store, truth) = (store(), Arc::new(AtomicU64::new(0)));
            let fills = Fills::<AtomicU64>::new(FillLimits { followers_max: 4, alone_max: 4 });
            let leading = {
                let (store, truth, fills) = (store.clone(), Arc::clone(&truth), fills.clone());
                thread::spawn(move || request(&store, &truth, &fills, 0))
            };
            truth.store(1, Ordering::SeqCst);
            change(&store);
            request(&store, &truth, &fills, 1);
            leading.join().unwrap();
            assert_eq!((fills.stats().in_progress, store.stats().leases), (0, 0));
            store.validate();
        });
    }

    /// A waiter that holds the version of the response plus one, or 0 while there is none.
    fn request(store: &TestStore, truth: &AtomicU64, fills: &Fills<AtomicU64>, must_see: u64) {
        let arrival = store.number();
        if let Some(version) = stored(store, b"/") {
            assert!(version >= must_see, "a stale hit");
            return;
        }
        let mut turn = fills.turn(store, store.key(b"/"), arrival, 0, || AtomicU64::new(0));
        loop {
            match turn {
                Turn::Lead(leader) => {
                    let version = truth.load(Ordering::SeqCst);
                    let _ = insert(store, b"/", leader.lease(), version);
                    leader.waiter().store(version + 1, Ordering::SeqCst);
                    assert!(version >= must_see, "a stale render");
                    return;
                }
                Turn::Follow(follower) => {
                    let mut answer = follower.waiter().load(Ordering::SeqCst);
                    while answer == 0 {
                        thread::yield_now();
                        answer = follower.waiter().load(Ordering::SeqCst);
                    }
                    if follower.may_share(store, &dependencies(store)).is_ok() {
                        assert!(answer > must_see, "a stale shared answer");
                        return;
                    }
                    turn = fills.again(store, follower, 0, || AtomicU64::new(0));
                }
                Turn::Alone(alone) => panic!("{alone:?}"),
            }
        }
    }
}
