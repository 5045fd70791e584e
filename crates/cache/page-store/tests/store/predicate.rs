//! Changes by predicate: the pages that they drop, mark and refuse, and pages that enter between two
//! batches.
//!
//! A predicate that calls the store stands for a fast second thread: it runs exactly while the lock is
//! released. Races within the calls are in `loom.rs`.

use crate::common::{SITE, TestPayload, depends, has, put, put_made, roomy};
use page_store::{
    AppliedChange, ChangeTarget, Dependencies, Limits, Number, Page, PagePredicate, Site, Store,
    StoreRefusal, Strength,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A predicate: the key contains `part`.
fn key_has(part: &'static str) -> PagePredicate<TestPayload> {
    Arc::new(move |page: &Page<TestPayload>| {
        String::from_utf8_lossy(page.key().bytes()).contains(part)
    })
}

fn drop_where(store: &Store<TestPayload>, touches: &PagePredicate<TestPayload>) -> AppliedChange {
    store.change_where(SITE, touches, Strength::Drop, 0)
}

fn small_batches() -> Store<TestPayload> {
    Store::with_seed(Limits { sweep_pages: 2, ..Limits::new(1 << 30) }, 1)
}

#[test]
fn a_predicate_removes_only_the_pages_that_it_matches() {
    let store = small_batches();
    for n in 0..50 {
        put(&store, &format!("/{n}"), &["t"], &store.lease()).unwrap();
    }
    let applied = drop_where(&store, &key_has("7"));
    assert_eq!((applied.dropped, applied.marked), (5, 0));
    assert_eq!(applied.number, store.number());
    assert!((0..50).all(|n| has(&store, &format!("/{n}")) != n.to_string().contains('7')));
    let soft = store.change_where(SITE, &key_has("3"), Strength::Mark, 77);
    assert_eq!((soft.dropped, soft.marked), (0, 13));
    let page = store.candidates(store.key(b"/3")).as_slice()[0].marked().unwrap();
    assert_eq!(page.at_ms, 77);
    store.validate();
}

#[test]
fn it_looks_at_its_own_site_only() {
    let store = roomy();
    put(&store, "/a", &[], &store.lease()).unwrap();
    let applied = store.change_where(Site(9), &key_has("/a"), Strength::Drop, 0);
    assert_eq!(applied.dropped, 0);
    assert!(has(&store, "/a"));
}

#[cfg(not(feature = "without-lease-check"))]
#[test]
fn an_older_render_is_checked_by_the_predicate_when_it_is_stored() {
    let store = roomy();
    let lease = store.lease();
    drop_where(&store, &key_has("/a"));
    assert_eq!(put(&store, "/a", &[], &lease).unwrap_err(), StoreRefusal::ChangedSince);
    assert!(put(&store, "/b", &[], &lease).is_ok());
    assert!(put(&store, "/a", &[], &store.lease()).is_ok());
    assert_eq!(store.stats().changes_remembered, 1);
    drop(lease);
    assert_eq!(store.stats().changes_remembered, 0);
    store.validate();
}

#[test]
fn sharing_treats_every_predicate_as_touching() {
    let store = roomy();
    let (lease, early) = (store.lease(), store.number());
    drop_where(&store, &key_has("/other"));
    let made_from = depends(&store, "/a", &[]);
    let may = |lease: Number, arrival| store.may_share(lease, arrival, &made_from);
    assert_eq!(may(lease.number(), store.number()), Err(StoreRefusal::ChangedSince));
    assert_eq!(may(lease.number(), early), Ok(()));
    assert_eq!(may(store.number(), store.number()), Ok(()));
    let elsewhere: Dependencies = store.dependencies(Site(9), b"/a");
    assert_eq!(store.may_share(lease.number(), store.number(), &elsewhere), Ok(()));
}

#[cfg(not(feature = "without-lease-check"))]
#[test]
fn too_many_to_be_remembered_refuse_every_older_render() {
    let store = Store::with_seed(Limits { predicates_max: 2, ..Limits::new(1 << 24) }, 1);
    let oldest = store.lease();
    drop_where(&store, &key_has("/a"));
    let older = store.lease();
    drop_where(&store, &key_has("/a"));
    drop_where(&store, &key_has("/a"));
    assert_eq!(put(&store, "/b", &[], &oldest).unwrap_err(), StoreRefusal::LeaseTooOld);
    assert!(put(&store, "/b", &[], &older).is_ok());
    assert_eq!(put(&store, "/a", &[], &older).unwrap_err(), StoreRefusal::ChangedSince);
    assert_eq!(store.stats().counters.floor_raised, 1);
    store.validate();
}

/// A predicate that acts once, between two holds of the lock, when it is first evaluated.
fn acting(act: impl Fn() + Send + Sync + 'static, answer: bool) -> PagePredicate<TestPayload> {
    let acted = AtomicBool::new(false);
    Arc::new(move |_: &Page<TestPayload>| {
        if !acted.swap(true, Ordering::SeqCst) {
            act();
        }
        answer
    })
}

/// The payload of a page is replaced between the check of the page and its drop.
#[test]
fn a_page_in_another_form_is_still_found() {
    for strength in [Strength::Drop, Strength::Mark] {
        let store = small_batches();
        let pages = ["/1", "/2", "/3"].map(|url| put(&store, url, &[], &store.lease()).unwrap());
        let handle = store.clone();
        let replace = move || {
            for page in &pages {
                handle.replace_payload(page, TestPayload { from: 0, bytes: 7 }).unwrap();
            }
        };
        let applied = store.change_where(SITE, &acting(replace, true), strength, 0);
        assert_eq!(applied.dropped + applied.marked, 3);
        let listed = store.pages(SITE, &ChangeTarget::Everything, 0, 10).pages;
        assert!(listed.iter().all(|page| page.is_marked()));
        store.validate();
    }
}

/// A page is rendered again between the check of the page and its drop.
#[test]
fn a_newer_render_in_its_place_is_left_alone() {
    let store = small_batches();
    put(&store, "/1", &[], &store.lease()).unwrap();
    let handle = store.clone();
    let renew = move || {
        put_made(&handle, "/1", 0, &[], &handle.lease(), TestPayload { from: 1, bytes: 0 })
            .unwrap();
    };
    assert_eq!(drop_where(&store, &acting(renew, true)).dropped, 0);
    assert_eq!(store.candidates(store.key(b"/1")).as_slice()[0].payload().from, 1);
    store.validate();
}

/// A second change by predicate arrives while the first is evaluated for a render: it is evaluated too.
#[cfg(not(feature = "without-lease-check"))]
#[test]
fn a_predicate_that_arrives_during_an_evaluation_counts() {
    let store = roomy();
    let lease = store.lease();
    let handle = store.clone();
    let change = move || {
        drop_where(&handle, &key_has("/a"));
    };
    drop_where(&store, &acting(change, false));
    assert_eq!(put(&store, "/a", &[], &lease).unwrap_err(), StoreRefusal::ChangedSince);
    assert!(put(&store, "/b", &[], &lease).is_ok());
    store.validate();
}

#[cfg(not(feature = "without-lease-check"))]
#[test]
fn a_render_is_not_evaluated_forever() {
    let store = roomy();
    let lease = store.lease();
    let handle = store.clone();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    // Each evaluation adds one more predicate.
    let touches: PagePredicate<TestPayload> = Arc::new(move |_: &Page<TestPayload>| {
        counted.fetch_add(1, Ordering::SeqCst);
        handle.change_where(SITE, &key_has("/nothing"), Strength::Drop, 0);
        false
    });
    for _ in 0..3 {
        store.change_where(SITE, &touches, Strength::Drop, 0);
    }
    assert!(put(&store, "/a", &[], &lease).is_ok());
    assert!(asked.load(Ordering::SeqCst) <= 12);
    store.validate();
}
