//! `cargo measure database`: how soon a changed row drops its pages, and how many rows can be
//! followed.
//!
//! First, with many pages in memory, rows are changed at a steady rate on several connections; from the
//! moment when a COMMIT is answered its page is asked for (`only-if-cached`) until it is gone. The time
//! is that of the first answer without it, so it has a request's way in it. Then rows are written that
//! no page depends on, with Pagewell bound to one core: rows by second until all are applied, and by
//! second of Pagewell's CPU, which a busy machine does not change. On a busy machine the times are an
//! upper bound.

use super::{machine, write};
use followed_database::{DependencySource, Kind, Rows, RowsSetup, TENTH_HIT};
use harness::root::{self, Profile};
use harness::{Client, Histogram, Request, Stopwatch, cpu};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

const HOST: &str = "rows.test";
/// How many fill the memory, and how many change rows.
const FILLERS: usize = 8;
const WRITERS: usize = 4;
/// A page that is not gone after so long counts with it.
const GIVE_UP: Duration = Duration::from_secs(5);

/// How much is measured.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Amount {
    /// Which database
    #[arg(long, value_enum, default_value = "mariadb")]
    of: Kind,
    /// How many pages are in memory
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    pages: u32,
    /// Row changes a second
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    per_second: u32,
    /// For how many seconds
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,
    /// How many rows are written that no page depends on
    #[arg(long, default_value_t = 500_000, value_parser = clap::value_parser!(u32).range(1000..=100_000_000))]
    rows: u32,
    /// How many of them a transaction has
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    of_a_transaction: u32,
    /// Measure a Pagewell that is built as the tests do: to try this, not for figures
    #[arg(long)]
    dev: bool,
}

/// Measures, prints the figures, writes `target/bench/database.json`.
///
/// # Errors
/// A server that did not start, or a page that was not dropped.
pub fn run(amount: &Amount) -> Result<(), String> {
    let binary = root::pagewell(if amount.dev { Profile::Dev } else { Profile::Release })?;
    let rows = Rows::start(&RowsSetup {
        dependencies: DependencySource::Tags,
        binary: &binary,
        kind: amount.of,
        items: amount.pages as usize,
        memory: "1G",
        first: TENTH_HIT,
        more: "barrier = \"60s\"",
        last: "",
    })?;
    println!("bench: {} pages are brought into memory …", amount.pages);
    fill(&rows, amount.pages as usize)?;
    let (times, late) = lag(&rows, amount)?;
    let at = |q: f64| times.quantile(q) as f64 / 1e6;
    println!(
        "COMMIT answered → page gone: {} changes at {} a second, {} pages: median {:.3} ms, 99 % {:.3} \
         ms, worst {:.3} ms; {late} not gone after {GIVE_UP:?}",
        times.count(),
        amount.per_second,
        amount.pages,
        at(0.5),
        at(0.99),
        at(1.0),
    );
    let followed = throughput(&rows, amount)?;
    println!(
        "rows that no page depends on: {} in transactions of {}: {:.0} a second written and applied, \
         {:.0} a second of Pagewell's CPU",
        amount.rows, amount.of_a_transaction, followed.per_second, followed.per_cpu_second,
    );
    let figures = json!({
        "machine": machine(),
        "database": format!("{:?}", amount.of).to_lowercase(),
        "pages": amount.pages,
        "changes_per_second": amount.per_second,
        "changes": times.count(),
        "gone_median_ms": at(0.5),
        "gone_p99_ms": at(0.99),
        "gone_worst_ms": at(1.0),
        "not_gone": late,
        "rows": amount.rows,
        "rows_of_a_transaction": amount.of_a_transaction,
        "rows_per_second": followed.per_second,
        "rows_per_cpu_second": followed.per_cpu_second,
    });
    println!("{}", write("database", &figures)?.display());
    if late > 0 { Err("bench: pages were not dropped".into()) } else { Ok(()) }
}

fn client(rows: &Rows) -> Client {
    Client::new(rows.address().clone()).host(HOST)
}

/// Asks for all pages until they are there.
fn fill(rows: &Rows, pages: usize) -> Result<(), String> {
    // Until the first position is known to be visible nothing is stored.
    let stored = |client: &mut Client, page| {
        let response = client.get(&format!("/k/{page}")).map_err(|error| error.to_string())?;
        let status = response.header("cache-status").unwrap_or_default();
        Ok::<_, String>(status.contains("stored") || status.contains("hit"))
    };
    let mut first = client(rows);
    while !stored(&mut first, 0)? {}
    let next = AtomicUsize::new(1);
    each(FILLERS, |_| {
        let mut client = client(rows);
        loop {
            let page = next.fetch_add(1, Ordering::Relaxed);
            if page >= pages {
                return Ok(());
            }
            if !stored(&mut client, page)? {
                return Err(format!("bench: page {page} is not stored"));
            }
        }
    })
    .map(|_: Vec<()>| ())
}

/// How long pages live after their rows were changed, and how many did for too long.
fn lag(rows: &Rows, amount: &Amount) -> Result<(Histogram, u64), String> {
    let changes = (amount.per_second as usize * amount.seconds as usize).min(amount.pages as usize);
    let next = AtomicUsize::new(0);
    let pace = Duration::from_secs(1) / amount.per_second;
    let clock = Stopwatch::start();
    let found = each(WRITERS, |_| {
        let (mut sql, mut client) = (rows.sql()?, client(rows));
        let (mut times, mut late) = (Histogram::default(), 0);
        loop {
            let page = next.fetch_add(1, Ordering::Relaxed);
            if page >= changes {
                return Ok((times, late));
            }
            let due = pace.saturating_mul(u32::try_from(page).unwrap_or(u32::MAX));
            sleep(due.saturating_sub(clock.elapsed()));
            let asked =
                Request::get(&format!("/k/{page}")).header("Cache-Control", "only-if-cached");
            if client.send(&asked).map_err(|error| error.to_string())?.status != 200 {
                return Err(format!("bench: page {page} is not in memory"));
            }
            sql.run(&format!("UPDATE item SET n = n + 1 WHERE id = {page}"))?;
            let committed = Stopwatch::start();
            loop {
                let response = client.send(&asked).map_err(|error| error.to_string())?;
                let elapsed = committed.elapsed();
                if response.status == 504 || elapsed > GIVE_UP {
                    late += u64::from(response.status != 504);
                    times.record(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX));
                    break;
                }
            }
        }
    })?;
    let mut all = (Histogram::default(), 0);
    for (times, late) in found {
        all.0.merge(&times);
        all.1 += late;
    }
    Ok(all)
}

/// How many rows can be followed.
struct FollowRate {
    per_second: f64,
    per_cpu_second: f64,
}

fn throughput(rows: &Rows, amount: &Amount) -> Result<FollowRate, String> {
    let (pid, core) = (rows.pid(), cpu::cores().first().copied().unwrap_or_default());
    cpu::bind(pid, core).map_err(|error| format!("bench: core {core}: {error}"))?;
    let transactions = amount.rows.div_ceil(amount.of_a_transaction);
    let next = AtomicUsize::new(0);
    let (clock, cpu_before) = (Stopwatch::start(), cpu::seconds(pid));
    // Every database understands this.
    let values: Vec<String> = (1..=amount.of_a_transaction)
        .map(|item| format!("({item}, 'a comment of some words')"))
        .collect();
    let statement = format!("INSERT INTO other (item, body) VALUES {}", values.join(", "));
    each(WRITERS, |_| {
        let mut sql = rows.sql()?;
        while next.fetch_add(1, Ordering::Relaxed) < transactions as usize {
            sql.run(&statement)?;
        }
        Ok(())
    })?;
    let synced = client(rows).send(&Request::form("/sync", ""));
    let synced = synced.map_err(|error| error.to_string())?;
    if synced.header("cache-status").is_some_and(|status| status.contains("changes-late")) {
        return Err("bench: it has fallen behind by more than a minute".into());
    }
    let written = f64::from(transactions) * f64::from(amount.of_a_transaction);
    Ok(FollowRate {
        per_second: written / clock.elapsed().as_secs_f64(),
        per_cpu_second: written / (cpu::seconds(pid) - cpu_before),
    })
}

/// So many at once; what each has found.
fn each<T: Send>(
    count: usize,
    task: impl Fn(usize) -> Result<T, String> + Sync,
) -> Result<Vec<T>, String> {
    thread::scope(|scope| {
        let task = &task;
        let all: Vec<_> = (0..count).map(|at| scope.spawn(move || task(at))).collect();
        let join = |one: thread::ScopedJoinHandle<'_, Result<T, String>>| {
            one.join().map_err(|_| "bench: a thread panicked".to_owned())?
        };
        all.into_iter().map(join).collect()
    })
}
