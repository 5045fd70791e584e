//! The store, call by call: lookups, rules 1 and 4, targets, variants, settling, limits.
//!
//! Each test ends with `validate`. Races are in `model.rs` and `loom.rs`, eviction in `evict.rs`.

use crate::common::*;
use page_store::{Candidates, Change, ChangeTarget, Limits, Site, Store, StoreRefusal, Strength};

/// Renders, change streams and followers move between threads.
#[test]
fn handles_can_be_sent_and_shared() {
    fn check<T: Send + Sync>() {}
    check::<Store<TestPayload>>();
    check::<page_store::Lease>();
    check::<page_store::OpenChange>();
    check::<page_store::Dependencies>();
    check::<page_store::Leader<u8>>();
    check::<page_store::Follower<u8>>();
}

#[test]
fn a_stored_page_is_found() {
    let store = roomy();
    let page = put(&store, "/a", &["news"], &store.lease()).unwrap();
    let Candidates::One(found) = store.candidates(store.key(b"/a")) else { panic!("one page") };
    assert!(found.is(&page));
    assert_eq!((found.key().bytes(), found.variant()), (&b"/a"[..], 0));
    assert!(!has(&store, "/b"));
    store.validate();
}

#[test]
fn a_change_removes_only_the_pages_that_depend_on_it() {
    let store = roomy();
    let lease = store.lease();
    for (url, tags) in [("/1", &["a", "b"][..]), ("/2", &["b"]), ("/3", &["c"]), ("/4", &[])] {
        put(&store, url, tags, &lease).unwrap();
    }
    let applied = drop_all(&store, tag("b"));
    assert_eq!((applied.number.get(), applied.dropped, applied.marked), (1, 2, 0));
    assert_eq!(["/1", "/2", "/3", "/4"].map(|url| has(&store, url)), [false, false, true, true]);
    assert_eq!(store.number(), applied.number);
    store.validate();
}

#[test]
fn targets_name_urls_paths_and_sites() {
    let store = roomy();
    let urls = ["/a", "/a?", "/a?x=1", "/a?x=2", "/b", "/a/b"];
    let left = |target: ChangeTarget<'_>| {
        for url in urls {
            put(&store, url, &["/a"], &store.lease()).unwrap();
        }
        drop_all(&store, target);
        store.validate();
        urls.map(|url| u8::from(has(&store, url)))
    };
    assert_eq!(left(ChangeTarget::Url(b"/a")), [0, 1, 1, 1, 1, 1]);
    assert_eq!(left(ChangeTarget::Url(b"/a?x=1")), [1, 1, 0, 1, 1, 1]);
    assert_eq!(left(ChangeTarget::Path(b"/a")), [0, 0, 0, 0, 1, 1]);
    assert_eq!(left(ChangeTarget::Path(b"/a?x=9")), [0, 0, 0, 0, 1, 1]);
    assert_eq!(left(ChangeTarget::Path(b"/b")), [1, 1, 1, 1, 0, 1]);
    assert_eq!(left(ChangeTarget::Everything), [0; 6]);
}

#[test]
fn sites_do_not_share_names() {
    let store = roomy();
    put(&store, "/a", &["news"], &store.lease()).unwrap();
    for target in
        [tag("news"), ChangeTarget::Url(b"/a"), ChangeTarget::Path(b"/a"), ChangeTarget::Everything]
    {
        let change = Change { site: Site(2), targets: &[target] };
        assert_eq!(store.change(&change, Strength::Drop).dropped, 0);
    }
    assert!(has(&store, "/a"));
    store.validate();
}

#[test]
fn a_marked_page_stays_until_it_is_replaced() {
    let store = roomy();
    let old = put(&store, "/a", &["news"], &store.lease()).unwrap();
    let change = Change { site: SITE, targets: &[tag("news")] };
    assert_eq!(store.change(&change, Strength::Mark).marked, 1);
    assert_eq!(store.change(&change, Strength::Mark).marked, 0);
    assert!(store.candidates(store.key(b"/a")).iter().all(|page| page.is_marked()));
    let new = put(&store, "/a", &["news"], &store.lease()).unwrap();
    assert!(old.is_marked() && !new.is_marked());
    assert_eq!(count(&store, "/a"), 1);
    assert_eq!(store.change(&change, Strength::Drop).dropped, 1);
    store.validate();
}

#[cfg(not(feature = "without-lease-check"))]
mod rule_1 {
    use super::*;

    #[test]
    fn a_render_from_before_a_change_is_refused() {
        let store = roomy();
        let lease = store.lease();
        drop_all(&store, tag("news"));
        assert_eq!(put(&store, "/a", &["news"], &lease).unwrap_err(), StoreRefusal::ChangedSince);
        put(&store, "/b", &["other"], &lease).unwrap();
        put(&store, "/a", &["news"], &store.lease()).unwrap();
        assert_eq!(store.stats().refused(StoreRefusal::ChangedSince), 1);
        store.validate();
    }

    #[test]
    fn the_names_that_every_page_depends_on_count() {
        let targets =
            [ChangeTarget::Url(b"/a?x"), ChangeTarget::Path(b"/a"), ChangeTarget::Everything];
        for target in targets {
            let store = roomy();
            let lease = store.lease();
            drop_all(&store, target);
            assert_eq!(put(&store, "/a?x", &[], &lease).unwrap_err(), StoreRefusal::ChangedSince);
            store.validate();
        }
    }

    #[test]
    fn a_soft_change_counts_as_well() {
        let store = roomy();
        let lease = store.lease();
        store.change(&Change { site: SITE, targets: &[tag("news")] }, Strength::Mark);
        assert_eq!(put(&store, "/a", &["news"], &lease).unwrap_err(), StoreRefusal::ChangedSince);
        store.validate();
    }

    #[test]
    fn while_a_change_is_open_nothing_that_depends_on_it_is_stored() {
        let store = roomy();
        put(&store, "/a", &["news"], &store.lease()).unwrap();
        let change = Change { site: SITE, targets: &[tag("news"), tag("news"), tag("x")] };
        let first = store.open(&change, Strength::Drop);
        assert_eq!(first.applied().dropped, 1);
        let between = store.lease();
        assert_eq!(put(&store, "/a", &["news"], &between).unwrap_err(), StoreRefusal::Unsettled);
        put(&store, "/b", &["y"], &between).unwrap();
        let second = store.open(&change, Strength::Drop);
        store.settle(first);
        let lease = store.lease();
        assert_eq!(put(&store, "/a", &["news"], &lease).unwrap_err(), StoreRefusal::Unsettled);
        let settled = store.settle(second);
        assert_eq!(put(&store, "/a", &["x"], &lease).unwrap_err(), StoreRefusal::ChangedSince);
        let lease = store.lease();
        assert_eq!(lease.number(), settled);
        put(&store, "/a", &["news"], &lease).unwrap();
        assert_eq!(store.stats().opens, 0);
        store.validate();
    }

    #[test]
    fn an_open_change_that_is_dropped_stays_open() {
        let store = roomy();
        drop(store.open(&Change { site: SITE, targets: &[tag("news")] }, Strength::Drop));
        let lease = store.lease();
        assert_eq!(put(&store, "/a", &["news"], &lease).unwrap_err(), StoreRefusal::Unsettled);
        store.validate();
        store.settle_abandoned();
        assert_eq!(put(&store, "/a", &["news"], &lease).unwrap_err(), StoreRefusal::ChangedSince);
        put(&store, "/a", &["news"], &store.lease()).unwrap();
        store.validate();
    }

    #[test]
    fn too_many_open_names_open_the_whole_site() {
        let store =
            Store::<TestPayload>::with_seed(Limits { opens_max: 1, ..Limits::new(1 << 20) }, 1);
        let one = store.open(&Change { site: SITE, targets: &[tag("a")] }, Strength::Drop);
        let two = store.open(&Change { site: SITE, targets: &[tag("b")] }, Strength::Drop);
        let lease = store.lease();
        assert_eq!(put(&store, "/c", &["c"], &lease).unwrap_err(), StoreRefusal::Unsettled);
        store.settle(two);
        assert_eq!(put(&store, "/c", &["c"], &lease).unwrap_err(), StoreRefusal::ChangedSince);
        let lease = store.lease();
        put(&store, "/c", &["c"], &lease).unwrap();
        assert_eq!(put(&store, "/a", &["a"], &lease).unwrap_err(), StoreRefusal::Unsettled);
        store.settle(one);
        assert_eq!(store.stats().counters.opened_whole_site, 1);
        store.validate();
    }

    #[test]
    fn when_too_many_changes_are_remembered_old_leases_are_refused() {
        let limits = Limits { changes_remembered_max: 2, ..Limits::new(1 << 20) };
        let store = Store::<TestPayload>::with_seed(limits, 1);
        let lease = store.lease();
        drop_all(&store, tag("a"));
        drop_all(&store, tag("b"));
        put(&store, "/x", &["x"], &lease).unwrap();
        drop_all(&store, tag("c"));
        assert_eq!(put(&store, "/y", &["x"], &lease).unwrap_err(), StoreRefusal::LeaseTooOld);
        let stats = store.stats();
        assert_eq!((stats.changes_remembered, stats.counters.floor_raised), (2, 1));
        assert_eq!((stats.floor.get(), stats.oldest_lease), (1, Some(lease.number())));
        put(&store, "/y", &["x"], &store.lease()).unwrap();
        store.validate();
    }
}

#[test]
fn changes_are_forgotten_when_every_lease_is_newer() {
    let store = roomy();
    let old = store.lease();
    for name in ["a", "b", "c"] {
        drop_all(&store, tag(name));
    }
    let new = store.lease();
    drop_all(&store, tag("d"));
    assert_eq!((store.stats().changes_remembered, store.stats().names), (4, 4));
    drop(old);
    assert_eq!((store.stats().changes_remembered, store.stats().names), (1, 1));
    drop(new);
    let stats = store.stats();
    assert_eq!((stats.changes_remembered, stats.names, stats.leases), (0, 0, 0));
    store.validate();
}

#[test]
fn a_request_shares_a_render_unless_something_changed_in_between() {
    let store = roomy();
    let lease = store.lease();
    let news = depends(&store, "/a", &["news"]);
    let other = depends(&store, "/b", &["other"]);
    let early = store.number();
    assert_eq!(store.may_share(lease.number(), early, &news), Ok(()));
    drop_all(&store, tag("news"));
    let late = store.number();
    assert_eq!(store.may_share(lease.number(), late, &news), Err(StoreRefusal::ChangedSince));
    assert_eq!(store.may_share(lease.number(), late, &other), Ok(()));
    // The change came after this request, which may receive the old page; the page is not stored.
    assert_eq!(store.may_share(lease.number(), early, &news), Ok(()));
    let newer = store.lease();
    assert_eq!(store.may_share(newer.number(), late, &news), Ok(()));
    store.validate();
}

#[test]
fn a_render_is_not_shared_when_a_change_was_unsettled_at_its_beginning() {
    let store = roomy();
    let opened = store.open(&Change { site: SITE, targets: &[tag("news")] }, Strength::Drop);
    let (lease, arrival) = (store.lease(), store.number());
    let news = depends(&store, "/a", &["news"]);
    assert_eq!(store.may_share(lease.number(), arrival, &news), Err(StoreRefusal::Unsettled));
    store.settle(opened);
    assert_eq!(store.may_share(lease.number(), arrival, &news), Err(StoreRefusal::Unsettled));
    drop_all(&store, tag("news"));
    assert_eq!(store.may_share(lease.number(), arrival, &news), Err(StoreRefusal::Unsettled));
    let lease = store.lease();
    assert_eq!(store.may_share(lease.number(), arrival, &news), Ok(()));
    store.validate();
}

#[test]
fn a_released_lease_may_be_too_old_to_share() {
    let store = roomy();
    let lease = store.lease().number();
    drop_all(&store, tag("x"));
    let arrival = store.number();
    let dependencies = depends(&store, "/a", &["news"]);
    assert_eq!(store.may_share(lease, arrival, &dependencies), Err(StoreRefusal::LeaseTooOld));
}

#[test]
fn variants_live_side_by_side_and_replace_their_like() {
    let store =
        Store::<TestPayload>::with_seed(Limits { variants_max: 3, ..Limits::new(1 << 20) }, 1);
    let lease = store.lease();
    let add = |variant, from| {
        put_made(&store, "/a", variant, &["t"], &lease, TestPayload { from, bytes: 10 }).unwrap();
        store.validate();
        let found = store.candidates(store.key(b"/a"));
        found.iter().map(|page| (page.variant(), page.payload().from)).collect::<Vec<_>>()
    };
    assert_eq!(add(1, 10), [(1, 10)]);
    assert_eq!(add(2, 20), [(1, 10), (2, 20)]);
    assert_eq!(add(3, 30), [(1, 10), (2, 20), (3, 30)]);
    assert_eq!(add(2, 21), [(1, 10), (3, 30), (2, 21)]);
    assert_eq!(add(4, 40), [(3, 30), (2, 21), (4, 40)]);
    assert_eq!(drop_all(&store, ChangeTarget::Url(b"/a")).dropped, 3);
    assert_eq!(store.stats().counters.variants_displaced, 1);
    store.validate();
}

#[test]
fn an_older_render_does_not_replace_a_newer_one() {
    let store = roomy();
    let old = store.lease();
    drop_all(&store, tag("elsewhere"));
    put(&store, "/a", &["t"], &store.lease()).unwrap();
    assert_eq!(put(&store, "/a", &["t"], &old).unwrap_err(), StoreRefusal::Superseded);
    store.validate();
}

#[test]
fn limits_refuse_by_name() {
    let limits = Limits { tags_max: 2, tag_bytes_max: 4, ..Limits::new(1 << 20) };
    let store = Store::<TestPayload>::with_seed(limits, 1);
    let lease = store.lease();
    put(&store, "/a", &["1", "2", "2", "1"], &lease).unwrap();
    assert_eq!(put(&store, "/b", &["1", "2", "3"], &lease).unwrap_err(), StoreRefusal::TooManyTags);
    assert_eq!(put(&store, "/b", &["12345"], &lease).unwrap_err(), StoreRefusal::TagTooLong);
    let mut cut = depends(&store, "/b", &["1"]);
    let refused =
        store.insert(store.key(b"/b"), 0, cut.cut(), &lease, TestPayload { from: 3, bytes: 1 });
    let refused = refused.unwrap_err();
    assert_eq!(refused.reason, StoreRefusal::TooManyTags);
    assert_eq!(refused.page.payload().from, 3);
    let large = put_made(&store, "/b", 0, &[], &lease, TestPayload { from: 0, bytes: 1 << 19 });
    assert_eq!(large.unwrap_err().reason, StoreRefusal::TooLarge);
    assert_eq!(
        StoreRefusal::ALL.map(|reason| store.stats().refused(reason)).iter().sum::<u64>(),
        4
    );
    assert!(StoreRefusal::ALL.iter().enumerate().all(|(at, reason)| *reason as usize == at));
    store.validate();
}

#[test]
fn a_page_is_removed_once() {
    let store = roomy();
    let page = put(&store, "/a", &["t"], &store.lease()).unwrap();
    let other = put(&store, "/b", &["t"], &store.lease()).unwrap();
    assert!(store.remove(&page));
    assert!(!store.remove(&page));
    put(&store, "/a", &["t"], &store.lease()).unwrap();
    assert!(!store.remove(&page));
    assert!(has(&store, "/a") && has(&store, "/b"));
    assert!(store.remove(&other));
    store.validate();
}

#[test]
#[should_panic(expected = "another store")]
fn a_lease_of_another_store_is_a_bug() {
    let _ = put(&roomy(), "/a", &[], &roomy().lease());
}

#[test]
fn pages_are_listed_in_parts() {
    let store = roomy();
    let lease = store.lease();
    for n in 0..25 {
        put(&store, &format!("/p?n={n}"), &["t"], &lease).unwrap();
    }
    put(&store, "/p", &[], &lease).unwrap();
    for (target, total) in
        [(tag("t"), 25), (ChangeTarget::Path(b"/p"), 26), (ChangeTarget::Everything, 26)]
    {
        let (mut seen, mut from) = (Vec::new(), Some(0));
        while let Some(at) = from {
            let listing = store.pages(SITE, &target, at, 4);
            assert_eq!(listing.total, total);
            seen.extend(listing.pages.iter().map(|page| page.key().bytes().to_vec()));
            from = listing.next;
        }
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), total);
    }
    assert!(store.pages(SITE, &tag("none"), 0, 10).pages.is_empty());
    store.validate();
}

#[test]
fn a_drop_in_many_batches_drops_everything() {
    let store =
        Store::<TestPayload>::with_seed(Limits { sweep_pages: 3, ..Limits::new(1 << 24) }, 1);
    let lease = store.lease();
    for n in 0..100 {
        let tags: &[&str] = if n % 2 == 0 { &["even", "all"] } else { &["all"] };
        put(&store, &format!("/{n}"), tags, &lease).unwrap();
    }
    let change = Change { site: SITE, targets: &[tag("even"), tag("none"), tag("all")] };
    assert_eq!(store.change(&change, Strength::Mark).marked, 100);
    assert_eq!(store.change(&change, Strength::Drop).dropped, 100);
    drop(lease);
    assert!(store.stats().dead > 0, "a large drop leaves the tidying up to later");
    assert!(store.pages(SITE, &tag("all"), 0, 100).pages.is_empty());
    store.validate();
    while store.tidy() {}
    let stats = store.stats();
    assert_eq!((stats.pages, stats.dead, stats.names, stats.edges), (0, 0, 0, 0));
    store.validate();
}
