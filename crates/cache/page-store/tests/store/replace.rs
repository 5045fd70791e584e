//! Replacing the payload of a page in its place leaves everything except the payload unchanged.

use crate::common::{SITE, TestPayload, count, drop_all, put, put_made, roomy, tag};
use page_store::{Change, ChangeTarget, Limits, NotReplaced, Page, Store, Strength};

fn only(store: &Store<TestPayload>, url: &str) -> Page<TestPayload> {
    let found = store.candidates(store.key(url.as_bytes()));
    assert_eq!(found.as_slice().len(), 1);
    found.as_slice()[0].clone()
}

#[test]
fn the_bytes_that_are_counted_are_those_of_the_new_payload() {
    let store = roomy();
    let page = put(&store, "/a", &["t"], &store.lease()).unwrap();
    let before = store.stats().bytes;
    let new = store.replace_payload(&page, TestPayload { from: 0, bytes: 1_108 }).unwrap();
    store.validate();
    let after = store.stats().bytes;
    assert_eq!(after.pages, before.pages + 1_008);
    assert_eq!(after.total(), before.total() + 1_008);
    store.replace_payload(&new, TestPayload { from: 0, bytes: 100 }).unwrap();
    store.validate();
    assert_eq!(store.stats().bytes, before);
}

#[test]
fn a_change_finds_the_page_in_its_new_form() {
    let store = roomy();
    let page = put(&store, "/a", &["t"], &store.lease()).unwrap();
    let new = store.replace_payload(&page, TestPayload { from: 0, bytes: 7 }).unwrap();
    assert!(new.is(&only(&store, "/a")));
    assert_eq!((new.lease(), new.variant()), (page.lease(), page.variant()));
    assert_eq!(drop_all(&store, tag("t")).dropped, 1);
    assert_eq!(count(&store, "/a"), 0);
    store.validate();
}

#[test]
fn a_removed_or_replaced_page_is_not_changed() {
    let store = roomy();
    let old = put(&store, "/a", &["t"], &store.lease()).unwrap();
    let newer = put(&store, "/a", &["t"], &store.lease()).unwrap();
    let made = || TestPayload { from: 9, bytes: 7 };
    assert_eq!(store.replace_payload(&old, made()).unwrap_err(), NotReplaced::NotStored);
    drop_all(&store, tag("t"));
    assert_eq!(store.replace_payload(&newer, made()).unwrap_err(), NotReplaced::NotStored);
    assert_eq!(count(&store, "/a"), 0);
    store.validate();
}

#[test]
fn a_mark_is_not_lost() {
    let store = roomy();
    let page = put(&store, "/a", &["t"], &store.lease()).unwrap();
    let targets = &[ChangeTarget::Tag(b"t")];
    store.change(&Change { site: SITE, targets }, Strength::Mark);
    let refused = store.replace_payload(&page, TestPayload { from: 9, bytes: 7 });
    assert_eq!(refused.unwrap_err(), NotReplaced::Marked);
    assert!(only(&store, "/a").is_marked());
}

#[test]
fn a_payload_that_is_too_large_is_refused() {
    let store = Store::<TestPayload>::with_seed(Limits::new(1 << 20), 1);
    let page = put(&store, "/a", &["t"], &store.lease()).unwrap();
    let refused = store.replace_payload(&page, TestPayload { from: 9, bytes: 1 << 18 });
    assert_eq!(refused.unwrap_err(), NotReplaced::TooLarge);
    assert_eq!(only(&store, "/a").payload().from, 0);
    store.validate();
}

#[test]
fn the_order_of_the_variants_stays() {
    let store = roomy();
    let lease = store.lease();
    for variant in 1..=3 {
        put_made(
            &store,
            "/a",
            variant,
            &[],
            &lease,
            TestPayload { from: variant.into(), bytes: 9 },
        )
        .unwrap();
    }
    let second = store.candidates(store.key(b"/a")).as_slice()[1].clone();
    store.replace_payload(&second, TestPayload { from: 20, bytes: 9 }).unwrap();
    let found = store.candidates(store.key(b"/a"));
    let from: Vec<u64> = found.iter().map(|page| page.payload().from).collect();
    assert_eq!(from, [1, 20, 3]);
    store.validate();
}

#[test]
fn growing_evicts_pages_that_no_longer_fit() {
    let store = Store::<TestPayload>::with_seed(Limits::new(200_000), 1);
    let lease = store.lease();
    let mut last = None;
    for at in 0..60 {
        let made = TestPayload { from: at, bytes: 2_000 };
        last = Some(put_made(&store, &format!("/{at}"), 0, &["t"], &lease, made).unwrap());
    }
    let evicted = store.stats().counters.evicted;
    let last = last.unwrap();
    store.replace_payload(&last, TestPayload { from: 59, bytes: 24_000 }).unwrap();
    assert!(store.stats().counters.evicted > evicted);
    assert!(store.stats().bytes.total() <= 200_000);
    store.validate();
}
