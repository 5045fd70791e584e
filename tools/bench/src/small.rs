//! A machine of 256 MB: Pagewell, its php-fpm and a MariaDB with the news site, under load.
//!
//! The memory of each of the three is read from the kernel several times a second while clients request
//! articles (few of them much, most seldom), and everything about the news is invalidated every other second,
//! so that PHP and the database have work all the time. A page of memory that several processes share counts
//! once, in equal parts (Pss). The bound is on the sum, and more than that is an error, like a failed request;
//! the kernel does not enforce it here ([0042](../../../docs/decisions/measuring.md)).

use super::figures::{shown_bytes, shown_time};
use super::{Amount, CaseResult, error_text};
use harness::Chance;
use harness::root;
use harness::{
    Address, Load, LoadEnd, LoadReport, MariaDbOptions, NewsSite, Pagewell, PrivateDir, cpu,
};
use serde_json::json;
use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// The memory of the whole machine.
const MACHINE_BYTES: u64 = 256 << 20;
/// The settings of Pagewell; everything else is the default.
const CONFIG: &str = "memory = \"32M\"\n[php]\nchildren = 4\n";
/// A MariaDB for a small machine, as its manual has it.
const DATABASE: [&str; 7] = [
    "--innodb-buffer-pool-size=16M",
    "--innodb-log-buffer-size=2M",
    "--key-buffer-size=1M",
    "--aria-pagecache-buffer-size=1M",
    "--performance-schema=OFF",
    "--max-connections=20",
    "--table-open-cache=64",
];
const CONNECTIONS: usize = 50;
const LOOK_EVERY: Duration = Duration::from_millis(200);
const DRAWS: usize = 20_000;

/// The most memory that was taken: by Pagewell, PHP, MariaDB, and by all at one moment.
#[derive(Debug, Default)]
struct Peaks {
    pagewell: u64,
    php: u64,
    database: u64,
    together: u64,
}

/// Measures.
///
/// # Errors
/// A server that did not start; a request that failed; more memory than there is.
pub fn small(amount: &Amount, binary: &Path) -> Result<CaseResult, String> {
    let (articles, seconds) = if amount.short { (50, 3) } else { (2000, 60) };
    let site = NewsSite::start_with(
        &root::repository(),
        PrivateDir::temporary("news").map_err(error_text)?,
        articles,
        MariaDbOptions { port: None, options: DATABASE.map(str::to_owned).to_vec() },
    )
    .map_err(error_text)?;
    let dir = PrivateDir::temporary("small").map_err(error_text)?;
    let file = configure(&dir).map_err(|error| format!("bench: {error}"))?;
    let arguments = [site.serve_args(), vec!["--config".into(), file]].concat();
    let pagewell = Pagewell::start(binary, &arguments).map_err(error_text)?;
    let Address::Tcp(address) = *pagewell.address() else {
        return Err("bench: pagewell does not listen on TCP".into());
    };
    let database = site.database().pid().ok_or("bench: the database has ended")?;
    let (report, peaks) =
        visit(address, &pagewell, database, articles, Duration::from_secs(seconds))?;
    let renders = pagewell.stats().map_err(|error| format!("bench: {error}"))?;
    let renders = renders.get("renders").copied().unwrap_or_default();
    let found = found(articles, &report, &peaks, renders);
    let failed = report.failures + report.unexpected;
    match (failed, peaks.together <= MACHINE_BYTES) {
        (0, true) => Ok(found),
        (0, false) => Err(format!("bench: it takes more than 256 MB\n{}", found.text)),
        (failed, _) => Err(format!("bench: {failed} requests failed\n{}", found.text)),
    }
}

/// A configuration whose sessions are in a directory of their own.
fn configure(dir: &PrivateDir) -> std::io::Result<String> {
    let sessions = dir.path().join("sessions");
    fs::create_dir(&sessions)?;
    fs::set_permissions(&sessions, fs::Permissions::from_mode(0o1777))?;
    let file = dir.path().join("pagewell.toml");
    let ini = format!("[php.ini]\n\"session.save_path\" = \"{}\"\n", sessions.display());
    fs::write(&file, format!("{CONFIG}{ini}"))?;
    Ok(file.display().to_string())
}

fn visit(
    address: SocketAddr,
    pagewell: &Pagewell,
    database: u32,
    articles: u32,
    long: Duration,
) -> Result<(LoadReport, Peaks), String> {
    let mut load = Load::new(address, "/", CONNECTIONS, LoadEnd::Elapsed(long));
    load.targets = drawn(articles);
    let over = AtomicBool::new(false);
    let (report, peaks) = thread::scope(|scope| {
        let watching = scope.spawn(|| watch(pagewell, database, &over));
        let report = load.run();
        over.store(true, Relaxed);
        (report, watching.join())
    });
    let report = report.map_err(|error| format!("bench: {error}"))?;
    Ok((report, peaks.map_err(|_| "bench: panicked")??))
}

/// Looks at the memory several times a second, and changes all news every other second.
fn watch(pagewell: &Pagewell, database: u32, over: &AtomicBool) -> Result<Peaks, String> {
    let mut peaks = Peaks::default();
    let mut looks = 0;
    while !over.load(Relaxed) {
        let own = cpu::pss_bytes_alone(pagewell.pid());
        let php = cpu::pss_bytes(pagewell.pid()).saturating_sub(own);
        let database = cpu::pss_bytes(database);
        peaks.pagewell = peaks.pagewell.max(own);
        peaks.php = peaks.php.max(php);
        peaks.database = peaks.database.max(database);
        peaks.together = peaks.together.max(own + php + database);
        looks += 1;
        if looks % 10 == 0 {
            let answer = pagewell.invalidate("{\"tags\":[\"news\"]}");
            let answer = answer.map_err(|error| format!("bench: {error}"))?;
            if answer.status != 200 {
                return Err(format!("bench: {}: {}", answer.status, answer.text()));
            }
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(peaks)
}

/// Articles drawn by Zipf's law, and the home page once in ten.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers of pages"
)]
fn drawn(articles: u32) -> Vec<String> {
    let mut chance = Chance::new(1, u64::from(articles));
    let most = f64::from(articles + 1).ln();
    let draw = |_| {
        if chance.one_in(10) {
            return "/".to_owned();
        }
        let share = chance.below(1 << 40) as f64 / (1_u64 << 40) as f64;
        format!("/news/{}/", ((share * most).exp() as u32).clamp(1, articles))
    };
    (0..DRAWS).map(draw).collect()
}

fn found(articles: u32, report: &LoadReport, peaks: &Peaks, renders: u64) -> CaseResult {
    let title = "A machine of 256 MB: Pagewell, php-fpm, MariaDB and the news site under load";
    let mut text = format!("### {title}\n\n| Measurement | Value |\n|---|---|\n");
    let failed = report.failures + report.unexpected;
    for (name, value) in [
        ("articles", articles.to_string()),
        ("requests, over 50 connections", report.requests.to_string()),
        ("failed", failed.to_string()),
        ("rendered, because all news are invalidated every other second", renders.to_string()),
        ("a second", format!("{:.0}", report.per_second())),
        ("median, 99 %, worst", {
            let times = &report.times;
            let [median, most] = [0.5, 0.99].map(|q| shown_time(times.quantile(q)));
            format!("{median}, {most}, {}", shown_time(times.worst()))
        }),
        ("Pagewell, at most", shown_bytes(peaks.pagewell)),
        ("php-fpm with 4 children, at most", shown_bytes(peaks.php)),
        ("MariaDB, at most", shown_bytes(peaks.database)),
        ("all of them at the same time, at most", shown_bytes(peaks.together)),
    ] {
        let _ = writeln!(text, "| {name} | {value} |");
    }
    let figures = json!({
        "title": title,
        "articles": articles,
        "requests": report.requests,
        "failed": failed,
        "renders": renders,
        "per_second": report.per_second(),
        "worst_micros": report.times.worst() / 1000,
        "pagewell_bytes": peaks.pagewell,
        "php_bytes": peaks.php,
        "database_bytes": peaks.database,
        "together_bytes": peaks.together,
    });
    CaseResult { name: "small".into(), text, figures }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_articles_are_drawn_and_each_may_be() {
        let drawn = drawn(20);
        assert!(drawn.contains(&"/".to_owned()));
        for article in 1..=20 {
            assert!(drawn.contains(&format!("/news/{article}/")), "{article}");
        }
        assert!(!drawn.contains(&"/news/21/".to_owned()));
    }
}
