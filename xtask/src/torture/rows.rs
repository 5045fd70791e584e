//! The torture of changes that are read from a database (`--database`).
//!
//! Writers change rows straight in MariaDB, by transactions of one to three rows, some rolled back; none
//! of them tells Pagewell. Another asks the database what is committed, sends a request that writes
//! nothing through Pagewell, and when that is answered, everything he had seen is applied: from then on
//! no page may show less. Others write through Pagewell, and must find at least what they were answered
//! on the very next page. Readers hold each page against what was applied when they asked. With faults
//! the stream is cut again and again.

use super::chance::Chance;
use super::writer::Rate;
use super::{Amount, LeaseCheck, binary};
use crate::rows::{Rows, items_of};
use harness::{Address, Client, Deadline, Request};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread::{self, sleep};
use std::time::Duration;

/// How many write through Pagewell.
const THROUGH: usize = 2;
/// How often the stream is cut, with faults.
const CUT_EVERY: Duration = Duration::from_millis(400);
const HOST: &str = "torture.test";

/// A run under way: the truth, and what was seen.
struct Run<'a> {
    rows: &'a Rows,
    amount: &'a Amount,
    until: Deadline,
    /// Up to how many wrong answers it goes on.
    enough: u64,
    /// What of each item is applied at least.
    applied: Vec<AtomicU64>,
    answers: AtomicU64,
    hits: AtomicU64,
    outdated: AtomicU64,
    own_outdated: AtomicU64,
    own: AtomicU64,
    commits: AtomicU64,
    synced: AtomicU64,
    late: AtomicU64,
    cuts: AtomicU64,
}

/// Tortures; returns a line that says what was found.
///
/// # Errors
/// Outdated answers; or none, without the lease check; or what kept it from showing anything.
pub fn torture(amount: &Amount, lease_check: LeaseCheck, enough: u64) -> Result<String, String> {
    let rows = Rows::start(&binary(lease_check)?, amount.items, "64M", "barrier = \"20s\"")?;
    let zero = || AtomicU64::new(0);
    let run = Run {
        rows: &rows,
        amount,
        until: Deadline::after(Duration::from_secs(amount.seconds)),
        enough,
        applied: (0..amount.items).map(|_| zero()).collect(),
        answers: zero(),
        hits: zero(),
        outdated: zero(),
        own_outdated: zero(),
        own: zero(),
        commits: zero(),
        synced: zero(),
        late: zero(),
        cuts: zero(),
    };
    thread::scope(|scope| {
        let mut all = Vec::new();
        for number in 0..amount.readers {
            let run = &run;
            all.push(scope.spawn(move || run.read(number)));
        }
        for number in 0..amount.writers {
            let run = &run;
            all.push(scope.spawn(move || run.write(number)));
        }
        for number in 0..THROUGH {
            let run = &run;
            all.push(scope.spawn(move || run.write_through(number)));
        }
        all.push(scope.spawn(|| run.sync()));
        if amount.faults {
            all.push(scope.spawn(|| run.cut()));
        }
        for one in all {
            one.join().map_err(|_| "torture: somebody panicked".to_owned())??;
        }
        Ok::<_, String>(())
    })?;
    run.verdict(lease_check)
}

impl Run<'_> {
    fn is_over(&self) -> bool {
        self.until.passed() || self.wrong() >= self.enough
    }

    fn wrong(&self) -> u64 {
        self.outdated.load(SeqCst) + self.own_outdated.load(SeqCst)
    }

    fn client(&self) -> Client {
        let address: Address = self.rows.pagewell.address().clone();
        Client::new(address).host(HOST)
    }

    /// Asks for pages, and holds each against what was applied before.
    fn read(&self, number: usize) -> Result<(), String> {
        let mut chance = Chance::new(self.amount.seed, 1000 + number as u64);
        let mut client = self.client();
        while !self.is_over() {
            let page = chance.below(self.amount.pages);
            let items = items_of(page, self.amount.items);
            let known = items.map(|item| (item, self.applied[item].load(SeqCst)));
            if self.is_less(&mut client, page, &known)? {
                self.outdated.fetch_add(1, SeqCst);
            }
        }
        Ok(())
    }

    /// Whether a page shows less than what is known of some of its items.
    fn is_less(
        &self,
        client: &mut Client,
        page: usize,
        known: &[(usize, u64)],
    ) -> Result<bool, String> {
        let target = format!("/p/{page}");
        let response = client.get(&target).map_err(|error| format!("torture: {error}"))?;
        let text = response.text();
        if response.status != 200 {
            return Err(format!("torture: {target}: {} {text}", response.status));
        }
        self.answers.fetch_add(1, SeqCst);
        if response.header("cache-status").is_some_and(|status| status.contains("; hit")) {
            self.hits.fetch_add(1, SeqCst);
        }
        let shown = |item: usize| {
            let pairs = text.split(';').filter_map(|pair| pair.split_once('='));
            let mut own = pairs.filter(|(id, _)| id.parse() == Ok(item));
            own.next().and_then(|(_, n)| n.parse::<u64>().ok()).unwrap_or_default()
        };
        Ok(known.iter().any(|(item, n)| shown(*item) < *n))
    }

    /// Changes rows in the database.
    fn write(&self, number: usize) -> Result<(), String> {
        let mut chance = Chance::new(self.amount.seed, number as u64);
        let mut sql = self.rows.sql()?;
        let pause = match self.amount.writes_per_second {
            Rate::Max => Duration::ZERO,
            Rate::PerSecond(all) => Duration::from_secs(self.amount.writers as u64) / all,
        };
        while !self.is_over() {
            // In the order of their numbers: two writers never wait for each other.
            let mut items: Vec<usize> =
                (0..=chance.below(3)).map(|_| chance.below(self.amount.items)).collect();
            items.sort_unstable();
            sql.run("START TRANSACTION")?;
            for item in items {
                sql.run(&format!("UPDATE item SET n = n + 1 WHERE id = {item}"))?;
            }
            sql.run(if chance.one_in(10) { "ROLLBACK" } else { "COMMIT" })?;
            self.commits.fetch_add(1, SeqCst);
            sleep(pause);
        }
        Ok(())
    }

    /// Writes through Pagewell, and looks at the page at once.
    fn write_through(&self, number: usize) -> Result<(), String> {
        let mut chance = Chance::new(self.amount.seed, 2000 + number as u64);
        let mut client = self.client();
        while !self.is_over() {
            let page = chance.below(self.amount.pages);
            let item = items_of(page, self.amount.items)[0];
            let response = client.send(&Request::form(&format!("/w/{item}"), ""));
            let response = response.map_err(|error| format!("torture: {error}"))?;
            if self.is_late(&response) {
                continue;
            }
            let now = response.text().parse().map_err(|_| format!("/w/: {}", response.text()))?;
            self.own.fetch_add(1, SeqCst);
            if self.is_less(&mut client, page, &[(item, now)])? {
                self.own_outdated.fetch_add(1, SeqCst);
            }
        }
        Ok(())
    }

    fn is_late(&self, response: &harness::Response) -> bool {
        let status = response.header("cache-status").unwrap_or_default();
        let is_late = response.status != 200 || status.contains("changes-late");
        if is_late {
            self.late.fetch_add(1, SeqCst);
        }
        is_late
    }

    /// Takes the truth from the database, and says so once Pagewell has applied it.
    fn sync(&self) -> Result<(), String> {
        let (mut sql, mut client) = (self.rows.sql()?, self.client());
        while !self.is_over() {
            let committed = sql.numbers("SELECT id, n FROM item")?;
            let response = client.send(&Request::form("/sync", ""));
            if self.is_late(&response.map_err(|error| format!("torture: {error}"))?) {
                continue;
            }
            for (item, n) in committed {
                if let Some(applied) = self.applied.get(item) {
                    applied.fetch_max(n, SeqCst);
                }
            }
            self.synced.fetch_add(1, SeqCst);
        }
        Ok(())
    }

    /// Cuts the stream.
    fn cut(&self) -> Result<(), String> {
        const STREAMS: &str =
            "SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND = 'Binlog Dump'";
        while !self.is_over() {
            sleep(CUT_EVERY);
            let found = self.rows.database.sql(STREAMS).map_err(|error| error.to_string())?;
            for id in found.split_whitespace() {
                // It may have gone by itself.
                if self.rows.database.sql(&format!("KILL {id}")).is_ok() {
                    self.cuts.fetch_add(1, SeqCst);
                }
            }
        }
        Ok(())
    }

    fn verdict(&self, lease_check: LeaseCheck) -> Result<String, String> {
        let get = |count: &AtomicU64| count.load(SeqCst);
        let unsettled = self.rows.counter("store_refused")?;
        let line = format!(
            "torture by the database {:>7} answers, {} from memory; {} transactions, {} times known \
             to be applied, {} writes through Pagewell; {} renders, {unsettled} not stored; {} cuts, \
             {} late; {} outdated, {} outdated for their writer; leases {}",
            get(&self.answers),
            get(&self.hits),
            get(&self.commits),
            get(&self.synced),
            get(&self.own),
            self.rows.origin.renders(),
            get(&self.cuts),
            get(&self.late),
            get(&self.outdated),
            get(&self.own_outdated),
            lease_check.as_str(),
        );
        let gaps = self.rows.counter("database_gaps")?;
        let met = [&self.answers, &self.hits, &self.commits, &self.synced, &self.own];
        let has_met = met.iter().all(|count| get(count) > 0);
        match (lease_check, self.wrong()) {
            (LeaseCheck::Kept, 0) if has_met && gaps == 0 => Ok(line),
            (LeaseCheck::Kept, 0) => Err(format!("{line}: it met nothing, or {gaps} gaps")),
            (LeaseCheck::Kept, _) => Err(format!("{line}: outdated answers")),
            (LeaseCheck::LeftOut, 0) => Err(format!("{line}: it should have found some")),
            (LeaseCheck::LeftOut, _) => Ok(line),
        }
    }
}
