//! The observer of a change gets each affected page once, after the page is gone, with the name that
//! reached it. It is called under no lock, for at most [`REPORTED_PAGES_MAX`] pages.

use crate::common::SITE;
use page_store::{
    Change, ChangeTarget, DependencyName, Keys, Limits, Page, PagePredicate, Payload,
    REPORTED_PAGES_MAX, ReportedPage, Store, Strength,
};
use std::cell::Cell;
use std::sync::Arc;

struct Content;

impl Payload for Content {
    fn bytes(&self) -> usize {
        0
    }
}

fn store(sweep_pages: usize) -> Store<Content> {
    Store::with_seed(Limits { sweep_pages, ..Limits::new(1 << 26) }, 1)
}

fn put(store: &Store<Content>, url: &str, tags: &[&str]) -> Page<Content> {
    let mut dependencies = store.dependencies(SITE, url.as_bytes());
    for tag in tags {
        dependencies.tag(tag.as_bytes());
    }
    let key = store.key(url.as_bytes());
    store.insert(key, 0, &dependencies, &store.lease(), Content).expect("nothing changed")
}

/// The observed pages of a change: key, number of the change, name.
type Reports = Vec<(String, u64, Option<DependencyName>)>;

fn said(told: &ReportedPage<'_, Content>) -> (String, u64, Option<DependencyName>) {
    let key = String::from_utf8_lossy(told.page.key().bytes()).into_owned();
    (key, told.number.get(), told.name)
}

fn change(store: &Store<Content>, targets: &[ChangeTarget<'_>], strength: Strength) -> Reports {
    let mut all = Reports::new();
    let change = Change { site: SITE, targets };
    let mut tell = |told: ReportedPage<'_, Content>| {
        // No lock is held: a call of the store from here waits for nothing.
        assert!(store.stats().changes_remembered <= store.stats().names);
        let stored = store.peek(told.page.key());
        assert_eq!(stored.as_slice().is_empty(), strength == Strength::Drop, "after it is done");
        all.push(said(&told));
    };
    let applied =
        store.change_telling(&change, Keys::All, (strength, 7), &mut tell, &|sweep| sweep());
    assert!(all.iter().all(|(_, number, _)| *number == applied.number.get()));
    store.validate();
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

fn keys(said: &[(String, u64, Option<DependencyName>)]) -> Vec<&str> {
    said.iter().map(|(key, ..)| &**key).collect()
}

#[test]
fn each_page_is_reported_once_with_the_name_that_reached_it() {
    for sweep_pages in [1, 2, 1_000] {
        let store = store(sweep_pages);
        put(&store, "/a", &["news", "news:4"]);
        put(&store, "/b", &["news"]);
        put(&store, "/c", &["other"]);
        let targets = [
            ChangeTarget::Tag(b"news"),
            ChangeTarget::Tag(b"news:4"),
            ChangeTarget::Url(b"/nobody"),
        ];
        let told = change(&store, &targets, Strength::Drop);
        assert_eq!(keys(&told), ["/a", "/b"]);
        let names = |target: &ChangeTarget<'_>| store.names(SITE, target);
        assert_eq!(told[1].2, Some(names(&targets[0])[0]));
        let either = [names(&targets[0]), names(&targets[1])].concat();
        assert!(told[0].2.is_some_and(|name| either.contains(&name)));
        assert!(change(&store, &targets, Strength::Drop).is_empty());
    }
}

#[test]
fn a_marked_page_is_not_reported_again() {
    let store = store(10);
    put(&store, "/a", &["news"]);
    let news = [ChangeTarget::Tag(b"news")];
    assert_eq!(keys(&change(&store, &news, Strength::Mark)), ["/a"]);
    assert!(change(&store, &news, Strength::Mark).is_empty());
    assert_eq!(keys(&change(&store, &news, Strength::Drop)), ["/a"]);
}

#[test]
fn open_changes_and_changes_by_predicate_are_reported_too() {
    let store = store(2);
    for url in ["/a", "/b", "/c"] {
        put(&store, url, &["news"]);
    }
    let touches: PagePredicate<Content> = Arc::new(|page| page.key().bytes() == b"/b");
    let mut all = Reports::new();
    let mut tell = |told: ReportedPage<'_, Content>| all.push(said(&told));
    store.change_where_telling(SITE, &touches, Strength::Drop, 0, &mut tell);
    let news = Change { site: SITE, targets: &[ChangeTarget::Tag(b"news")] };
    let opened = store.open_telling(&news, Strength::Drop, &mut tell, &|sweep| sweep());
    store.settle(opened);
    all.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(keys(&all), ["/a", "/b", "/c"]);
    assert_eq!(all[1].2, None);
    assert!(all[0].2.is_some());
    store.validate();
}

#[test]
fn a_large_change_is_reported_in_part() {
    let store = store(100);
    for at in 0..REPORTED_PAGES_MAX + 10 {
        put(&store, &format!("/{at}"), &[]);
    }
    let told = change(&store, &[ChangeTarget::Everything], Strength::Drop);
    assert_eq!(told.len(), REPORTED_PAGES_MAX);
}

#[test]
fn peeking_is_no_use_and_serving_is_counted_to_the_maximum() {
    let store = store(10);
    let page = put(&store, "/a", &[]);
    assert_eq!(store.peek(store.key(b"/a")).as_slice().len(), 1);
    assert_eq!(page.served(), 0);
    page.serve();
    assert_eq!(page.served(), 1);
    let page = store.replace_payload(&page, Content).expect("it is stored");
    assert_eq!(page.served(), 1, "the same response in another form");
    for _ in 0..100_000 {
        page.serve();
    }
    assert_eq!(page.served(), page_store::SERVED_MAX);
}

/// A sweep of more than one batch runs through `aside`, and runs even if `aside` does not call it.
#[test]
fn a_change_of_many_pages_goes_aside_once() {
    let news = Change { site: SITE, targets: &[ChangeTarget::Tag(b"news")] };
    for (pages, expected) in [(2, 0), (3, 1)] {
        for answers in [true, false] {
            let store = store(2);
            for page in 0..pages {
                put(&store, &format!("/{page}"), &["news"]);
            }
            let aside = Cell::new(0);
            let go_on = |sweep: &mut dyn FnMut()| {
                aside.set(aside.get() + 1);
                assert_eq!(store.stats().pages, pages, "nothing is dropped before");
                // No lock is held, and the change has its number: older renders are not stored any more.
                assert_eq!(store.stats().number.get(), 1);
                if answers {
                    sweep();
                }
            };
            let applied =
                store.change_telling(&news, Keys::All, (Strength::Drop, 0), &mut |_| {}, &go_on);
            assert_eq!((aside.get(), applied.dropped), (expected, pages as u64));
            assert_eq!(store.stats().pages, 0);
            store.validate();
        }
    }
}

/// A change restricted to certain keys leaves other pages that depend on the same name. It refuses every
/// running render that depends on it, because only the keys of pages are compared.
#[test]
fn a_change_may_be_limited_to_keys() {
    for sweep_pages in [1, 1_000] {
        let store = store(sweep_pages);
        let insert = |key: &str, lease: &page_store::Lease| {
            let dependencies = store.dependencies(SITE, b"/a");
            store.insert(store.key(key.as_bytes()), 0, &dependencies, lease, Content).is_ok()
        };
        let keys = ["http://one/a", "http://two/a", "https://one/a"];
        assert!(keys.iter().all(|key| insert(key, &store.lease())));
        let under_way = store.lease();
        let change = Change { site: SITE, targets: &[ChangeTarget::Url(b"/a")] };
        let beginnings: [&[u8]; 2] = [b"http://one/", b"https://one/"];
        let how = (Strength::Drop, 0);
        let keys_of_one = Keys::Beginning(&beginnings);
        let applied =
            store.change_telling(&change, keys_of_one, how, &mut |_| {}, &|sweep| sweep());
        assert_eq!(applied.dropped, 2);
        let is_stored = |key: &&str| !store.peek(store.key(key.as_bytes())).as_slice().is_empty();
        assert_eq!(keys.iter().filter(|key| is_stored(key)).count(), 1);
        assert!(is_stored(&"http://two/a"));
        assert!(keys.iter().all(|key| !insert(key, &under_way)), "it began before the change");
        store.validate();
    }
}
