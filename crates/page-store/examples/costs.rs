//! What the store costs: bytes per page and per tag, time per insertion, lookup and change, and how long
//! lookups and insertions are held up while a million pages are dropped.
//!
//! `cargo run --release -p page-store --example costs -- [PAGES] [TAGS]`; by default a million pages with 20
//! tags of a hundred thousand. Payloads are empty: what is measured is the store. Wants about 1.5 GB.

#![allow(clippy::disallowed_methods, reason = "a measurement reads the real clock")]

use page_store::{Change, Limits, Payload, Site, Store, Strength, Target, Tidied};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const SITE: Site = Site(0);

struct Nothing;

impl Payload for Nothing {
    fn bytes(&self) -> usize {
        0
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>());
    let pages = arguments.next().and_then(Result::ok).unwrap_or(1_000_000);
    let tags = arguments.next().and_then(Result::ok).unwrap_or(20);
    let store = Store::<Nothing>::new(Limits::new(16 << 30));
    measure_insertions(&store, pages, tags);
    measure_lookups(&store, pages);
    measure_changes(&store, pages);
    measure_pauses(&store, pages, tags);
}

fn url(n: usize) -> String {
    format!("/articles/2026/11/{n}")
}

fn insert(store: &Store<Nothing>, n: usize, tags: usize) {
    let url = url(n);
    let mut dependencies = store.dependencies(SITE, url.as_bytes());
    dependencies.tag(b"all");
    for tag in 1..tags {
        let name = (n.wrapping_mul(2_654_435_761) + tag * 7_919) % 100_000;
        dependencies.tag(format!("tag:{name}").as_bytes());
    }
    let stored = store.insert(store.key(url.as_bytes()), 0, &dependencies, &store.lease(), Nothing);
    assert!(stored.is_ok() || store.number().get() > 0, "{stored:?}");
}

fn measure_insertions(store: &Store<Nothing>, pages: usize, tags: usize) {
    let (mut worst, begin) = (Duration::ZERO, Instant::now());
    for n in 0..pages {
        let start = Instant::now();
        insert(store, n, tags);
        worst = worst.max(start.elapsed());
    }
    let each = begin.elapsed() / pages as u32;
    println!("{pages} pages, {tags} tags each: insertion {each:?}, worst {worst:?}");
    let stats = store.stats();
    let (edges, per_page) = (stats.edges, stats.bytes.total() / pages);
    println!("  {per_page} bytes a page in all; {} edges, {} names", edges, stats.names);
    println!("  {} bytes an edge, names included", stats.bytes.dependencies / edges);
    println!("  {:?}", stats.bytes);
}

fn measure_lookups(store: &Store<Nothing>, pages: usize) {
    let urls: Vec<String> = (0..1_000).map(|n| url(n * 7_919 % pages)).collect();
    let rounds = 1_000;
    let begin = Instant::now();
    for _ in 0..rounds {
        for url in &urls {
            let found = store.candidates(store.key(url.as_bytes()));
            assert_eq!(found.as_slice().len(), 1);
        }
    }
    println!("lookup, key hashed: {:?}", begin.elapsed() / (rounds * urls.len() as u32));
}

fn measure_changes(store: &Store<Nothing>, pages: usize) {
    let (begin, mut dropped) = (Instant::now(), 0);
    for n in 0..1_000 {
        let name = format!("tag:{n}");
        let targets = [Target::Tag(name.as_bytes())];
        dropped += store.change(&Change { site: SITE, targets: &targets }, Strength::Drop).dropped;
    }
    let each = begin.elapsed() / 1_000;
    println!("change of a tag: {each:?} for {} pages of {pages}", dropped / 1_000);
    let names: Vec<String> = (0..10_000).map(|n| format!("unused:{n}")).collect();
    let targets: Vec<Target<'_>> = names.iter().map(|name| Target::Tag(name.as_bytes())).collect();
    let lease = store.lease();
    let begin = Instant::now();
    store.change(&Change { site: SITE, targets: &targets }, Strength::Drop);
    println!("change of 10,000 tags without pages, remembered: {:?}", begin.elapsed());
    drop(lease);
}

/// Drops everything while one thread looks up and another inserts; before that, the same without the drop,
/// to show what the machine itself adds.
fn measure_pauses(store: &Store<Nothing>, pages: usize, tags: usize) {
    meanwhile(store, pages, tags, || {
        thread::sleep(Duration::from_secs(2));
        println!("two seconds without a change");
    });
    meanwhile(store, 2 * pages, tags, || {
        let begin = Instant::now();
        let targets = [Target::Tag(b"all")];
        let applied = store.change(&Change { site: SITE, targets: &targets }, Strength::Drop);
        println!("change of a tag of {} pages: {:?}", applied.dropped, begin.elapsed());
    });
    let (begin, mut worst) = (Instant::now(), Duration::ZERO);
    let mut tidied = Tidied::MoreToDo;
    while tidied == Tidied::MoreToDo {
        let start = Instant::now();
        tidied = store.tidy();
        worst = worst.max(start.elapsed());
    }
    println!("tidying up afterwards: {:?}, worst hold {worst:?}", begin.elapsed());
    store.validate();
}

fn meanwhile(store: &Store<Nothing>, first: usize, tags: usize, act: impl FnOnce()) {
    let done = AtomicBool::new(false);
    let (lookups, insertions) = thread::scope(|scope| {
        let lookups = scope.spawn(|| {
            repeat(&done, |n| {
                let url = url(n * 7_919 % first);
                drop(store.candidates(store.key(url.as_bytes())));
            })
        });
        let insertions = scope.spawn(|| repeat(&done, |n| insert(store, first + n, tags)));
        act();
        done.store(true, Ordering::Relaxed);
        (lookups.join(), insertions.join())
    });
    for (what, result) in [("lookup", lookups), ("insertion", insertions)] {
        if let Ok(times) = result {
            println!("  meanwhile, {what}: {times}");
        }
    }
}

/// Does it again and again; the median, the 99.9th percentile and the worst.
fn repeat(done: &AtomicBool, mut act: impl FnMut(usize)) -> String {
    let mut times = Vec::new();
    while !done.load(Ordering::Relaxed) {
        let start = Instant::now();
        act(times.len());
        times.push(start.elapsed());
    }
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    format!(
        "{} done, median {:?}, 99.9 % {:?}, worst {:?}",
        times.len(),
        at(0.5),
        at(0.999),
        at(1.0)
    )
}
