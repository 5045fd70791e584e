//! Races between restoring pages of an earlier process and changes, renders and the opening of the gate:
//! every schedule of each race. A restored page is older than all of them.

use super::{
    Arc, AtomicU64, Change, ChangeTarget, Ordering, SITE, Strength, TestStore, Version, change,
    change_where, dependencies, explore, explore_at_least, insert, render, store, stored, thread,
};
use page_store::{NotRestored, OpenChange, RestoreSession, Worth};

const EVERYTHING: &[ChangeTarget<'static>] = &[ChangeTarget::Everything];
const KEY: &[u8] = b"/";

/// Restores the page of the earlier process: version 0.
fn restore(store: &TestStore, restoring: &RestoreSession<Version>) -> Result<(), NotRestored> {
    let worth = Worth { uses: 0, is_proven: false };
    restoring.restore(store.key(KEY), 0, &dependencies(store), Version(0), worth, None)
}

/// Restores the page in a thread, which ends the restoring as well.
fn restoring(store: &TestStore) -> thread::JoinHandle<()> {
    let (own, restoring) = (store.clone(), store.restoring(SITE));
    thread::spawn(move || {
        let _ = restore(&own, &restoring);
    })
}

/// A response that is not stored forbids to restore any variant under its key.
#[test]
#[cfg_attr(feature = "without-lease-check", should_panic(expected = "stale"))]
fn restoring_against_an_answer_that_is_not_stored() {
    against(2, |store| {
        let key = store.key(KEY);
        let lease = store.lease();
        let _ = store.supersede(key, &[7], &lease, store.peek(key).as_slice());
        // A page may be stored between the lookup and the call.
        let _ = store.supersede(key, &[7], &lease, store.peek(key).as_slice());
    });
}

fn open_all(store: &TestStore) -> OpenChange {
    store.open(&Change { site: SITE, targets: EVERYTHING }, Strength::Drop)
}

/// Settles the change in a thread.
fn settling(store: &TestStore, opened: OpenChange) -> thread::JoinHandle<()> {
    let store = store.clone();
    thread::spawn(move || {
        let _ = store.settle(opened);
    })
}

/// Every schedule of restoring a page and changing it.
fn against(least: usize, change: impl Fn(&TestStore) + Sync + Send + 'static) {
    explore_at_least(least, move || {
        let store = store();
        let restored = restoring(&store);
        change(&store);
        assert_eq!(stored(&store, KEY), None, "stale right after the change");
        restored.join().unwrap();
        assert_eq!(stored(&store, KEY), None, "stale at the end");
        store.validate();
    });
}

#[test]
#[cfg_attr(feature = "without-lease-check", should_panic(expected = "stale"))]
fn restoring_against_change() {
    against(6, change);
}

/// The same race with a running render, which may read before the change or after it.
#[test]
#[cfg_attr(feature = "without-lease-check", should_panic(expected = "stale"))]
fn restoring_and_rendering_against_change() {
    explore(|| {
        let (store, truth) = (store(), Arc::new(AtomicU64::new(0)));
        let restored = restoring(&store);
        let rendering = {
            let (store, truth) = (store.clone(), Arc::clone(&truth));
            thread::spawn(move || render(&store, &truth, KEY))
        };
        truth.store(1, Ordering::SeqCst);
        change(&store);
        assert_ne!(stored(&store, KEY), Some(0), "stale right after the change");
        restored.join().unwrap();
        rendering.join().unwrap();
        assert_ne!(stored(&store, KEY), Some(0), "stale at the end");
        store.validate();
    });
}

#[test]
#[cfg_attr(feature = "without-lease-check", should_panic(expected = "stale"))]
fn restoring_against_a_change_by_predicate() {
    against(20, |store| change_where(store, Strength::Drop));
}

#[test]
#[cfg_attr(feature = "without-lease-check", should_panic(expected = "stale"))]
fn restoring_against_open_and_settle() {
    explore(|| {
        let store = store();
        let restored = restoring(&store);
        let opened = store.open(&Change { site: SITE, targets: super::NEWS }, Strength::Drop);
        assert_eq!(stored(&store, KEY), None, "stale while it is open");
        store.settle(opened);
        assert_eq!(stored(&store, KEY), None, "stale after the settlement");
        restored.join().unwrap();
        assert_eq!(stored(&store, KEY), None, "stale at the end");
        store.validate();
    });
}

/// A gap while the gate opens: the settlement of the gate does not count, that of the gap does, whichever
/// has the higher number. (Without the lease check the stale page is found as well; the model cannot unwind
/// while the restoring exists.)
#[test]
#[cfg(not(feature = "without-lease-check"))]
fn restoring_against_a_gap_while_the_gate_opens() {
    explore_at_least(19, || {
        let store = store();
        let gate = open_all(&store);
        let restoring = store.restoring(SITE);
        let opening = settling(&store, gate);
        let early = restore(&store, &restoring);
        store.change(&Change { site: SITE, targets: EVERYTHING }, Strength::Drop);
        assert_eq!(stored(&store, KEY), None, "stale right after the gap ({early:?})");
        let late = restore(&store, &restoring);
        assert_eq!(stored(&store, KEY), None, "stale, put in after the gap ({late:?})");
        opening.join().unwrap();
        let last = restore(&store, &restoring);
        assert_eq!(stored(&store, KEY), None, "stale, put in at the end ({last:?})");
        store.validate();
    });
}

/// The gate opens: pages restored after that are found, and a second gate counts as a gap.
#[test]
fn restoring_while_the_gate_opens() {
    explore_at_least(9, || {
        let store = store();
        let gate = open_all(&store);
        let restoring = store.restoring(SITE);
        let opening = settling(&store, gate);
        let was_held_up = restoring.is_held_up();
        let early = restore(&store, &restoring);
        assert!(was_held_up || early.is_ok(), "{early:?}");
        opening.join().unwrap();
        assert!(!restoring.is_held_up());
        let late = restore(&store, &restoring);
        assert!(early.is_ok() || late.is_ok(), "{early:?}, {late:?}");
        assert_eq!(stored(&store, KEY), Some(0));
        store.validate();
    });
}

/// A page rendered in between stays, whichever is stored first.
#[test]
fn restoring_against_insert() {
    explore(|| {
        let store = store();
        let restored = restoring(&store);
        insert(&store, KEY, &store.lease(), 1).unwrap();
        assert_eq!(stored(&store, KEY), Some(1), "displaced by the page of before");
        restored.join().unwrap();
        assert_eq!(stored(&store, KEY), Some(1), "displaced by the page of before");
        store.validate();
    });
}

/// Released leases allow changes to be forgotten, but not those that count against restored pages.
#[test]
#[cfg(not(feature = "without-lease-check"))]
fn restoring_against_released_leases() {
    explore_at_least(9, || {
        let store = store();
        let restoring = store.restoring(SITE);
        let lease = store.lease();
        let giving_back = thread::spawn(move || drop(lease));
        change(&store);
        let outcome = restore(&store, &restoring);
        assert_eq!(stored(&store, KEY), None, "stale ({outcome:?})");
        giving_back.join().unwrap();
        let outcome = restore(&store, &restoring);
        assert_eq!(stored(&store, KEY), None, "stale at the end ({outcome:?})");
        drop(restoring);
        assert_eq!(store.stats().changes_remembered, 0);
        store.validate();
    });
}
