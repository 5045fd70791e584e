//! Pages without requests leave after eight scans; requested pages stay, whatever the form of their
//! payload.

use crate::common::*;
use page_store::{AgeStep, IdleScan, Limits, Page, Store, Worth};

fn round(store: &Store<TestPayload>, older: AgeStep) -> Vec<Page<TestPayload>> {
    let mut round = IdleScan::new(older);
    let mut inactive = Vec::new();
    while !round.is_over() {
        inactive.extend(store.grow_older(&mut round));
    }
    store.validate();
    inactive
}

/// A scan as the server runs it; returns the number of pages removed.
fn go_round(store: &Store<TestPayload>) -> u64 {
    let dropped = store.remove_inactive(&round(store, AgeStep::By(1)));
    store.validate();
    dropped
}

fn is_there(store: &Store<TestPayload>, url: &str) -> bool {
    !store.peek(store.key(url.as_bytes())).as_slice().is_empty()
}

#[test]
fn a_page_stays_for_eight_scans_and_the_one_of_its_request() {
    let store = roomy();
    let lease = store.lease();
    put(&store, "/kept", &["t"], &lease).unwrap();
    put(&store, "/gone", &["t"], &lease).unwrap();
    let before = store.stats();
    for _ in 0..8 {
        assert_eq!(go_round(&store), 0);
    }
    // `peek` does not count as a request.
    assert!(is_there(&store, "/gone"));
    assert!(has(&store, "/kept"));
    assert_eq!(go_round(&store), 1);
    assert_eq!((is_there(&store, "/gone"), is_there(&store, "/kept")), (false, true));
    let after = store.stats();
    assert_eq!((after.pages, after.counters.inactive, after.counters.evicted), (1, 1, 0));
    assert_eq!((after.number, after.leases), (before.number, before.leases));
    assert_eq!((after.counters.dropped, after.changes_remembered), (0, 0));
    // The page can be stored again, even with the lease that was outstanding.
    put(&store, "/gone", &["t"], &lease).unwrap();
    for _ in 0..7 {
        assert_eq!(go_round(&store), 0);
    }
    assert_eq!(go_round(&store), 1, "asked for a round earlier");
    assert_eq!(go_round(&store), 1);
    while store.tidy() {}
    store.validate();
    assert_eq!((store.stats().pages, store.stats().dead, store.stats().names), (0, 0, 0));
}

#[test]
fn a_replaced_payload_keeps_the_age() {
    let store = roomy();
    let page = put(&store, "/a", &[], &store.lease()).unwrap();
    for _ in 0..8 {
        go_round(&store);
    }
    let page = store.replace_payload(&page, TestPayload { from: 0, bytes: 50 }).unwrap();
    assert_eq!(go_round(&store), 1);
    assert!(!page.is_stored());
}

#[test]
fn variants_stay_with_the_key_that_is_requested() {
    let store = roomy();
    let lease = store.lease();
    for variant in 0..3 {
        put_made(&store, "/a", variant, &[], &lease, TestPayload { from: 0, bytes: 9 }).unwrap();
    }
    for _ in 0..20 {
        assert_eq!(count(&store, "/a"), 3);
        assert_eq!(go_round(&store), 0);
    }
    for _ in 0..7 {
        assert_eq!(go_round(&store), 0);
    }
    assert_eq!(go_round(&store), 3);
}

#[test]
fn a_page_requested_between_the_two_steps_stays() {
    let store = roomy();
    let lease = store.lease();
    for url in ["/asked", "/removed", "/replaced", "/unused"] {
        put(&store, url, &["t"], &lease).unwrap();
    }
    round(&store, AgeStep::By(1));
    let inactive = round(&store, AgeStep::By(8));
    assert_eq!(inactive.len(), 4);
    assert!(has(&store, "/asked"));
    let at = |url: &str| inactive.iter().find(|page| page.key().bytes() == url.as_bytes()).unwrap();
    assert!(store.remove(at("/removed")));
    put(&store, "/replaced", &["t"], &lease).unwrap();
    assert_eq!(store.remove_inactive(&inactive), 1);
    assert_eq!(store.remove_inactive(&inactive), 0);
    store.validate();
    assert!(is_there(&store, "/asked") && is_there(&store, "/replaced"));
    assert!(!is_there(&store, "/unused"));
}

#[test]
fn a_late_scan_stands_for_the_missed_ones() {
    let store = roomy();
    let lease = store.lease();
    put(&store, "/old", &[], &lease).unwrap();
    go_round(&store);
    put(&store, "/new", &[], &lease).unwrap();
    // A page requested since the last scan may have been requested just now.
    assert_eq!(store.remove_inactive(&round(&store, AgeStep::By(200))), 1);
    assert!(is_there(&store, "/new"));
    assert_eq!(round(&store, AgeStep::By(7)).len(), 0);
    assert_eq!(round(&store, AgeStep::Anew).len(), 0);
    assert_eq!(round(&store, AgeStep::By(7)).len(), 0);
    assert_eq!(round(&store, AgeStep::By(1)).len(), 1);
}

#[test]
fn eviction_leaves_the_age_as_it_is() {
    let store =
        Store::<TestPayload>::with_seed(Limits { sweep_pages: 4, ..Limits::new(200_000) }, 1);
    let lease = store.lease();
    let store_at = |url: &str| {
        put_made(&store, url, 0, &[], &lease, TestPayload { from: 0, bytes: 2_000 }).unwrap();
    };
    store_at("/hot");
    assert!((0..3).all(|_| has(&store, "/hot")));
    for _ in 0..8 {
        go_round(&store);
    }
    // Among these it gets further chances without a request.
    let mut colds = 0;
    while store.stats().counters.evicted < 10 {
        store_at(&format!("/cold/{colds}"));
        colds += 1;
    }
    assert!(is_there(&store, "/hot"), "{colds}");
    assert_eq!(go_round(&store), 1);
    assert!(!is_there(&store, "/hot"));
}

#[test]
fn a_restored_page_has_age_zero() {
    let store = roomy();
    let restoring = store.restoring(SITE);
    let worth = Worth { uses: 3, is_proven: true };
    let made = TestPayload { from: 0, bytes: 10 };
    restoring.restore(store.key(b"/a"), 0, &depends(&store, "/a", &[]), made, worth, None).unwrap();
    drop(restoring);
    for _ in 0..8 {
        assert_eq!(go_round(&store), 0);
    }
    assert_eq!(go_round(&store), 1);
}

#[test]
fn a_scan_visits_every_page_once() {
    let limits = Limits { sweep_pages: 6, ..Limits::new(1 << 26) };
    let store = Store::<TestPayload>::with_seed(limits, 1);
    let lease = store.lease();
    for n in 0..1_000 {
        put(&store, &format!("/{n}"), &[], &lease).unwrap();
    }
    for n in (0..1_000).step_by(3) {
        let page = store.peek(store.key(format!("/{n}").as_bytes()));
        store.remove(&page.as_slice()[0]);
    }
    assert_eq!(round(&store, AgeStep::By(1)).len(), 0);
    let inactive = round(&store, AgeStep::By(8));
    assert_eq!(inactive.len(), store.stats().pages);
    assert_eq!(store.remove_inactive(&inactive), 666);
    store.validate();
}
