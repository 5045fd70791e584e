//! The name of a page's URL: in the page's place as long as the URL has one page and nothing is known of its
//! changes, among the tags otherwise. Which of both it is may be seen by nothing but the bytes.

mod common;

use common::{Made, SITE, put, put_made, roomy};
use page_store::{Change, Store, Strength, Target};

fn change(store: &Store<Made>, target: Target<'_>, strength: Strength) -> u64 {
    let applied = store.change(&Change { site: SITE, targets: &[target] }, strength);
    store.validate();
    applied.dropped + applied.marked
}

fn bytes(store: &Store<Made>) -> usize {
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
    assert_eq!(change(&store, Target::Url(b"/a"), Strength::Mark), 1);
    assert_eq!(store.stats().changes_remembered, 1);
    assert!(bytes(&store) > before, "what is known of a change takes something");
    assert_eq!(store.pages(SITE, &Target::Url(b"/a"), 0, 10).total, 1);
    drop(lease);
    // A step that forgets.
    drop(store.lease());
    let figures = store.stats();
    assert_eq!((figures.changes_remembered, figures.names, figures.edges), (0, 3, 4));
    // But for the table that it was in.
    assert!(bytes(&store) < before + 100, "{} of {before}", bytes(&store));
    assert_eq!(change(&store, Target::Url(b"/a"), Strength::Drop), 1);
    assert_eq!(store.stats().pages, 1);
}

#[test]
fn pages_that_share_a_url_are_all_found_by_it_and_the_last_stays_found() {
    let store = roomy();
    let lease = store.lease();
    let page = |variant: u32| {
        let made = Made { from: variant.into(), bytes: 100 };
        put_made(&store, "/a", variant, &["t"], &lease, made).expect("nothing changed")
    };
    let first = page(0);
    let before = bytes(&store);
    let others = [page(1), page(2)];
    assert!(bytes(&store) > before);
    assert_eq!(store.pages(SITE, &Target::Url(b"/a"), 0, 10).total, 3);
    for page in others {
        store.remove(&page);
    }
    // But for tables and lists, which keep some room.
    assert!(bytes(&store) < before + 200, "{} of {before}", bytes(&store));
    assert!(!first.is_marked());
    assert_eq!(change(&store, Target::Url(b"/a"), Strength::Mark), 1);
    assert!(first.is_marked());
    assert_eq!(change(&store, Target::Url(b"/a"), Strength::Drop), 1);
}

#[test]
fn a_page_rendered_anew_while_the_dropped_one_is_not_buried_is_found_by_its_url() {
    let store = roomy();
    let urls: Vec<String> = (0..2_000).map(|n| format!("/n/{n}")).collect();
    let fill = || {
        let lease = store.lease();
        for url in &urls {
            put(&store, url, &[], &lease).expect("nothing changed since");
        }
    };
    fill();
    assert_eq!(change(&store, Target::Everything, Strength::Drop), 2_000);
    assert!(store.stats().dead > 1_000, "most are not buried yet");
    fill();
    store.validate();
    while store.tidy() == page_store::Tidied::MoreToDo {}
    store.validate();
    for url in &urls {
        assert_eq!(
            store
                .change(
                    &Change { site: SITE, targets: &[Target::Url(url.as_bytes())] },
                    Strength::Drop,
                )
                .dropped,
            1
        );
    }
    assert_eq!(store.stats().pages, 0);
}
