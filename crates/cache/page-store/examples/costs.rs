//! Measures the store: bytes per page and per tag, time per insertion, lookup and change. It also measures
//! the pauses of lookups and insertions while a million pages are marked, scanned and dropped.
//!
//! `cargo run --release -p page-store --example costs -- [PAGES] [TAGS]`; by default a million pages with
//! 20 tags out of 100,000. All pages share one of the tags. It prints a table. Payloads are empty, so only
//! the store is measured. It needs about 1.5 GB of memory.

#![allow(clippy::disallowed_methods, reason = "a measurement reads the real clock")]

use page_store::{
    AgeStep, AppliedChange, Change, ChangeTarget, IdleScan, Limits, Page, PagePredicate, Payload,
    Site, Store, Strength,
};
use std::sync::Arc;
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
    println!("| {pages} pages with {tags} tags each | |\n|---|---|");
    measure_insertions(&store, pages, tags);
    measure_a_page_with_many_tags(&store);
    measure_lookups(&store, pages);
    measure_changes(&store, pages);
    measure_rounds(&store);
    measure_pauses(&store, pages, tags);
    store.validate();
}

fn row(what: &str, figure: &str) {
    println!("| {what} | {figure} |");
}

fn url(n: usize) -> String {
    format!("/articles/{}/{n}", n / 1_000)
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
    row("storing a page", &format!("{each:?}, worst {worst:?}"));
    let stats = store.stats();
    let without = stats.bytes.total() - stats.bytes.dependencies;
    row("bytes of a page, in all", &(stats.bytes.total() / pages).to_string());
    row("of these, without what it depends on", &(without / pages).to_string());
    let each = stats.bytes.dependencies as f64 / stats.edges as f64;
    let (edges, names) = (stats.edges, stats.names);
    row("bytes of a dependency, names included", &format!("{each:.1} ({edges}, {names} names)"));
}

fn measure_a_page_with_many_tags(store: &Store<Nothing>) {
    let names: Vec<String> = (0..999).map(|n| format!("many:{n}")).collect();
    let before = store.stats().bytes.total();
    let start = Instant::now();
    let mut dependencies = store.dependencies(SITE, b"/many");
    for name in &names {
        dependencies.tag(name.as_bytes());
    }
    let stored = store.insert(store.key(b"/many"), 0, &dependencies, &store.lease(), Nothing);
    let (stored, took) = (stored.is_ok(), start.elapsed());
    let bytes = store.stats().bytes.total() - before;
    assert!(stored, "nothing has changed");
    row("storing a page with 999 tags that no other has", &format!("{took:?}, {bytes} bytes"));
    let (applied, took) = change(store, ChangeTarget::Tag(names[500].as_bytes()), Strength::Drop);
    assert_eq!(applied.dropped, 1);
    row("dropping it by one of them", &format!("{took:?}"));
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
    let each = begin.elapsed() / (rounds * urls.len() as u32);
    row("looking a page up, key hashed", &format!("{each:?}"));
}

fn change(
    store: &Store<Nothing>,
    target: ChangeTarget<'_>,
    strength: Strength,
) -> (AppliedChange, Duration) {
    let start = Instant::now();
    let applied = store.change(&Change { site: SITE, targets: &[target] }, strength);
    (applied, start.elapsed())
}

fn measure_changes(store: &Store<Nothing>, pages: usize) {
    let (mut took, mut dropped) = (Duration::ZERO, 0);
    for n in 0..1_000 {
        let name = format!("tag:{n}");
        let (applied, each) = change(store, ChangeTarget::Tag(name.as_bytes()), Strength::Drop);
        (took, dropped) = (took + each, dropped + applied.dropped);
    }
    let each = took / 1_000;
    row("change of a tag", &format!("{each:?}, {} pages dropped", dropped / 1_000));
    let (applied, took) = change(store, ChangeTarget::Prefix(b"/articles/5/"), Strength::Drop);
    row("change of a prefix", &format!("{took:?}, {} pages dropped", applied.dropped));
    let names: Vec<String> = (0..10_000).map(|n| format!("unused:{n}")).collect();
    let targets: Vec<ChangeTarget<'_>> =
        names.iter().map(|name| ChangeTarget::Tag(name.as_bytes())).collect();
    let lease = store.lease();
    let begin = Instant::now();
    store.change(&Change { site: SITE, targets: &targets }, Strength::Drop);
    row("change of 10,000 tags without pages", &format!("{:?}", begin.elapsed()));
    drop(lease);
    assert!(pages > 6_000, "too few pages to mean anything");
}

/// Ages all pages until half of them are inactive, and drops those.
fn measure_rounds(store: &Store<Nothing>) {
    for (what, older) in [("a round", AgeStep::Anew), ("one more", AgeStep::By(7))] {
        let (_, took, worst) = make_round(store, older);
        row(&format!("{what} through all pages"), &format!("{took:?}, worst hold {worst:?}"));
    }
    let before = store.stats().pages;
    (0..before).step_by(2).for_each(|n| drop(store.candidates(store.key(url(n).as_bytes()))));
    let (dropped, took, worst) = make_round(store, AgeStep::By(1));
    let what = format!("a round that drops {dropped} pages");
    row(&what, &format!("{took:?}, worst hold {worst:?}"));
    while store.tidy() {}
}

/// Runs one scan; returns the number of pages removed, the total duration and that of the longest step.
fn make_round(store: &Store<Nothing>, older: AgeStep) -> (u64, Duration, Duration) {
    let (mut round, mut dropped) = (IdleScan::new(older), 0);
    let (mut took, mut worst) = (Duration::ZERO, Duration::ZERO);
    while !round.is_over() {
        let start = Instant::now();
        let inactive = store.grow_older(&mut round);
        let between = Instant::now();
        dropped += store.remove_inactive(&inactive);
        worst = worst.max(between - start).max(between.elapsed());
        took += start.elapsed();
    }
    (dropped, took, worst)
}

/// Marks, scans and drops all pages while one thread looks up pages and another inserts. Before that it
/// runs the same without a change, to show the pauses of the machine itself.
fn measure_pauses(store: &Store<Nothing>, pages: usize, tags: usize) {
    meanwhile(store, pages, tags, || {
        thread::sleep(Duration::from_secs(2));
        row("two seconds without a change", "");
    });
    meanwhile(store, 2 * pages, tags, || {
        let touches: PagePredicate<Nothing> =
            Arc::new(|page: &Page<Nothing>| page.key().bytes().ends_with(b"/no"));
        let start = Instant::now();
        store.change_where(SITE, &touches, Strength::Drop, 0);
        row("change by a predicate, of no page", &format!("{:?}", start.elapsed()));
    });
    meanwhile(store, 3 * pages, tags, || {
        let (applied, took) = change(store, ChangeTarget::Tag(b"all"), Strength::Mark);
        let what = format!("soft change of a tag of {} pages", applied.marked);
        row(&what, &format!("{took:?}"));
    });
    meanwhile(store, 4 * pages, tags, || {
        let (applied, took) = change(store, ChangeTarget::Tag(b"all"), Strength::Drop);
        row(&format!("change of a tag of {} pages", applied.dropped), &format!("{took:?}"));
    });
    let (begin, mut worst) = (Instant::now(), Duration::ZERO);
    let mut tidied = true;
    while tidied {
        let start = Instant::now();
        tidied = store.tidy();
        worst = worst.max(start.elapsed());
    }
    row("tidying up afterwards", &format!("{:?}, worst hold {worst:?}", begin.elapsed()));
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
    for (what, result) in [("a look-up", lookups), ("an insertion", insertions)] {
        if let Ok(times) = result {
            row(&format!("… {what} meanwhile"), &times);
        }
    }
}

/// Repeats `act` until `done`; returns the median, the 99.9th percentile and the maximum duration.
fn repeat(done: &AtomicBool, mut act: impl FnMut(usize)) -> String {
    let mut times = Vec::new();
    while !done.load(Ordering::Relaxed) || times.is_empty() {
        let start = Instant::now();
        act(times.len());
        times.push(start.elapsed());
    }
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    format!("median {:?}, 99.9 % {:?}, worst {:?} of {}", at(0.5), at(0.999), at(1.0), times.len())
}
