//! The name of a page's URL lies in the page's place while the URL has one page and no change record.
//! Otherwise it is among the tags. Only the byte counts show the difference.

use crate::common::{SITE, TestPayload, put, put_made, roomy};
use page_store::{Change, ChangeTarget, Store, Strength};

fn change(store: &Store<TestPayload>, target: ChangeTarget<'_>, strength: Strength) -> u64 {
    let applied = store.change(&Change { site: SITE, targets: &[target] }, strength);
    store.validate();
    applied.dropped + applied.marked
}

fn bytes(store: &Store<TestPayload>) -> usize {
    store.validate();
    store.stats().bytes.total()
}

#[test]
fn a_url_that_changed_is_kept_as_before_once_that_is_forgotten() {
    let store = roomy();
    let lease = store.lease();
    put(&store, "/a", &[], &lease).expect("nothing changed");
    put(&store, "/b", &[], &lease).expect("nothing changed");
    let before = bytes(&store);
    assert_eq!(change(&store, ChangeTarget::Url(b"/a"), Strength::Mark), 1);
    assert_eq!(store.stats().changes_remembered, 1);
    assert!(bytes(&store) > before, "what is known of a change takes something");
    assert_eq!(store.pages(SITE, &ChangeTarget::Url(b"/a"), 0, 10).total, 1);
    drop(lease);
    // A step that forgets changes.
    drop(store.lease());
    let figures = store.stats();
    assert_eq!((figures.changes_remembered, figures.names, figures.edges), (0, 3, 4));
    // The table that contained the name may stay larger.
    assert!(bytes(&store) < before + 100, "{} of {before}", bytes(&store));
    assert_eq!(change(&store, ChangeTarget::Url(b"/a"), Strength::Drop), 1);
    assert_eq!(store.stats().pages, 1);
}

#[test]
fn pages_that_share_a_url_are_all_found_by_it_and_the_last_stays_found() {
    let store = roomy();
    let lease = store.lease();
    let page = |variant: u32| {
        let made = TestPayload { from: variant.into(), bytes: 100 };
        put_made(&store, "/a", variant, &["t"], &lease, made).expect("nothing changed")
    };
    let first = page(0);
    let before = bytes(&store);
    let others = [page(1), page(2)];
    assert!(bytes(&store) > before);
    assert_eq!(store.pages(SITE, &ChangeTarget::Url(b"/a"), 0, 10).total, 3);
    for page in others {
        store.remove(&page);
    }
    // Tables and lists may keep some spare capacity.
    assert!(bytes(&store) < before + 200, "{} of {before}", bytes(&store));
    assert!(!first.is_marked());
    assert_eq!(change(&store, ChangeTarget::Url(b"/a"), Strength::Mark), 1);
    assert!(first.is_marked());
    assert_eq!(change(&store, ChangeTarget::Url(b"/a"), Strength::Drop), 1);
}

#[test]
fn a_page_rendered_again_before_the_dead_one_is_buried_is_found_by_its_url() {
    let store = roomy();
    let urls: Vec<String> = (0..2_000).map(|n| format!("/n/{n}")).collect();
    let fill = || {
        let lease = store.lease();
        for url in &urls {
            put(&store, url, &[], &lease).expect("nothing changed since");
        }
    };
    fill();
    assert_eq!(change(&store, ChangeTarget::Everything, Strength::Drop), 2_000);
    assert!(store.stats().dead > 1_000, "most are not buried yet");
    fill();
    store.validate();
    while store.tidy() {}
    store.validate();
    for url in &urls {
        assert_eq!(
            store
                .change(
                    &Change { site: SITE, targets: &[ChangeTarget::Url(url.as_bytes())] },
                    Strength::Drop,
                )
                .dropped,
            1
        );
    }
    assert_eq!(store.stats().pages, 0);
}
