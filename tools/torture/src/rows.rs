//! The torture of database-driven invalidation (`--database`).
//!
//! Writers change rows directly in MariaDB or PostgreSQL, in transactions of one to three rows,
//! some of them rolled back. They publish nothing to Pagewell. Another thread queries the committed
//! data, then sends a request through Pagewell that writes nothing. Once that is answered,
//! everything committed before is applied, and no page may show less. Other writers write through
//! Pagewell, and the next page must show at least the value of their response. Readers compare each
//! page with the values applied when they sent the request. With faults, the stream is interrupted
//! repeatedly, and Pagewell is killed and restarted with its last snapshot, while the writers
//! continue. A run whose every hit is audited ([`audit`]) has pauses, and ends with enough comparisons.

use super::audited::{AuditedRun, EVERY_HIT, PAUSE, VerdictCounts, watched};
use super::hit_times::HitTimes;
use super::writer::Rate;
use super::{Amount, LeaseCheck, WRONG_MAX, binary};
use followed_database::{DependencySource, Kind, Rows, RowsSetup, TENTH_HIT, items_of};
use harness::stand::{Players, share};
use harness::{Chance, Stopwatch};
use harness::{Client, Deadline, Request, Response};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, sleep};
use std::time::Duration;

/// How many write through Pagewell.
const THROUGH: usize = 2;
/// The searches and the notes of the visitor who attacks, and the pause between two notes.
const SEARCHES: usize = 100;
const NOTES: usize = 40;
const NOTE_EVERY: Duration = Duration::from_millis(100);
/// How often the stream is cut, with faults; and after how many cuts Pagewell is killed.
const CUT_EVERY: Duration = Duration::from_millis(400);
const CUTS_A_LIFE: u64 = 7;
/// A run on a busy machine goes on for so many times as long, until it has met something of each kind.
const LONGER: u32 = 10;
/// A run of so many seconds has to have seen pages of an earlier life, and comparisons of the audit with a verdict, if
/// there are no more transactions than so many a second: of more every page has changed since the snapshot, and may
/// change during each comparison.
const WARM_SECONDS: u64 = 10;
const WARM_RATE: u32 = 10;
const SNAPSHOT: &str = "[snapshot]\ndirectory = \"DIRECTORY/snapshots\"\nevery = \"1s\"";
const HOST: &str = "torture.test";

/// A run under way: the truth, and what was seen.
struct Run<'a> {
    rows: &'a Rows,
    amount: &'a Amount,
    until: Deadline,
    /// How long it goes on if it has met too little by then.
    longest: Deadline,
    /// Up to how many wrong answers it goes on.
    enough: u64,
    /// Whether every hit is audited: readers pause, writers of both kinds keep the rate together, and nobody attacks.
    is_audited: bool,
    /// Whether it has shown before its time what it is to show.
    has_shown: AtomicBool,
    /// The value of each item that is applied at least.
    applied: Vec<AtomicU64>,
    answers: AtomicU64,
    hits: AtomicU64,
    outdated: AtomicU64,
    own_outdated: AtomicU64,
    own: AtomicU64,
    /// The notes of the visitor who attacks.
    notes: AtomicU64,
    hit_times: HitTimes,
    /// The time at which the attack ends: half of the run is without.
    attacked_until: Deadline,
    commits: AtomicU64,
    synced: AtomicU64,
    late: AtomicU64,
    cuts: AtomicU64,
    /// Held while Pagewell is killed and started again; and how often that was.
    dying: Mutex<()>,
    deaths: AtomicU64,
    /// Of all lives together.
    gaps: AtomicU64,
    restored: AtomicU64,
    refused: AtomicU64,
    /// Comparisons of the audit with a verdict, and without.
    compared: AtomicU64,
    unjudged: AtomicU64,
}

/// A client of Pagewell, and the life of Pagewell in which it began.
struct Visitor {
    client: Client,
    born: u64,
}

/// Tortures; returns a line that says what was found.
///
/// # Errors
/// Outdated answers; or none, without the lease check; or what kept it from showing anything.
pub fn torture(
    amount: &Amount,
    kind: Kind,
    lease_check: LeaseCheck,
    enough: u64,
) -> Result<String, String> {
    let rows = start(amount, kind, lease_check, TENTH_HIT)?;
    let run = Run::new(&rows, amount, enough);
    run.play(|| Ok(()))?;
    run.verdict(lease_check)
}

/// One run whose every hit is audited, until there is enough. Prints what the readers and writers found.
///
/// # Errors
/// Outdated answers, or wrong pages; or what kept it from showing anything.
pub fn audit(
    amount: &Amount,
    kind: Kind,
    is_enough: impl Fn(&VerdictCounts) -> bool,
) -> Result<AuditedRun, String> {
    let rows = start(amount, kind, LeaseCheck::Kept, EVERY_HIT)?;
    let run = Run { is_audited: true, ..Run::new(&rows, amount, WRONG_MAX) };
    let count = |name: &str| rows.counter(name);
    let clock = Stopwatch::start();
    run.play(|| watched(|| run.is_over(), count, is_enough).map(drop))?;
    let seconds = clock.elapsed().as_secs_f64();
    println!("{}", run.verdict(LeaseCheck::Kept)?);
    let changes = run.commits.load(SeqCst) + run.own.load(SeqCst);
    Ok(AuditedRun { counts: VerdictCounts::read(count)?, changes, seconds, log: rows.log() })
}

/// Starts all servers; `first` are the first lines of Pagewell's configuration.
fn start(
    amount: &Amount,
    kind: Kind,
    lease_check: LeaseCheck,
    first: &str,
) -> Result<Rows, String> {
    Rows::start(&RowsSetup {
        binary: &binary(lease_check)?,
        kind,
        items: amount.items,
        memory: "64M",
        dependencies: dependencies(amount),
        first,
        more: "barrier = \"20s\"",
        last: if amount.faults { SNAPSHOT } else { "" },
    })
}

/// The dependencies of the pages: tags, or the statements that they were made from.
fn dependencies(amount: &Amount) -> DependencySource {
    if amount.footprints { DependencySource::Statements } else { DependencySource::Tags }
}

impl<'a> Run<'a> {
    fn new(rows: &'a Rows, amount: &'a Amount, enough: u64) -> Run<'a> {
        let (zero, time) = (|| AtomicU64::new(0), Duration::from_secs(amount.seconds));
        Run {
            rows,
            amount,
            until: Deadline::after(time),
            longest: Deadline::after(time * LONGER),
            enough,
            is_audited: false,
            has_shown: AtomicBool::new(false),
            applied: (0..amount.items).map(|_| zero()).collect(),
            answers: zero(),
            hits: zero(),
            outdated: zero(),
            own_outdated: zero(),
            own: zero(),
            notes: zero(),
            hit_times: HitTimes::default(),
            attacked_until: Deadline::after(time / 2),
            commits: zero(),
            synced: zero(),
            late: zero(),
            cuts: zero(),
            dying: Mutex::new(()),
            deaths: zero(),
            gaps: zero(),
            restored: zero(),
            refused: zero(),
            compared: zero(),
            unjudged: zero(),
        }
    }

    /// Plays all roles until the run is over. An audited run ends with `meanwhile`.
    fn play(&self, meanwhile: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
        thread::scope(|scope| {
            let (run, mut all) = (self, Players::new(scope));
            all.add_all("a reader", run.amount.readers, |number| run.read(number));
            all.add_all("a writer", run.amount.writers, |number| run.write(number));
            all.add_all("a writer through Pagewell", THROUGH, |number| run.write_through(number));
            all.add("the comparison with the database", || run.sync());
            let is_attacked = run.amount.footprints && !run.is_audited;
            if is_attacked && run.rows.database.kind() == Kind::Mariadb {
                all.add("the attack", || run.attack());
            }
            if run.amount.faults {
                all.add("the faults", || run.disturb());
            }
            let outcome = meanwhile();
            run.has_shown.store(run.is_audited, SeqCst);
            let ended = all.join().map_err(|error| format!("torture: {error}"))?;
            ended.into_iter().collect::<Result<(), String>>()?;
            outcome
        })
    }

    fn is_over(&self) -> bool {
        let end = if self.has_met() { &self.until } else { &self.longest };
        end.passed() || self.has_shown.load(SeqCst) || self.wrong() >= self.enough
    }

    /// Makes a pause in an audited run: after a request, so that comparisons get time.
    fn rest(&self) {
        if self.is_audited {
            sleep(PAUSE);
        }
    }

    /// The writers that keep the rate together.
    fn paced_writers(&self) -> usize {
        self.amount.writers + if self.is_audited { THROUGH } else { 0 }
    }

    /// The pause of such a writer after a write.
    fn write_pause(&self) -> Duration {
        match self.amount.writes_per_second {
            Rate::Max => Duration::ZERO,
            Rate::PerSecond(all) => Duration::from_secs(self.paced_writers() as u64) / all,
        }
    }

    /// In an audited run the writers begin one after the other.
    fn wait_for_turn(&self, number: usize) {
        if self.is_audited {
            let part = share(number as u64, self.paced_writers() as u64);
            sleep(self.write_pause().mul_f64(part));
        }
    }

    /// Whether there was something of each kind that a run has to meet.
    fn has_met(&self) -> bool {
        let met = [&self.answers, &self.hits, &self.commits, &self.synced, &self.own];
        met.iter().all(|count| count.load(SeqCst) > 0)
    }

    fn wrong(&self) -> u64 {
        self.outdated.load(SeqCst) + self.own_outdated.load(SeqCst)
    }

    fn visitor(&self) -> Visitor {
        let born = self.deaths.load(SeqCst);
        Visitor { client: Client::new(self.rows.address().clone()).host(HOST), born }
    }

    /// The answer to a request; none where Pagewell died meanwhile, or was dead.
    fn ask(&self, visitor: &mut Visitor, request: &Request) -> Result<Option<Response>, String> {
        self.until_it_lives();
        let deaths = self.deaths.load(SeqCst);
        if visitor.born != deaths {
            *visitor = self.visitor();
        }
        let error = match visitor.client.send(request) {
            Ok(response) => return Ok(Some(response)),
            Err(error) => error,
        };
        self.until_it_lives();
        if self.deaths.load(SeqCst) == deaths { Err(format!("torture: {error}")) } else { Ok(None) }
    }

    fn until_it_lives(&self) {
        drop(self.dying.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Asks for pages, and holds each against what was applied before.
    fn read(&self, number: usize) -> Result<(), String> {
        let mut chance = Chance::new(self.amount.seed, 1000 + number as u64);
        let mut visitor = self.visitor();
        while !self.is_over() {
            let page = chance.below(self.amount.pages);
            let items = items_of(page, self.amount.items);
            let known = items.map(|item| (item, self.applied[item].load(SeqCst)));
            if self.is_less(&mut visitor, page, &known)? {
                self.outdated.fetch_add(1, SeqCst);
            }
            self.rest();
        }
        Ok(())
    }

    /// Whether a page shows less than what is known of some of its items.
    fn is_less(
        &self,
        visitor: &mut Visitor,
        page: usize,
        known: &[(usize, u64)],
    ) -> Result<bool, String> {
        let target = format!("/p/{page}");
        let asked = Stopwatch::start();
        let Some(response) = self.ask(visitor, &Request::get(&target))? else { return Ok(false) };
        let took = asked.elapsed();
        let text = response.text();
        if response.status != 200 {
            return Err(format!("torture: {target}: {} {text}", response.status));
        }
        self.answers.fetch_add(1, SeqCst);
        if response.header("cache-status").is_some_and(|status| status.contains("; hit")) {
            self.hits.fetch_add(1, SeqCst);
            self.hit_times.note(took);
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
        let pause = self.write_pause();
        self.wait_for_turn(number);
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
        let mut visitor = self.visitor();
        let pause = if self.is_audited { self.write_pause() } else { Duration::ZERO };
        self.wait_for_turn(self.amount.writers + number);
        while !self.is_over() {
            sleep(pause);
            let page = chance.below(self.amount.pages);
            let item = items_of(page, self.amount.items)[0];
            let request = Request::form(&format!("/w/{item}"), "");
            let Some(response) = self.ask(&mut visitor, &request)? else { continue };
            if self.is_late(&response) {
                continue;
            }
            let now = response.text().parse().map_err(|_| format!("/w/: {}", response.text()))?;
            self.own.fetch_add(1, SeqCst);
            if self.is_less(&mut visitor, page, &[(item, now)])? {
                self.own_outdated.fetch_add(1, SeqCst);
            }
        }
        Ok(())
    }

    /// Sends searches and notes that are slow to compare. After each note, the search that finds it must.
    fn attack(&self) -> Result<(), String> {
        self.hit_times.attack(true);
        let outcome = self.send_notes();
        self.hit_times.attack(false);
        outcome
    }

    fn send_notes(&self) -> Result<(), String> {
        let mut visitor = self.visitor();
        for note in 0..NOTES {
            for search in 1..=SEARCHES {
                if self.is_over() || self.attacked_until.passed() {
                    return Ok(());
                }
                self.ask(&mut visitor, &Request::get(&format!("/s/{search}")))?;
            }
            let found = self.ask(&mut visitor, &Request::get("/s/0"))?;
            let Some(response) = self.ask(&mut visitor, &Request::form("/c/", ""))? else {
                continue;
            };
            if found.is_none() || self.is_late(&response) {
                continue;
            }
            let now: u64 = response.text().parse().map_err(|_| format!("/c/: note {note}"))?;
            let Some(found) = self.ask(&mut visitor, &Request::get("/s/0"))? else { continue };
            if found.text().parse::<u64>().is_ok_and(|found| found < now) {
                self.own_outdated.fetch_add(1, SeqCst);
            }
            self.notes.fetch_add(1, SeqCst);
            sleep(NOTE_EVERY);
        }
        Ok(())
    }

    fn is_late(&self, response: &Response) -> bool {
        let status = response.header("cache-status").unwrap_or_default();
        let is_late = response.status != 200 || status.contains("changes-late");
        if is_late {
            self.late.fetch_add(1, SeqCst);
        }
        is_late
    }

    /// Takes the truth from the database, and says so once Pagewell has applied it.
    fn sync(&self) -> Result<(), String> {
        let (mut sql, mut visitor) = (self.rows.sql()?, self.visitor());
        while !self.is_over() {
            let committed = sql.numbers("SELECT id, n FROM item")?;
            let response = self.ask(&mut visitor, &Request::form("/sync", ""))?;
            if response.is_none_or(|response| self.is_late(&response)) {
                continue;
            }
            for (item, n) in committed {
                if let Some(applied) = self.applied.get(item) {
                    applied.fetch_max(n, SeqCst);
                }
            }
            self.synced.fetch_add(1, SeqCst);
            self.rest();
        }
        Ok(())
    }

    /// Cuts the stream, and now and then kills Pagewell.
    fn disturb(&self) -> Result<(), String> {
        for round in 1.. {
            sleep(CUT_EVERY);
            if self.is_over() {
                break;
            }
            if round % CUTS_A_LIFE == 0 {
                self.kill()?;
            } else {
                self.cuts.fetch_add(self.rows.database.cut()?, SeqCst);
            }
        }
        Ok(())
    }

    fn kill(&self) -> Result<(), String> {
        self.take_counters()?;
        let _dying = self.dying.lock().unwrap_or_else(PoisonError::into_inner);
        self.deaths.fetch_add(1, SeqCst);
        self.rows.kill()
    }

    /// Adds what this life has counted.
    fn take_counters(&self) -> Result<(), String> {
        for (name, all) in [
            ("database_gaps", &self.gaps),
            ("snapshot_pages", &self.restored),
            ("store_refused", &self.refused),
            ("audit_compared", &self.compared),
            ("audit_unjudged", &self.unjudged),
        ] {
            all.fetch_add(self.rows.counter(name)?, SeqCst);
        }
        Ok(())
    }

    fn verdict(&self, lease_check: LeaseCheck) -> Result<String, String> {
        let get = |count: &AtomicU64| count.load(SeqCst);
        self.take_counters()?;
        let (compared, unjudged) = (get(&self.compared), get(&self.unjudged));
        let audited = VerdictCounts { compared, unjudged, ..VerdictCounts::default() };
        let line = format!(
            "torture by the database {:>7} answers, {} from memory; {} transactions, {} times known \
             to be applied, {} writes through Pagewell; {} renders, {} not stored; {} cuts, {} late; \
             {} times killed, {} pages taken up; {} slow notes, {}; {} comparisons with a verdict, {} \
             without; {} outdated, {} outdated for their writer; leases {}",
            get(&self.answers),
            get(&self.hits),
            get(&self.commits),
            get(&self.synced),
            get(&self.own),
            self.rows.origin.renders(),
            get(&self.refused),
            get(&self.cuts),
            get(&self.late),
            get(&self.deaths),
            get(&self.restored),
            get(&self.notes),
            self.hit_times,
            audited.compared,
            audited.without_verdict(),
            get(&self.outdated),
            get(&self.own_outdated),
            lease_check.as_str(),
        );
        let compared = match lease_check {
            LeaseCheck::Kept => {
                self.rows.check_audit().map_err(|error| format!("{line}: {error}"))?
            }
            LeaseCheck::LeftOut => 0,
        };
        let gaps = get(&self.gaps);
        let is_slow = matches!(self.amount.writes_per_second, Rate::PerSecond(0..=WARM_RATE));
        let is_long = is_slow && self.amount.seconds >= WARM_SECONDS;
        if lease_check == LeaseCheck::Kept && is_long && compared == 0 {
            return Err(format!("{line}: the audit has compared nothing"));
        }
        let is_warm = !(self.amount.faults && is_long) || get(&self.restored) > 0;
        let has_met = is_warm && self.has_met();
        match (lease_check, self.wrong()) {
            (LeaseCheck::Kept, 0) if has_met && gaps == 0 => Ok(line),
            (LeaseCheck::Kept, 0) => Err(format!("{line}: it met nothing, or {gaps} gaps")),
            (LeaseCheck::Kept, _) => Err(format!("{line}: outdated answers")),
            (LeaseCheck::LeftOut, 0) => Err(format!("{line}: it should have found some")),
            (LeaseCheck::LeftOut, _) => Ok(line),
        }
    }
}
