//! Counts the instructions that Pagewell needs for a cache hit, with callgrind. The figure does not depend on
//! the load of the machine.
//!
//! Pagewell runs under valgrind in front of a small origin with one page, answers requests for it on one
//! connection, and ends. callgrind reports the instructions of each thread; the busiest thread is the one that
//! answers. Two such runs, one with twice as many hits, differ only by those hits: start, first render and end
//! cancel out. There is one core, and therefore one worker.
//!
//! Start and end vary by some 200,000 instructions. A smaller difference is found in the costs of the functions of the
//! hit path alone ([`costs_of_run`]), which are exact. Not counted: the kernel and the other threads, such as the
//! access log's writer. The figure differs with another compiler, C library or CPU.

use crate::load::{Load, LoadEnd};
use crate::page_origin::page_origin;
use crate::pagewell::Pagewell;
use crate::{Address, Client, PrivateDir, Request, StartError, StartReason, cpu, find};
use std::collections::HashMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The content length of the page in bytes: that of a short article.
const PAGE_BYTES: usize = 2042;

/// The request fields of a browser in addition to `Host`: nine lines in total.
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

/// The protocol of the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2 without TLS, one stream at a time (by h2load).
    Http2,
}

/// The maximum number of instructions per hit: `crates/testing/acceptance/tests/instructions.toml`, for one
/// build profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// For requests with `Host` only.
    pub bare: u64,
    /// For requests with [`BROWSER_HEADERS`].
    pub browser: u64,
    /// The allowed excess in percent.
    pub margin_percent: u64,
}

impl Bounds {
    /// Parses one section of the file: `dev` or `release`.
    ///
    /// # Errors
    /// The entry that is missing in the file.
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

    /// Whether a count exceeds a bound by more than the margin.
    #[must_use]
    pub fn exceeded(&self, bound: u64, counted: u64) -> bool {
        counted * 100 > bound * (100 + self.margin_percent)
    }
}

/// The page whose hits are counted.
pub const TARGET: &str = "/news/1/";

/// The program whose answers are counted.
#[derive(Debug, Clone, Copy)]
pub struct HitMeasurement<'a> {
    /// The path of the program.
    pub binary: &'a Path,
    /// The additional arguments of the program.
    pub more: &'a [&'a str],
    /// The protocol of the requests.
    pub protocol: Protocol,
    /// Fields of all requests, such as a password.
    pub fields: &'a [(&'a str, &'a str)],
    /// The target of the requests: [`TARGET`] for hits, or one with another answer than 200, for instance a redirect.
    pub target: &'a str,
}

/// The instructions per hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerHit {
    /// For requests with `Host` only.
    pub bare: u64,
    /// For requests with [`BROWSER_HEADERS`].
    pub browser: u64,
}

/// The instructions of three runs: with a number of bare hits, with twice as many, and with hits of a browser.
#[derive(Debug, Clone, Copy)]
pub struct RunCounts {
    hits: u64,
    once: u64,
    twice: u64,
    browser: u64,
}

impl RunCounts {
    /// The smaller count of each run. Load only adds instructions: a thread that is interrupted is woken once more.
    #[must_use]
    pub fn least(self, other: RunCounts) -> RunCounts {
        RunCounts {
            hits: self.hits,
            once: self.once.min(other.once),
            twice: self.twice.min(other.twice),
            browser: self.browser.min(other.browser),
        }
    }

    /// The instructions per hit, without those of the start and the end.
    #[must_use]
    pub fn per_hit(self) -> PerHit {
        let bare = self.twice.saturating_sub(self.once) / self.hits;
        PerHit { bare, browser: bare + self.browser.saturating_sub(self.once) / self.hits }
    }
}

impl HitMeasurement<'_> {
    /// Counts the instructions of three runs with `hits` hits, or twice as many.
    ///
    /// # Errors
    /// `NotInstalled` without valgrind; the error of a program that did not start; `Refused` if the page was
    /// not a cache hit, or if callgrind's count cannot be parsed.
    pub fn count(&self, hits: u64) -> Result<RunCounts, StartError> {
        let dir = PrivateDir::temporary("count")?;
        let out = dir.path().join("callgrind.out");
        let answering = |headers: &[(&str, &str)], hits: u64| {
            self.run(headers, hits, &out).map(|busiest| busiest.instructions)
        };
        let (once, twice) = (answering(&[], hits)?, answering(&[], hits * 2)?);
        Ok(RunCounts { hits, once, twice, browser: answering(&BROWSER_HEADERS, hits)? })
    }

    /// Computes the instructions per hit from one count.
    ///
    /// # Errors
    /// As for [`count`](Self::count).
    pub fn per_hit(&self, hits: u64) -> Result<PerHit, StartError> {
        self.count(hits).map(RunCounts::per_hit)
    }

    /// Runs Pagewell once with `hits` hits that have these field lines. callgrind writes one file per thread,
    /// whose name begins with `out`. Returns the thread that answers, including its start and end.
    ///
    /// # Errors
    /// As for [`count`](Self::count).
    pub fn run(
        &self,
        headers: &[(&str, &str)],
        hits: u64,
        out: &Path,
    ) -> Result<Thread, StartError> {
        // An earlier run may have had more threads.
        for file in files(out) {
            fs::remove_file(file).map_err(|error| fault(StartReason::CannotPrepare, error))?;
        }
        let mut pagewell = self.start(out)?;
        let Address::Tcp(address) = *pagewell.address() else {
            return Err(fault(StartReason::Refused, "it does not listen on TCP"));
        };
        if self.target == TARGET {
            warm(address, self.fields)?;
        }
        let headers = &[self.fields, headers].concat();
        match self.protocol {
            Protocol::Http1 => self.ask(address, headers, hits)?,
            Protocol::Http2 => self.ask_by_http2(address, headers, hits)?,
        }
        pagewell.stop();
        busiest(out).ok_or_else(|| fault(StartReason::Refused, "callgrind gives no total"))
    }

    fn ask(
        &self,
        address: SocketAddr,
        headers: &[(&str, &str)],
        hits: u64,
    ) -> Result<(), StartError> {
        let mut load = Load::new(address, self.target, 1, LoadEnd::Requests(hits));
        load.headers = headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let report = load.run().map_err(|error| fault(StartReason::Refused, error))?;
        let is_of_page = self.target == TARGET;
        let right = if is_of_page { report.requests } else { report.unexpected };
        if right == hits {
            Ok(())
        } else {
            Err(fault(StartReason::Refused, format!("not all were answered: {report:?}")))
        }
    }

    fn ask_by_http2(
        &self,
        address: SocketAddr,
        headers: &[(&str, &str)],
        hits: u64,
    ) -> Result<(), StartError> {
        let mut command = Command::new(find::program(&["h2load"])?);
        command.args(["-c", "1", "-t", "1", "-m", "1", "-n", &hits.to_string()]);
        let lines = headers.iter().map(|(name, value)| format!("{name}: {value}"));
        command.args(lines.flat_map(|line| ["-H".into(), line]));
        let output = command.arg(format!("http://{address}{}", self.target)).output();
        let output = output.map_err(|error| fault(StartReason::CannotSpawn, error))?;
        let said = String::from_utf8_lossy(&output.stdout);
        // h2load counts any answer but 2xx and 3xx as failed.
        let right = if self.target == TARGET { hits } else { 0 };
        if said.contains(&format!(" {hits} done,"))
            && said.contains(" 0 errored,")
            && said.contains(&format!("status codes: {right} 2xx,"))
        {
            Ok(())
        } else {
            Err(fault(StartReason::Refused, format!("not all were answered: {said}")))
        }
    }

    /// Starts Pagewell under callgrind on one core, in front of a small origin.
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

/// Requests the page until it is cached.
fn warm(address: SocketAddr, fields: &[(&str, &str)]) -> Result<(), StartError> {
    let mut client = Client::new(address);
    let with = |request: Request, (name, value): &(&str, &str)| request.header(name, value);
    let request = fields.iter().fold(Request::get(TARGET), with);
    for _ in 0..2 {
        client.send(&request).map_err(|error| fault(StartReason::Refused, error))?;
    }
    let says = client.send(&request).map_err(|error| fault(StartReason::Refused, error))?;
    if !says.header("cache-status").is_some_and(|status| status.contains("hit")) {
        return Err(fault(StartReason::Refused, "the page is not answered from memory"));
    }
    client.close();
    Ok(())
}

/// The instructions that one thread has executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// callgrind's file, for `callgrind_annotate`.
    pub file: PathBuf,
    /// The instructions in user space.
    pub instructions: u64,
}

/// The instructions of some functions of a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FunctionCosts {
    /// Executed in the functions themselves.
    pub own: u64,
    /// The number of calls of the inner functions.
    pub calls: u64,
    /// The instructions executed in these calls, with all that they call.
    pub called: u64,
}

/// The costs of the functions whose names have one of the texts `of`, and of the calls of functions whose names have all
/// texts `inner`, in all threads of the run that wrote `out`: a worker that compares pages leaves its connections to
/// another thread.
///
/// # Errors
/// A file of callgrind cannot be read.
pub fn costs_of_run(out: &Path, of: &[&str], inner: &[&str]) -> Result<FunctionCosts, StartError> {
    let mut sum = FunctionCosts::default();
    for file in files(out) {
        let text = fs::read_to_string(file).map_err(|error| fault(StartReason::Refused, error))?;
        let one = costs(&text, of, inner);
        sum.own += one.own;
        sum.calls += one.calls;
        sum.called += one.called;
    }
    Ok(sum)
}

/// The name of a function in a line that begins with `field`. A number stands for it after its first line.
fn function<'t>(
    names: &mut HashMap<&'t str, &'t str>,
    field: &str,
    line: &'t str,
) -> Option<&'t str> {
    let written = line.strip_prefix(field)?;
    let (number, name) = written.split_once(' ').unwrap_or((written, ""));
    if !name.is_empty() {
        names.insert(number, name);
    }
    Some(names.get(number).copied().unwrap_or_default())
}

/// Reads a profile (the manual of callgrind, "Callgrind Format Specification"): `fn=` begins a function, `cfn=` names
/// the function that the next `calls=` line counts, and the line after that has the cost of these calls.
fn costs(text: &str, of: &[&str], inner: &[&str]) -> FunctionCosts {
    let mut names: HashMap<&str, &str> = HashMap::new();
    let (mut found, mut is_one, mut is_inner, mut count) =
        (FunctionCosts::default(), false, false, None);
    for line in text.lines() {
        if let Some(name) = function(&mut names, "fn=", line) {
            is_one = of.iter().any(|text| name.contains(text));
        } else if let Some(name) = function(&mut names, "cfn=", line) {
            is_inner = inner.iter().all(|text| name.contains(text));
        } else if let Some(calls) = line.strip_prefix("calls=") {
            count = calls.split(' ').next().and_then(|calls| calls.parse::<u64>().ok());
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            let cost = line.split(' ').nth(1).and_then(|cost| cost.parse().ok()).unwrap_or(0);
            match count.take() {
                Some(calls) if is_inner => {
                    found.calls += calls;
                    found.called += cost;
                }
                Some(_) => {}
                None if is_one => found.own += cost,
                None => {}
            }
        }
    }
    found
}

/// callgrind's files, one for each thread: `out-01`, `out-02` and so on.
fn files(out: &Path) -> impl Iterator<Item = PathBuf> {
    let file = |number: u32| PathBuf::from(format!("{}-{number:02}", out.display()));
    (1..).map(file).take_while(|file| file.is_file())
}

/// The thread with the most instructions.
fn busiest(out: &Path) -> Option<Thread> {
    let threads = files(out).filter_map(|file| {
        let instructions = total(&fs::read_to_string(&file).ok()?)?;
        Some(Thread { file, instructions })
    });
    threads.max_by_key(|thread| thread.instructions)
}

/// The total at the end of callgrind's file.
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
    fn costs_are_those_of_the_named_functions_and_calls() {
        let text = "events: Ir\nfn=(1) front::find\n16 400\n+1 30\ncfn=(2) front::audit\ncalls=2 50\n* 90\n16 5\n\
                    fn=(3) other\n1 7\ncfn=(2)\ncalls=1 50\n* 45\nfn=(2)\n5 60\ntotals: 999\n";
        let found = costs(text, &["front"], &["front", "audit"]);
        assert_eq!(found, FunctionCosts { own: 495, calls: 3, called: 135 });
        assert_eq!(costs(text, &["none"], &["none"]), FunctionCosts::default());
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
