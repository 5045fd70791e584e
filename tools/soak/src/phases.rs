//! The faults, one after the other. Each begins with a moment in which nothing is wrong yet, and ends when
//! everything is well again: when a page that needs PHP and the database has come three times on end. What is
//! killed, filled or taken here is ours, and known by its process id.

use super::faults::{LoweredLimit, Memory};
use super::site::Site;
use super::stand::{Disk, Stand};
use super::{Run, bad_origin, clients, crawl, error_text, hostile};
use harness::{Client, Deadline, Stopwatch, cpu};
use rustix::process::{Pid, Resource, Signal, kill_process};
use std::fs;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// The pause before a fault, in which earlier requests are answered.
const LULL: Duration = Duration::from_millis(500);
/// Between two blows.
const BETWEEN: Duration = Duration::from_millis(800);
/// How long a database is away.
const AWAY: Duration = Duration::from_millis(700);
/// How long a life of Pagewell is at least: a snapshot is written in it.
const LIFE: Duration = Duration::from_millis(2_500);
/// Everything is well again after so long, or never.
const WELL_WITHIN: Duration = Duration::from_secs(60);
/// How much more memory there is, and how much a script wants.
const MORE_BYTES: u64 = 64 << 20;
const HOG: &str = "/hog.php?mb=400";
/// How many ask a bad origin at a time.
const ASKERS: usize = 8;
/// How many connections want the last descriptors.
const IDLE: usize = 40;

/// A fault that Pagewell has to bear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Fault {
    /// Nothing: what the others are compared with
    Quiet,
    /// An origin that hangs, trickles, lies and sends garbage
    Origin,
    /// Hostile clients
    Hostile,
    /// A crawl, while misses are rationed
    Crawl,
    /// php-fpm and its children killed
    Php,
    /// MariaDB killed
    Database,
    /// A full disk
    Disk,
    /// No descriptors left
    Descriptors,
    /// No memory left
    Memory,
    /// Pagewell itself killed
    Pagewell,
}

impl Fault {
    /// All of them, in their order.
    pub const ALL: [Fault; 10] = [
        Fault::Quiet,
        Fault::Origin,
        Fault::Hostile,
        Fault::Crawl,
        Fault::Php,
        Fault::Database,
        Fault::Disk,
        Fault::Descriptors,
        Fault::Memory,
        Fault::Pagewell,
    ];

    /// As the table has it.
    pub fn title(self) -> &'static str {
        match self {
            Fault::Quiet => "none",
            Fault::Origin => "another site's origin hangs, trickles, lies, sends garbage",
            Fault::Hostile => "hostile clients, all kinds at once",
            Fault::Crawl => "a crawl, each request from another address",
            Fault::Php => "php-fpm or one of its children killed (-9)",
            Fault::Database => "MariaDB killed (-9), away for 0.7 s, restarted",
            Fault::Disk => "the disk of access log and snapshots full",
            Fault::Descriptors => "no descriptors left",
            Fault::Memory => "no memory left: a script takes all of it",
            Fault::Pagewell => "Pagewell killed (-9) and restarted",
        }
    }

    /// Whether honest visitors may notice it: it takes what they need.
    pub fn may_be_noticed(self) -> bool {
        !matches!(self, Fault::Quiet | Fault::Origin | Fault::Hostile | Fault::Disk)
    }

    fn place(self) -> usize {
        Fault::ALL.iter().position(|one| *one == self).unwrap_or(0)
    }
}

/// Puts a fault upon Pagewell for so long, and waits until everything is well again.
///
/// # Errors
/// It never was; or what kept the fault from being put there.
pub fn suffer(
    fault: Fault,
    run: &Run,
    site: &mut Site,
    stand: &mut Stand<'_>,
    long: Duration,
) -> Result<(), String> {
    lull();
    let until = Deadline::after(long);
    match fault {
        Fault::Quiet => {
            thread::sleep(until.remaining());
            Ok(())
        }
        Fault::Origin => bad_origins(run, until),
        Fault::Hostile => hostiles(run, site, until),
        Fault::Crawl => {
            let (crawled, deferred) = crawl::suffer(run, site, stand, until)?;
            let mut tally = run.tally(fault.place());
            tally.did_many("cold URLs", crawled);
            tally.did_many("requests deferred", deferred);
            Ok(())
        }
        Fault::Php => php(run, stand, until),
        Fault::Database => database(run, site, until),
        Fault::Disk => disk(run, stand, until),
        Fault::Descriptors => descriptors(run, site, stand, until),
        Fault::Memory => memory(run, stand, until),
        Fault::Pagewell => pagewell(run, stand, until),
    }?;
    well_again(run, fault)
}

/// Lets those finish who asked before. Threads that end may wake this one, so it looks at the time.
fn lull() {
    let until = Deadline::after(LULL);
    while !until.passed() {
        thread::park_timeout(until.remaining());
    }
}

/// Waits until everything is well, and notes how long that took.
fn well_again(run: &Run, fault: Fault) -> Result<(), String> {
    let (deadline, watch) = (Deadline::after(WELL_WITHIN), Stopwatch::start());
    let mut well = 0;
    while well < 3 {
        well = if clients::is_served(run) { well + 1 } else { 0 };
        if deadline.passed() {
            return Err(format!("not well again within {WELL_WITHIN:?}"));
        }
    }
    let took = u64::try_from(watch.elapsed().as_millis()).unwrap_or(u64::MAX);
    let mut tally = run.tally(fault.place());
    tally.recovered_ms = tally.recovered_ms.max(took);
    Ok(())
}

fn bad_origins(run: &Run, until: Deadline) -> Result<(), String> {
    let place = Fault::Origin.place();
    thread::scope(|scope| {
        for number in 0..ASKERS {
            scope.spawn(move || {
                for turn in (number..).step_by(3) {
                    if until.passed() {
                        return;
                    }
                    match bad_origin::ask(run.address, turn) {
                        Ok(true) => run.tally(place).did("answers of the bad origin"),
                        Ok(false) => run.tally(place).did("of them cut off, or waited for in vain"),
                        Err(wrong) => run.tally(place).wrong(wrong),
                    }
                }
            });
        }
    });
    Ok(())
}

fn hostiles(run: &Run, site: &Site, until: Deadline) -> Result<(), String> {
    let over = AtomicBool::new(false);
    let acted = thread::scope(|scope| {
        let all = scope.spawn(|| hostile::all(&site.ports, run.seed, &over));
        thread::sleep(until.remaining());
        over.store(true, SeqCst);
        all.join().map_err(|_| "a hostile client panicked".to_owned())
    })?;
    let mut tally = run.tally(Fault::Hostile.place());
    for (name, acts) in acted {
        tally.did_many(name, acts);
    }
    Ok(())
}

fn kill(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // It may have ended meanwhile.
        let _ = kill_process(pid, Signal::KILL);
    }
}

const NO_PHP: &str = "there is no php-fpm";
/// How long Pagewell may take until it starts one again, which it does at longer and longer intervals.
const NO_PHP_FOR: Duration = Duration::from_secs(60);

/// Its processes, the master first: what it was killed with may have left children that still answer, so
/// that all is well while there is none.
fn php_of(stand: &Stand<'_>) -> Result<Vec<u32>, String> {
    let deadline = Deadline::after(NO_PHP_FOR);
    loop {
        match stand.php() {
            all if !all.is_empty() => return Ok(all),
            _ if deadline.passed() => return Err(NO_PHP.into()),
            _ => thread::park_timeout(BETWEEN),
        }
    }
}

fn php(run: &Run, stand: &Stand<'_>, until: Deadline) -> Result<(), String> {
    let mut turn = 0;
    while turn == 0 || !until.passed() {
        let all = php_of(stand)?;
        let (master, children) = all.split_first().ok_or(NO_PHP)?;
        match children.get(turn % children.len().max(1)) {
            Some(child) if turn % 2 == 1 => {
                kill(*child);
                run.tally(Fault::Php.place()).did("children killed");
            }
            _ => {
                kill(*master);
                run.tally(Fault::Php.place()).did("php-fpm killed");
            }
        }
        well_again(run, Fault::Php)?;
        thread::park_timeout(BETWEEN);
        turn += 1;
    }
    Ok(())
}

fn database(run: &Run, site: &mut Site, until: Deadline) -> Result<(), String> {
    let mut turn = 0;
    while turn == 0 || !until.passed() {
        site.database.kill();
        thread::sleep(AWAY);
        site.database.start_again().map_err(error_text)?;
        run.tally(Fault::Database.place()).did("killed");
        well_again(run, Fault::Database)?;
        thread::park_timeout(BETWEEN);
        turn += 1;
    }
    Ok(())
}

fn pagewell(run: &Run, stand: &mut Stand<'_>, until: Deadline) -> Result<(), String> {
    let mut turn = 0;
    while turn == 0 || !until.passed() {
        thread::sleep(LIFE);
        // Those of the life before, which are put in while it serves.
        let taken_up = counter(stand, "snapshot_pages")?;
        run.tally(Fault::Pagewell.place()).did_many("pages taken up from a snapshot", taken_up);
        stand.kill()?;
        run.tally(Fault::Pagewell.place()).did("killed");
        well_again(run, Fault::Pagewell)?;
        turn += 1;
    }
    Ok(())
}

fn disk(run: &Run, stand: &mut Stand<'_>, until: Deadline) -> Result<(), String> {
    let place = Fault::Disk.place();
    // To move there takes a restart, which is not what this is about.
    run.fault.store(Fault::Pagewell.place(), SeqCst);
    lull();
    let own = stand.move_to(Disk::Own);
    if own.is_err() {
        stand.move_to(Disk::Shared)?;
    }
    well_again(run, Fault::Pagewell)?;
    run.fault.store(place, SeqCst);
    lull();
    let before = (counter(stand, "snapshots_failed")?, counter(stand, "snapshots_written")?);
    let bound = match own {
        Ok(()) => {
            run.tally(place).did("full file systems");
            fill(stand)?;
            None
        }
        Err(_) => {
            run.tally(place).did("files that may not grow (there can be no full file system here)");
            Some(LoweredLimit::to(stand.pagewell().pid(), Resource::Fsize, 1)?)
        }
    };
    thread::sleep(until.remaining());
    wait(stand, "snapshots_failed", before.0, "no snapshot failed: the disk was not full")?;
    let dropped = counter(stand, "access_log_dropped")?;
    run.tally(place).did_many("lines of the access log dropped", dropped);
    drop(bound);
    let _ = fs::remove_file(stand.disk_seen().join("filler"));
    let written = counter(stand, "snapshots_written")?.max(before.1);
    wait(stand, "snapshots_written", written, "no snapshot is written again")?;
    run.fault.store(Fault::Pagewell.place(), SeqCst);
    lull();
    stand.move_to(Disk::Shared)?;
    well_again(run, Fault::Pagewell)
}

/// Fills its disk to the last byte.
fn fill(stand: &Stand<'_>) -> Result<(), String> {
    let mut file = fs::File::create(stand.disk_seen().join("filler")).map_err(error_text)?;
    let piece = [0; 4 << 10];
    // A bound far beyond what it holds.
    for _ in 0..100_000 {
        if file.write_all(&piece).is_err() {
            return Ok(());
        }
    }
    Err("the disk is never full".into())
}

/// Waits until a counter is larger than it was.
fn wait(stand: &Stand<'_>, name: &str, than: u64, else_why: &str) -> Result<(), String> {
    let deadline = Deadline::after(WELL_WITHIN);
    while counter(stand, name)? <= than {
        if deadline.passed() {
            return Err(else_why.to_owned());
        }
        thread::park_timeout(LULL / 10);
    }
    Ok(())
}

fn counter(stand: &Stand<'_>, name: &str) -> Result<u64, String> {
    stand.pagewell().counter(name)
}

fn descriptors(run: &Run, site: &Site, stand: &Stand<'_>, until: Deadline) -> Result<(), String> {
    let pid = stand.pagewell().pid();
    let lowered = LoweredLimit::to(pid, Resource::Nofile, cpu::open_fds(pid) as u64 + 2)?;
    let idle = hostile::idle(&site.ports, IDLE);
    run.tally(Fault::Descriptors.place()).did_many("further idle connections", idle.len() as u64);
    thread::sleep(until.remaining());
    drop((lowered, idle));
    Ok(())
}

fn memory(run: &Run, stand: &mut Stand<'_>, until: Deadline) -> Result<(), String> {
    let place = Fault::Memory.place();
    while !until.passed() {
        let taken = Memory::take(stand.pagewell().pid(), MORE_BYTES)?;
        run.tally(place).did(taken.name());
        let before = stand.php();
        let within = Duration::from_secs(5);
        // The kernel decides whether it is answered.
        let _ = Client::new(run.address).host(super::site::HOST).within(within).get(HOG);
        let ended = before.iter().filter(|pid| !cpu::is_running(**pid)).count() as u64;
        run.tally(place).did_many("PHP processes ended by the kernel", ended);
        drop(taken);
        if stand.start_if_ended()? {
            run.tally(place).did("times that Pagewell was ended");
        }
        well_again(run, Fault::Memory)?;
        thread::park_timeout(BETWEEN);
    }
    Ok(())
}
