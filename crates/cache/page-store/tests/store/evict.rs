//! Eviction: the store stays within its budget, used pages stay, a scan passes through, and the ghost table
//! works.
//!
//! Pages are small and claim 2 KB; the store is the real one. Byte counts against the heap: `heap.rs`.

use crate::common::*;
use page_store::{Limits, Store};

/// A store for about `pages` pages of 2 KB.
fn store_for(pages: usize) -> Store<TestPayload> {
    Store::with_seed(Limits::new(pages * 3_000 + 100_000), 1)
}

fn add(store: &Store<TestPayload>, url: &str, bytes: usize) {
    put_made(store, url, 0, &["t"], &store.lease(), TestPayload { from: 0, bytes })
        .expect("nothing changed");
}

fn in_budget(store: &Store<TestPayload>) {
    let held = store.stats().bytes.total();
    assert!(held <= store.limits().budget_bytes, "{held} bytes held");
}

#[test]
fn a_scan_of_a_million_does_not_push_out_the_hot_hundred() {
    let store = store_for(1_000);
    let hot: Vec<String> = (0..100).map(|n| format!("/hot/{n}")).collect();
    for url in &hot {
        add(&store, url, 2_000);
    }
    let ask = || hot.iter().filter(|url| has(&store, url)).count();
    assert_eq!((ask(), ask()), (100, 100));
    for n in 0..1_000_000 {
        add(&store, &format!("/cold/{n}"), 2_000);
        if n % 100_000 == 0 {
            store.validate();
            in_budget(&store);
        }
    }
    assert_eq!(ask(), 100);
    assert!(store.stats().counters.evicted > 990_000);
    store.validate();
    in_budget(&store);
}

#[test]
fn hot_pages_stay_when_requested_during_a_scan() {
    let store = store_for(1_000);
    let mut misses = 0;
    for n in 0..100_000 {
        add(&store, &format!("/cold/{n}"), 2_000);
        let url = format!("/hot/{}", n % 100);
        if !has(&store, &url) {
            misses += 1;
            add(&store, &url, 2_000);
        }
    }
    assert!(misses <= 300, "{misses} of 100,000 requests for the hot hundred missed");
    store.validate();
}

#[test]
fn a_page_that_comes_back_soon_enters_the_main_queue() {
    let store = store_for(500);
    add(&store, "/back", 2_000);
    let mut n = 0;
    let mut scan = |pages: usize| {
        for _ in 0..pages {
            n += 1;
            add(&store, &format!("/cold/{n}"), 2_000);
        }
    };
    scan(700);
    assert!(
        !store.pages(SITE, &tag("t"), 0, 1_000).pages.iter().any(|p| p.key().bytes() == b"/back")
    );
    add(&store, "/back", 2_000);
    scan(5_000);
    assert!(has(&store, "/back"), "it was remembered and kept");
    store.validate();
}

#[test]
fn a_hot_page_that_a_change_drops_keeps_its_rank() {
    let store = store_for(500);
    for _ in 0..3 {
        add(&store, "/hot", 2_000);
        assert!(has(&store, "/hot") && has(&store, "/hot"));
        drop_all(&store, page_store::ChangeTarget::Url(b"/hot"));
    }
    add(&store, "/hot", 2_000);
    for n in 0..5_000 {
        add(&store, &format!("/cold/{n}"), 2_000);
    }
    assert!(has(&store, "/hot"));
    store.validate();
}

#[test]
fn a_large_page_displaces_as_much_as_it_takes() {
    let limits = Limits { page_bytes_max: usize::MAX, sweep_pages: 7, ..Limits::new(2_000_000) };
    let store = Store::<TestPayload>::with_seed(limits, 1);
    for n in 0..700 {
        add(&store, &format!("/{n}"), 2_000);
    }
    let before = store.stats().pages;
    add(&store, "/large", 900_000);
    assert!(has(&store, "/large"));
    assert!(store.stats().pages < before - 200);
    store.validate();
    in_budget(&store);
}

#[test]
fn many_hot_pages_give_way_as_well() {
    let store = store_for(3_000);
    for n in 0..10_000 {
        let url = format!("/{n}");
        add(&store, &url, 2_000);
        for _ in 0..4 {
            has(&store, &url);
        }
    }
    store.validate();
    in_budget(&store);
    assert!(store.stats().pages > 2_000);
    assert!(has(&store, "/9999"));
}

#[test]
fn many_tags_count_against_the_budget() {
    let store = store_for(1_000);
    let lease = store.lease();
    for n in 0..2_000 {
        let names: Vec<String> = (0..50).map(|tag| format!("{n}:{tag}")).collect();
        let tags: Vec<&str> = names.iter().map(String::as_str).collect();
        put(&store, &format!("/{n}"), &tags, &lease).unwrap();
    }
    store.validate();
    in_budget(&store);
    assert!(store.stats().bytes.dependencies > store.stats().bytes.pages);
}

#[test]
fn remembered_changes_count_against_the_budget() {
    let store = store_for(1_000);
    let lease = store.lease();
    for n in 0..1_000 {
        add(&store, &format!("/{n}"), 2_000);
    }
    for n in 0..20_000 {
        drop_all(&store, tag(&format!("change:{n}")));
    }
    store.validate();
    in_budget(&store);
    let held = store.stats().pages;
    drop(lease);
    for _ in 0..200 {
        drop(store.lease());
    }
    assert_eq!(store.stats().changes_remembered, 0);
    for n in 0..1_000 {
        add(&store, &format!("/new/{n}"), 2_000);
    }
    assert!(store.stats().pages > held, "the room is used again");
    store.validate();
    in_budget(&store);
}
