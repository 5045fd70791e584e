//! Keys for cache warming after a change: the most used first, each once, within limits, and no private
//! pages.

use crate::common::{self, SITE, drop_all};
use page_store::{Audience, Change, ChangeTarget, Limits, Page, Payload, Store, Strength};
use std::sync::Arc;

struct Content {
    audience: Audience,
}

impl Payload for Content {
    fn bytes(&self) -> usize {
        0
    }

    fn audience(&self) -> Audience {
        self.audience
    }
}

fn store(rewarm_pages_max: usize, rewarm_uses_min: u8) -> Store<Content> {
    let limits = Limits { rewarm_pages_max, rewarm_uses_min, ..Limits::new(1 << 24) };
    Store::with_seed(Limits { sweep_pages: 3, ..limits }, 1)
}

/// Stores a page and looks it up `uses` times.
fn put(store: &Store<Content>, url: &str, uses: usize, audience: Audience) {
    let (key, lease) = (store.key(url.as_bytes()), store.lease());
    let mut dependencies = store.dependencies(SITE, url.as_bytes());
    dependencies.tag(b"t");
    store.insert(key, 0, &dependencies, &lease, Content { audience }).expect("nothing changed");
    for _ in 0..uses {
        store.candidates(key);
    }
}

fn change(store: &Store<Content>, strength: Strength) {
    store.change(&Change { site: SITE, targets: &[ChangeTarget::Tag(b"t")] }, strength);
    store.validate();
}

fn taken(store: &Store<Content>) -> Vec<String> {
    let next = || store.next_to_rewarm();
    let key = |key: page_store::KeyBuf| String::from_utf8_lossy(key.as_key().bytes()).into_owned();
    let taken = std::iter::from_fn(next).map(key).collect();
    store.validate();
    taken
}

#[test]
fn the_most_used_come_first_and_the_unused_not_at_all() {
    for strength in [Strength::Drop, Strength::Mark] {
        let store = store(100, 1);
        for (url, uses) in [("/0", 0), ("/1", 1), ("/3", 3), ("/2", 2), ("/9", 9)] {
            put(&store, url, uses, Audience::Anybody);
        }
        change(&store, strength);
        assert_eq!(store.stats().to_rewarm, 4);
        let taken = taken(&store);
        assert_eq!(taken[2..], ["/2", "/1"]);
        assert!(taken[..2].contains(&"/3".to_string()) && taken[..2].contains(&"/9".to_string()));
        assert_eq!(store.stats().to_rewarm, 0);
    }
}

#[test]
fn changes_by_predicate_hand_their_pages_over_as_well() {
    let store = store(100, 0);
    put(&store, "/a", 0, Audience::Anybody);
    put(&store, "/b", 0, Audience::Anybody);
    let touches: page_store::PagePredicate<Content> =
        Arc::new(|page: &Page<Content>| page.key().bytes() == b"/a");
    store.change_where(SITE, &touches, Strength::Drop, 0);
    assert_eq!(taken(&store), ["/a"]);
}

#[test]
fn private_pages_are_not_warmed() {
    let store = store(100, 0);
    put(&store, "/a", 1, Audience::Somebody);
    change(&store, Strength::Drop);
    assert!(taken(&store).is_empty());
}

#[test]
fn a_key_waits_once_and_a_mark_counts_once() {
    let store = store(100, 0);
    put(&store, "/a", 1, Audience::Anybody);
    change(&store, Strength::Mark);
    change(&store, Strength::Mark);
    change(&store, Strength::Drop);
    put(&store, "/a", 1, Audience::Anybody);
    change(&store, Strength::Drop);
    assert_eq!(taken(&store), ["/a"]);
}

#[test]
fn the_least_used_make_room() {
    let store = store(2, 0);
    for (url, uses) in [("/0", 0), ("/1", 1), ("/3", 3), ("/2", 2)] {
        put(&store, url, uses, Audience::Anybody);
        change(&store, Strength::Drop);
    }
    assert_eq!(taken(&store), ["/3", "/2"]);
}

#[test]
fn no_keys_wait_if_it_is_off_and_bytes_are_limited() {
    let off = store(0, 0);
    put(&off, "/a", 3, Audience::Anybody);
    change(&off, Strength::Drop);
    assert_eq!((taken(&off).len(), off.stats().to_rewarm), (0, 0));
    // A thirty-second of the budget is reserved: 32 KiB, half of it for the keys themselves.
    let limits = Limits { rewarm_pages_max: 1_000_000, rewarm_uses_min: 0, ..Limits::new(1 << 20) };
    let small: Store<Content> = Store::with_seed(limits, 1);
    for n in 0..500 {
        put(&small, &format!("/{}/{n}", "x".repeat(300)), 0, Audience::Anybody);
    }
    change(&small, Strength::Drop);
    let waiting = small.stats().to_rewarm;
    assert!((30..57).contains(&waiting), "{waiting} wait");
    assert!(drop_everything(&small) == 0 && small.stats().bytes.total() <= 1 << 20);
}

fn drop_everything(store: &Store<Content>) -> u64 {
    let change = Change { site: SITE, targets: &[ChangeTarget::Everything] };
    store.change(&change, Strength::Drop).dropped
}

/// The stores of the other tests keep no keys.
#[test]
fn by_default_it_is_off() {
    let store = common::roomy();
    common::put(&store, "/a", &[], &store.lease()).expect("nothing changed");
    drop_all(&store, ChangeTarget::Everything);
    assert!(store.next_to_rewarm().is_none());
}
