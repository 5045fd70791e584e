//! The matrix of faults of change sources: what happens, by MariaDB (or MySQL, where only that is installed),
//! PostgreSQL, and the Valkey or Redis of a cluster. Each cell has the longest time for which an old page was
//! served after a change was committed; a cell above its bound fails the run.
//!
//! A page shows a number that its origin reads from this process. A change increments the number, and then tells
//! the source: by a row, or by an invalidation on another node of the cluster. Pagewell reaches the source
//! through a proxy ([`FaultyNetwork`]), the writer directly. The columns run at the same time.

mod column;

use clap::ValueEnum;
use column::SourceColumn;
use harness::stand::Players;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// `lag_max` in the short form, and in the long one.
const LAG_MAX_SHORT: Duration = Duration::from_secs(2);
const LAG_MAX_LONG: Duration = Duration::from_secs(10);
/// The time by which a cell may exceed its bound: that of a busy machine.
const ALLOWANCE: Duration = Duration::from_secs(5);

/// A kind of source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// MariaDB, or MySQL.
    MariaDb,
    /// PostgreSQL.
    Postgres,
    /// The stream of a cluster.
    Stream,
}

impl Source {
    const ALL: [Source; 3] = [Source::MariaDb, Source::Postgres, Source::Stream];

    fn title(self) -> &'static str {
        match self {
            Source::MariaDb => "MariaDB",
            Source::Postgres => "PostgreSQL",
            Source::Stream => "Valkey, Redis",
        }
    }
}

/// A fault of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SourceFault {
    /// Nothing
    Quiet,
    /// The network delivers nothing to Pagewell
    StalledToPagewell,
    /// The network delivers nothing to the server
    StalledToServer,
    /// The network delivers nothing: the server stops answering
    Stalled,
    /// The connections are closed
    Cut,
    /// The connections are reset
    Reset,
    /// The connections are closed, and new ones refused
    Refused,
    /// The server is killed, and started again
    Killed,
    /// The log or slot is lost, or the stream deleted
    LogLost,
    /// A table is redefined so that it looks the same
    Redefined,
    /// A table is dropped, and created again later
    Recreated,
    /// The process of Pagewell is stopped for a moment, and continued
    Woken,
    /// Entries of others that cannot be read
    Hostile,
    /// The server refuses the entries of a node
    Unpublished,
    /// The server is out of memory
    Full,
    /// The server is read-only
    ReadOnly,
}

impl SourceFault {
    const ALL: &'static [SourceFault] = &[
        SourceFault::Quiet,
        SourceFault::StalledToPagewell,
        SourceFault::StalledToServer,
        SourceFault::Stalled,
        SourceFault::Cut,
        SourceFault::Reset,
        SourceFault::Refused,
        SourceFault::Killed,
        SourceFault::LogLost,
        SourceFault::Redefined,
        SourceFault::Recreated,
        SourceFault::Woken,
        SourceFault::Hostile,
        SourceFault::Unpublished,
        SourceFault::Full,
        SourceFault::ReadOnly,
    ];

    fn title(self) -> &'static str {
        match self {
            SourceFault::Quiet => "none",
            SourceFault::StalledToPagewell => "the network delivers nothing to Pagewell",
            SourceFault::StalledToServer => "the network delivers nothing to the server",
            SourceFault::Stalled => "the server stops answering",
            SourceFault::Cut => "connections cut",
            SourceFault::Reset => "connections reset",
            SourceFault::Refused => "connections cut, and refused",
            SourceFault::Killed => "the server killed (-9) and started again",
            SourceFault::LogLost => "log or slot lost, stream deleted",
            SourceFault::Redefined => "a table redefined so that it looks the same",
            SourceFault::Recreated => "a table dropped, and created again later",
            SourceFault::Woken => "Pagewell stopped for a second, and continued",
            SourceFault::Hostile => "entries that cannot be read",
            SourceFault::Unpublished => "the entries of a node refused",
            SourceFault::Full => "the server out of memory",
            SourceFault::ReadOnly => "the server read-only",
        }
    }

    /// Whether it can happen to this source.
    fn concerns(self, source: Source) -> bool {
        match self {
            SourceFault::Redefined | SourceFault::Recreated => source != Source::Stream,
            SourceFault::Hostile => source == Source::Stream,
            _ => source == Source::Stream || self.commands().is_none(),
        }
    }

    /// The commands by which the server of a stream refuses writes, and accepts them again.
    fn commands(self) -> Option<[&'static str; 2]> {
        match self {
            SourceFault::Unpublished => Some(["ACL SETUSER teller -xadd", column::ACCOUNT]),
            SourceFault::Full => Some(["CONFIG SET maxmemory 1mb", "CONFIG SET maxmemory 0"]),
            // Nothing listens there.
            SourceFault::ReadOnly => Some(["REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE"]),
            _ => None,
        }
    }
}

/// Runs the matrix once, and prints it.
///
/// # Errors
/// A page that was old for longer than `lag_max`, or what kept the run from showing anything.
pub fn run(binary: &Path, is_short: bool, only: &[SourceFault]) -> Result<(), String> {
    let lag_max = if is_short { LAG_MAX_SHORT } else { LAG_MAX_LONG };
    let faults = SourceFault::ALL.iter().filter(|fault| only.is_empty() || only.contains(fault));
    let faults: Vec<SourceFault> = faults.copied().collect();
    let columns = thread::scope(|scope| {
        let (faults, mut columns) = (&faults, Players::new(scope));
        for source in Source::ALL {
            columns.add(source.title(), move || measured(binary, source, faults, lag_max));
        }
        let columns = columns.join().map_err(|error| format!("soak: {error}"))?;
        columns.into_iter().collect::<Result<Vec<_>, String>>()
    })?;
    println!("The longest time that a page was old; the bound is {} s.\n", lag_max.as_secs());
    println!("| Fault | {} |", Source::ALL.map(Source::title).join(" | "));
    println!("|---|---|---|---|");
    for (row, fault) in faults.iter().enumerate() {
        let shown = |cell: &Option<Duration>| cell.map_or("-".into(), shown);
        let cells: Vec<String> = columns.iter().map(|column| shown(&column[row])).collect();
        println!("| {} | {} |", fault.title(), cells.join(" | "));
    }
    let cells = columns.iter().flatten().flatten();
    match cells.max().filter(|age| **age > lag_max + ALLOWANCE) {
        Some(age) => Err(format!("soak: a page was old for {}", shown(*age))),
        None => Ok(()),
    }
}

fn shown(age: Duration) -> String {
    if age < Duration::from_secs(1) {
        format!("{} ms", age.as_millis())
    } else {
        format!("{:.1} s", age.as_secs_f64())
    }
}

/// Runs the rows of a column.
fn measured(
    binary: &Path,
    source: Source,
    faults: &[SourceFault],
    lag_max: Duration,
) -> Result<Vec<Option<Duration>>, String> {
    let mut column = SourceColumn::start(binary, source, lag_max)?;
    let mut ages = Vec::new();
    for fault in faults {
        if !fault.concerns(source) {
            ages.push(None);
            continue;
        }
        eprintln!("soak: {}: {}", source.title(), fault.title());
        let age = column.suffer(*fault);
        let failed = |error| format!("soak: {}: {}: {error}", source.title(), fault.title());
        ages.push(Some(age.map_err(failed)?));
    }
    Ok(ages)
}
