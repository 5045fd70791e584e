//! How many instructions a hit takes Pagewell, counted by callgrind: the same figure on a busy machine
//! as on a quiet one.
//!
//! Pagewell runs under valgrind before an origin of ours with one page, is asked for it over one
//! connection, and ends; callgrind then says how many instructions its processes have executed in all.
//! Two such runs, one with twice as many hits, differ by those hits: start, first render and end
//! cancel. One core, hence one worker, so that threads do not wake each other now and then.
//!
//! Not counted: what the kernel does. Not the same: another compiler, another C library, or a processor
//! with other extensions, as the C library and `memchr` choose by those.

use crate::load::{Load, Until};
use crate::page_origin::page_origin;
use crate::pagewell::Pagewell;
use crate::{Address, Client, PrivateDir, StartError, StartReason, cpu, find};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
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

/// What a hit may take: `crates/server/tests/instructions.toml`, for one way of building.
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
        let once = self.run(&[], hits, &out)?;
        let bare = self.run(&[], hits * 2, &out)?.saturating_sub(once) / hits;
        let more = self.run(&BROWSER_HEADERS, hits, &out)?.saturating_sub(once) / hits;
        Ok(PerHit { bare, browser: bare + more })
    }

    /// One run with so many hits that are asked for with these field lines; callgrind's file, for
    /// `callgrind_annotate`, is written to `out`. Returns the instructions of all of it, start and end
    /// included.
    ///
    /// # Errors
    /// As for [`per_hit`](Self::per_hit).
    pub fn run(&self, headers: &[(&str, &str)], hits: u64, out: &Path) -> Result<u64, StartError> {
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
        let text = fs::read_to_string(out).map_err(|error| fault(StartReason::Refused, error))?;
        total(&text).ok_or_else(|| fault(StartReason::Refused, "callgrind gives no total"))
    }

    /// Starts it under callgrind, before an origin of ours, on one core.
    fn start(&self, out: &Path) -> Result<Pagewell, StartError> {
        let origin =
            page_origin(PAGE_BYTES).map_err(|error| fault(StartReason::CannotPrepare, error))?;
        let origin = format!("http://{origin}");
        let mut command = Command::new(find::program(&["valgrind"])?);
        command.arg("--tool=callgrind").arg(format!("--callgrind-out-file={}", out.display()));
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
