//! Rule 9: a response that is not stored removes older pages of its place, and nothing else.

use crate::common::{self, SITE, TestPayload, count, depends, has, put, put_made, roomy};
use page_store::{StoreRefusal, Worth};

const MADE: TestPayload = TestPayload { from: 0, bytes: 100 };

#[test]
fn the_older_page_goes_and_other_variants_stay() {
    let store = roomy();
    let lease = store.lease();
    let old = put_made(&store, "/a", 1, &[], &lease, MADE).unwrap();
    put_made(&store, "/a", 2, &[], &lease, MADE).unwrap();
    let done = store.supersede(store.key(b"/a"), &[1], &lease, std::slice::from_ref(&old));
    assert_eq!(done.removed.len(), 1);
    assert!(!old.is_stored());
    assert_eq!(count(&store, "/a"), 1);
    assert_eq!(store.stats().counters.superseded, 1);
    store.validate();
}

#[test]
fn an_older_render_is_refused_for_that_place_only() {
    let store = roomy();
    let (before, lease) = (store.lease(), store.lease());
    let done = store.supersede(store.key(b"/a"), &[1], &lease, &[]);
    let refused = put_made(&store, "/a", 1, &[], &before, MADE).unwrap_err();
    assert_eq!(refused.reason, StoreRefusal::Superseded);
    put_made(&store, "/a", 2, &[], &before, MADE).unwrap();
    put_made(&store, "/b", 1, &[], &before, MADE).unwrap();
    put_made(&store, "/a", 1, &[], &store.lease(), MADE).unwrap();
    assert_eq!(store.number(), done.number);
    drop((before, lease));
    assert_eq!(store.stats().changes_remembered, 0);
    store.validate();
}

/// The response names no fields, so an older render must not bring back another variant.
#[test]
fn an_answer_for_the_key_refuses_every_variant_that_began_before() {
    let store = roomy();
    let (before, lease) = (store.lease(), store.lease());
    let old = put_made(&store, "/a", 1, &[], &before, MADE).unwrap();
    let mut made_from = depends(&store, "/a", &[]);
    made_from.place(store.key(b"/a"), 9);
    let done = store.supersede_key(store.key(b"/a"), &lease, &[old]);
    assert_eq!((done.removed.len(), count(&store, "/a")), (1, 0));
    for variant in [0, 1, 9] {
        let refused = put_made(&store, "/a", variant, &[], &before, MADE).unwrap_err();
        assert_eq!(refused.reason, StoreRefusal::Superseded);
    }
    let later = store.may_share(before.number(), store.number(), &made_from);
    assert_eq!(later, Err(StoreRefusal::Superseded));
    put_made(&store, "/b", 1, &[], &before, MADE).unwrap();
    put_made(&store, "/a", 9, &[], &store.lease(), MADE).unwrap();
    store.validate();
}

#[test]
fn a_page_with_a_newer_lease_stays_and_so_does_one_of_another_key() {
    let store = roomy();
    let lease = store.lease();
    common::drop_all(&store, common::tag("t"));
    let newer = put(&store, "/a", &[], &store.lease()).unwrap();
    let other = put(&store, "/b", &[], &lease).unwrap();
    let done = store.supersede(store.key(b"/a"), &[0], &lease, &[newer, other]);
    assert!(done.removed.is_empty());
    assert!(has(&store, "/a") && has(&store, "/b"));
}

#[test]
fn a_request_that_comes_later_shares_no_older_render() {
    let store = roomy();
    let (lease, before) = (store.lease(), store.number());
    let mut made_from = depends(&store, "/a", &[]);
    made_from.place(store.key(b"/a"), 0);
    store.supersede(store.key(b"/a"), &[0], &lease, &[]);
    assert_eq!(store.may_share(lease.number(), before, &made_from), Ok(()));
    let later = store.may_share(lease.number(), store.number(), &made_from);
    assert_eq!(later, Err(StoreRefusal::Superseded));
}

#[test]
fn nothing_is_restored_under_a_key_that_was_answered_for() {
    let store = roomy();
    let restoring = store.restoring(SITE);
    let lease = store.lease();
    store.supersede(store.key(b"/a"), &[7], &lease, &[]);
    let restore = |url: &str| {
        let worth = Worth { uses: 0, is_proven: false };
        let made_from = depends(&store, url, &[]);
        restoring.restore(store.key(url.as_bytes()), 1, &made_from, MADE, worth, None)
    };
    assert_eq!(restore("/a").unwrap_err().as_str(), "superseded");
    restore("/b").unwrap();
    drop((restoring, lease));
    assert_eq!(store.stats().changes_remembered, 0);
    store.validate();
}
