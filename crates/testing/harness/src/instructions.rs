//! How many instructions a hit takes Pagewell, counted by callgrind: the same figure on a busy machine
//! as on a quiet one.
//!
//! Pagewell runs under valgrind in front of an origin of ours with one page, answers requests for it over
//! one connection, and ends; callgrind then gives the instructions of each thread. The thread that answers
//! is the busiest. Two such runs, one with twice as many hits, differ by those hits: start, first render
//! and end cancel. One core, hence one worker.
//!
//! Not counted: what the kernel does, and what other threads do. The access log's writer takes as many
//! lines at a time as have come, and how many that are depends on the machine's load. Not the same: another compiler, another C library, or a processor
//! with other extensions, as the C library and `memchr` choose by those.

use crate::load::{Load, Until};
use crate::page_origin::page_origin;
use crate::pagewell::Pagewell;
use crate::{Address, Client, PrivateDir, StartError, StartReason, cpu, find};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The content of the page: that of a short article.
const PAGE_BYTES: usize = 2042;
const TARGET: &str = "/news/1/";

/// What a browser sends with a request, besides `Host`: nine lines with it.
pub const BROWSER_HEADERS: [(&str, &str); 8] = [
    ("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"),
    ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
    ("Accept-Language", "en-US,en;q=0.5"),
    ("Accept-Encoding", "identity"),
    ("DNT", "1"),
    ("Sec-Fetch-Dest", "document"),
    ("Sec-Fetch-Mode", "navigate"),
    ("Upgrade-Insecure-Requests", "1"),
];

/// By what a hit is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2 in the clear, one stream at a time (by h2load).
    Http2,
}

/// What a hit may take: `crates/testing/acceptance/tests/instructions.toml`, for one way of building.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// With `Host` alone.
    pub bare: u64,
    /// With [`BROWSER_HEADERS`].
    pub browser: u64,
    /// How much more is still allowed, in hundredths.
    pub margin_percent: u64,
}

impl Bounds {
    /// Reads those of one section of the file: `dev` or `release`.
    ///
    /// # Errors
    /// What is missing in the file.
    pub fn read(file: &str, section: &str) -> Result<Bounds, String> {
        let number = |section: &str, key: &str| {
            let mut within = "";
            for line in file.lines() {
                if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
                    within = name;
                }
                let value = line.strip_prefix(key).and_then(|rest| rest.strip_prefix(" = "));
                if let (true, Some(value)) = (within == section, value) {
                    return value.parse().map_err(|_| format!("{key} = {value}: a whole number"));
                }
            }
            Err(format!("no {key} in [{section}]"))
        };
        Ok(Bounds {
            bare: number(section, "bare")?,
            browser: number(section, "browser")?,
            margin_percent: number("", "margin_percent")?,
        })
    }

    /// Whether what was counted is more than a bound and its margin.
    #[must_use]
    pub fn exceeded(&self, bound: u64, counted: u64) -> bool {
        counted * 100 > bound * (100 + self.margin_percent)
    }
}

/// Whose hits are counted.
#[derive(Debug, Clone, Copy)]
pub struct Counted<'a> {
    /// The program.
    pub binary: &'a Path,
    /// What it is started with besides.
    pub more: &'a [&'a str],
    /// By what it is asked.
    pub protocol: Protocol,
}

/// Instructions for a hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerHit {
    /// With `Host` alone.
    pub bare: u64,
    /// With [`BROWSER_HEADERS`].
    pub browser: u64,
}

impl Counted<'_> {
    /// From the differences of three runs: with so many bare hits, with twice as many, and with so many
    /// of a browser's.
    ///
    /// # Errors
    /// `NotInstalled` without valgrind; what did not start; `Refused` when the page was not answered from
    /// memory, or callgrind's count cannot be read.
    pub fn per_hit(&self, hits: u64) -> Result<PerHit, StartError> {
        let dir = PrivateDir::temporary("count")?;
        let out = dir.path().join("callgrind.out");
        let answering = |headers: &[(&str, &str)], hits: u64| {
            self.run(headers, hits, &out).map(|busiest| busiest.instructions)
        };
        let once = answering(&[], hits)?;
        let bare = answering(&[], hits * 2)?.saturating_sub(once) / hits;
        let more = answering(&BROWSER_HEADERS, hits)?.saturating_sub(once) / hits;
        Ok(PerHit { bare, browser: bare + more })
    }

    /// One run with so many hits that are asked for with these field lines. callgrind's files begin with
    /// `out`, one for each thread. Returns the thread that answers, its start and end included.
    ///
    /// # Errors
    /// As for [`per_hit`](Self::per_hit).
    pub fn run(
        &self,
        headers: &[(&str, &str)],
        hits: u64,
        out: &Path,
    ) -> Result<Thread, StartError> {
        // A run before may have had more threads.
        for file in files(out) {
            fs::remove_file(file).map_err(|error| fault(StartReason::CannotPrepare, error))?;
        }
        let mut pagewell = self.start(out)?;
        let Address::Tcp(address) = *pagewell.address() else {
            return Err(fault(StartReason::Refused, "it does not listen on TCP"));
        };
        warm(address)?;
        match self.protocol {
            Protocol::Http1 => ask(address, headers, hits)?,
            Protocol::Http2 => ask_by_http2(address, headers, hits)?,
        }
        pagewell.stop();
        busiest(out).ok_or_else(|| fault(StartReason::Refused, "callgrind gives no total"))
    }

    /// Starts it under callgrind, before an origin of ours, on one core.
    fn start(&self, out: &Path) -> Result<Pagewell, StartError> {
        let origin =
            page_origin(PAGE_BYTES).map_err(|error| fault(StartReason::CannotPrepare, error))?;
        let origin = format!("http://{origin}");
        let mut command = Command::new(find::program(&["valgrind"])?);
        command.arg("--tool=callgrind").arg("--separate-threads=yes");
        command.arg(format!("--callgrind-out-file={}", out.display()));
        command.arg(self.binary).args(["serve", "--origin", &origin, "--log", "warn"]);
        command.args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--memory", "16M"]);
        command.args(self.more);
        let core = cpu::cores().first().copied().unwrap_or(0);
        let dir = PrivateDir::temporary("serve")?;
        let started = cpu::on_core(core, || Pagewell::start_command(dir, &mut command));
        started.map_err(|error| fault(StartReason::CannotSpawn, error))?
    }
}

/// Has the page in memory.
fn warm(address: SocketAddr) -> Result<(), StartError> {
    let mut client = Client::new(address);
    for _ in 0..2 {
        client.get(TARGET).map_err(|error| fault(StartReason::Refused, error))?;
    }
    let says = client.get(TARGET).map_err(|error| fault(StartReason::Refused, error))?;
    if !says.header("cache-status").is_some_and(|status| status.contains("hit")) {
        return Err(fault(StartReason::Refused, "the page is not answered from memory"));
    }
    client.close();
    Ok(())
}

fn ask(address: SocketAddr, headers: &[(&str, &str)], hits: u64) -> Result<(), StartError> {
    let mut load = Load::new(address, TARGET, 1, Until::Requests(hits));
    load.headers = headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    let report = load.run().map_err(|error| fault(StartReason::Refused, error))?;
    match report.requests == hits {
        true => Ok(()),
        false => Err(fault(StartReason::Refused, format!("not all were answered: {report:?}"))),
    }
}

fn ask_by_http2(
    address: SocketAddr,
    headers: &[(&str, &str)],
    hits: u64,
) -> Result<(), StartError> {
    let mut command = Command::new(find::program(&["h2load"])?);
    command.args(["-c", "1", "-t", "1", "-m", "1", "-n", &hits.to_string()]);
    command
        .args(headers.iter().flat_map(|(name, value)| ["-H".into(), format!("{name}: {value}")]));
    let output = command.arg(format!("http://{address}{TARGET}")).output();
    let output = output.map_err(|error| fault(StartReason::CannotSpawn, error))?;
    let said = String::from_utf8_lossy(&output.stdout);
    match said.contains(&format!(" {hits} succeeded, 0 failed")) {
        true => Ok(()),
        false => Err(fault(StartReason::Refused, format!("not all were answered: {said}"))),
    }
}

/// The instructions that one thread has executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// callgrind's file, for `callgrind_annotate`.
    pub file: PathBuf,
    /// Instructions of user space.
    pub instructions: u64,
}

/// callgrind's files, one for each thread: `out-01`, `out-02` and so on.
fn files(out: &Path) -> impl Iterator<Item = PathBuf> {
    let file = |number: u32| PathBuf::from(format!("{}-{number:02}", out.display()));
    (1..).map(file).take_while(|file| file.is_file())
}

/// The thread with most instructions.
fn busiest(out: &Path) -> Option<Thread> {
    let threads = files(out).filter_map(|file| {
        let instructions = total(&fs::read_to_string(&file).ok()?)?;
        Some(Thread { file, instructions })
    });
    threads.max_by_key(|thread| thread.instructions)
}

/// The sum at the end of callgrind's file.
fn total(text: &str) -> Option<u64> {
    let line = text.lines().rev().find_map(|line| line.strip_prefix("totals:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn fault(reason: StartReason, detail: impl std::fmt::Display) -> StartError {
    StartError::new("callgrind", reason, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_the_last_line_that_says_so() {
        assert_eq!(total("summary: 9\n\n1 2\ntotals: 1234\n"), Some(1234));
        assert_eq!(total("events: Ir\n"), None);
    }

    #[test]
    fn the_busiest_thread_answers() {
        let dir = PrivateDir::temporary("busiest").expect("a directory");
        let out = dir.path().join("out");
        assert_eq!(busiest(&out), None);
        for (number, instructions) in [(1, 7), (2, 900), (3, 8)] {
            let file = dir.path().join(format!("out-{number:02}"));
            fs::write(file, format!("totals: {instructions}\n")).expect("it can be written");
        }
        let found = busiest(&out).expect("there are three");
        assert_eq!(found, Thread { file: dir.path().join("out-02"), instructions: 900 });
    }

    #[test]
    fn bounds_are_read_by_section() {
        let file =
            "# x\nmargin_percent = 5\n[dev]\nbare = 100\nbrowser = 300\n[release]\nbare = 7\n";
        let bounds = Bounds::read(file, "dev").expect("all there");
        assert_eq!(bounds, Bounds { bare: 100, browser: 300, margin_percent: 5 });
        assert!(!bounds.exceeded(bounds.bare, 105));
        assert!(bounds.exceeded(bounds.bare, 106));
        assert_eq!(Bounds::read(file, "release"), Err("no browser in [release]".into()));
    }
}
