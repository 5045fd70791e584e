//! Tests which changes invalidate a page from the memcached port.
//!
//! Times are plain numbers; the store is a real one.

use super::*;
use page_store::{Change, ChangeTarget, Limits, Payload, Site, Strength};

struct Nothing;

impl Payload for Nothing {
    fn bytes(&self) -> usize {
        0
    }
}

const RENDER: u64 = 60_000;

fn fixture() -> (Store<Nothing>, Leases) {
    let store = Store::new(Limits::new(1 << 20));
    let leases = Leases::new(&store, Duration::from_millis(RENDER), 0xab);
    (store, leases)
}

fn change(store: &Store<Nothing>, leases: &Leases, at: u64) -> u64 {
    let targets = [ChangeTarget::Tag(b"a")];
    let applied = store.change(&Change { site: Site(0), targets: &targets }, Strength::Drop);
    leases.changed(store, || at);
    applied.number.get()
}

#[test]
fn a_change_counts_against_pages_for_as_long_as_a_render_may_take() {
    let (store, leases) = fixture();
    let first = change(&store, &leases, 100_000);
    let second = change(&store, &leases, 130_000);
    assert!(leases.assumed(100_000 + RENDER - 1).number().get() < first);
    assert_eq!(leases.assumed(100_000 + RENDER).number().get(), first);
    assert_eq!(leases.assumed(130_000 + RENDER - 1).number().get(), first);
    assert_eq!(leases.assumed(130_000 + RENDER).number().get(), second);
}

#[test]
fn changes_without_end_take_no_memory_without_end_and_are_let_go() {
    let (store, leases) = fixture();
    for tenth in 0..3_000 {
        change(&store, &leases, 1_000_000 + tenth * 100);
    }
    let (now, kept) = (1_000_000 + 300_000, leases.inside.lock().unwrap().after_changes.len());
    assert!(kept <= 62, "{kept}");
    // At most as old as `render_time` plus the second within which changes share a lease.
    let assumed = leases.assumed(now).number().get();
    assert!((2_380..=2_400).contains(&assumed), "{assumed}");
}

#[test]
fn a_lease_is_known_by_its_token_until_a_render_would_be_over() {
    let (store, leases) = fixture();
    let before = leases.hand_out(&store, 1_000);
    change(&store, &leases, 2_000);
    let after = leases.hand_out(&store, 3_000);
    assert_ne!(before, after);
    let number = |token: &str, at| leases.handed(token.as_bytes(), at).map(|l| l.number().get());
    assert_eq!((number(&before, 3_000), number(&after, 3_000)), (Some(0), Some(1)));
    assert_eq!(number(&before, 1_000 + RENDER), Some(0));
    assert_eq!(number(&before, 1_001 + RENDER), None);
    for wrong in ["", "ab", "ab.", "ab.7", "ac.1", ".1", "ab.1.1", "ab.-1"] {
        assert_eq!(number(wrong, 3_000), None, "{wrong}");
    }
}
