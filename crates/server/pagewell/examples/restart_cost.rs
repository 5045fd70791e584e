//! Measures the cost of a restart: writing and loading a snapshot of many pages, the longest hold
//! of the index lock, and the time to the first hit. Run `cargo run --release -p pagewell --example
//! restart_cost -- PAGES DIRECTORY`. The caller has to remove the directory.
//!
//! Pages have half a kilobyte of content, five header lines and three tags. No request is sent: a
//! hit is a lookup in the store.

use bytes::Bytes;
use config::{Config, raw, resolve};
use delivery::site::Site;
use delivery::site::SiteTable;
use http_cache::{Policy, RequestFacts, StoredResponse, Timestamp, storable};
use origin::Origin;
use page_store::Walk;
use pagewell::snapshot;
use std::sync::Arc;
use std::time::Duration;
use stored_pages::page::{NewPage, dependencies};
use telemetry::clock::Clock;
use telemetry::per_address::PerAddress;
use telemetry::phase::Phase;
use tokio::sync::watch;

#[tokio::main]
async fn main() {
    let mut args = std::env::args().skip(1);
    let pages: u64 = args.next().and_then(|text| text.parse().ok()).unwrap_or(100_000);
    let directory = args.next().unwrap_or_else(|| "/tmp/restart-cost".to_owned());
    let text = format!(
        "memory = \"16G\"\nsite.origin = \"http://127.0.0.1:1\"\n\
         [snapshot]\ndirectory = {directory:?}\nunwatched = \"serve\"\nevery = \"1h\"\n"
    );
    let file: raw::File = toml::from_str(&text).expect("a configuration");
    let config = Arc::new(resolve(&file).expect("a configuration"));
    let clock = Clock::start();
    write(&config, &clock, pages).await;
    load(&config, &clock).await;
}

async fn write(config: &Arc<Config>, clock: &Clock, pages: u64) {
    let (stop, stopped) = watch::channel(Phase::default());
    let site = site(config, clock).await;
    let loading =
        snapshot::begin(&site, snapshot::Before::Ended).expect("the directory can be used");
    let running = tokio::spawn(snapshot::run(site.clone(), loading, stopped));
    (0..pages).for_each(|n| put(&site, clock, n));
    println!("{pages} pages, {} MB in memory", site.store.stats().bytes.total() >> 20);
    holds(&site, clock);
    let begun = loop {
        match snapshot::begin_last(&site) {
            Some(begun) => break begun,
            None => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    };
    let at = clock.instant();
    snapshot::write_last(&site, begun).await;
    println!("written in {:?}", at.elapsed());
    stop.send_replace(Phase::Stopping);
    running.await.expect("it ends");
}

async fn load(config: &Arc<Config>, clock: &Clock) {
    let (stop, stopped) = watch::channel(Phase::default());
    let site = site(config, clock).await;
    let at = clock.instant();
    let loading =
        snapshot::begin(&site, snapshot::Before::Ended).expect("the directory can be used");
    println!("looked at in {:?}", at.elapsed());
    let running = tokio::spawn(snapshot::run(site.clone(), loading, stopped));
    while site.store.number().get() == 0 && site.store.stats().pages == 0 {
        tokio::task::yield_now().await;
    }
    println!("first hit after {:?}", at.elapsed());
    while site.counters.snapshot_pages.get() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let all = site.counters.snapshot_pages.get();
    println!("{all} pages after {:?}", at.elapsed());
    stop.send_replace(Phase::Stopping);
    running.await.expect("it ends");
}

async fn site(config: &Arc<Config>, clock: &Clock) -> Arc<Site> {
    let (origin, _) = Origin::start(config).await.expect("nothing is started");
    Site::new(
        config.clone(),
        clock.clone(),
        origin,
        SiteTable::default(),
        PerAddress::default(),
        true,
    )
}

fn put(site: &Site, clock: &Clock, n: u64) {
    let path = format!("/articles/2026/{n}");
    let stored = stored(clock.now(), n);
    let made_from = dependencies(&stored, &site.store, site.name, &path);
    let page = NewPage::new(stored, Bytes::from(vec![b'x'; 500]));
    let key = format!("http://site.example{path}");
    let key = site.store.key(key.as_bytes());
    let lease = site.store.lease();
    assert!(page.put(|new| site.store.insert(key, 0, &made_from, &lease, new)).is_ok());
}

fn stored(now: Timestamp, n: u64) -> StoredResponse {
    let mut headers = http::HeaderMap::new();
    let tags = format!("\"article:{n}\", \"author:{}\", \"articles\"", n % 1000);
    for (name, value) in [
        ("content-type", "text/html; charset=utf-8"),
        ("cache-control", "max-age=3600"),
        ("cache-groups", &tags),
        ("last-modified", "Sat, 08 Sep 2001 01:46:40 GMT"),
        ("x-powered-by", "PHP/8.2"),
    ] {
        headers.insert(name, value.parse().expect("a value"));
    }
    let facts = RequestFacts::read(&http::Method::GET, std::iter::empty::<(&[u8], &[u8])>());
    let (request, policy) = (http::HeaderMap::new(), Policy::default());
    let status = http::StatusCode::OK;
    storable(&facts, &request, status, &headers, now, now, &policy).expect("it may be stored")
}

/// How long the index is locked at a time.
fn holds(site: &Site, clock: &Clock) {
    let (mut walk, mut all) = (Walk::default(), Vec::new());
    while !walk.is_over() {
        let at = clock.instant();
        let found = site.store.walk(&mut walk, 256);
        all.push(at.elapsed());
        drop(found);
    }
    all.sort_unstable();
    let at = |part: f64| all[((all.len() - 1) as f64 * part) as usize];
    let [median, most, longest] = [0.5, 0.999, 1.0].map(at);
    println!("256 places: median {median:?}, 99.9 % {most:?}, longest {longest:?}");
}
