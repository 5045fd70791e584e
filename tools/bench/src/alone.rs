//! Cases about Pagewell's own promises: many pages, changes while hits go on, memory, connections, a
//! long run. Its origin is the least there is, and lives in this program, so that what is measured is
//! Pagewell alone; nothing of the origin's counts.

mod checks;
mod growth;
mod holding;
mod memory;
mod pauses;
mod rules;

pub use checks::{audit, trial};
pub use growth::growth;
pub use holding::{connections, invalidations, slow_page, soak};
pub use memory::memory;
pub use pauses::pauses;
pub use rules::rules;

use super::compare::two_cores;
use super::error_text;
use harness::{Address, Deadline, Load, LoadEnd, Pagewell, cpu, page_origin};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// The content of every page: that of a short article.
const PAGE_BYTES: usize = 2042;

/// A Pagewell on its core, before an origin whose pages have [`PAGE_BYTES`].
struct Subject {
    pagewell: Pagewell,
    address: SocketAddr,
    load_core: usize,
}

impl Subject {
    fn start(binary: &Path, memory: &str) -> Result<Subject, String> {
        Self::start_with(binary, &["--memory", memory])
    }

    fn start_with(binary: &Path, more: &[&str]) -> Result<Subject, String> {
        let origin = page_origin(PAGE_BYTES).map_err(|error| format!("bench: {error}"))?;
        Self::start_before(&format!("http://{origin}"), binary, more)
    }

    /// Before an origin of the caller's.
    fn start_before(origin: &str, binary: &Path, more: &[&str]) -> Result<Subject, String> {
        let (core, load_core) = two_cores()?;
        let arguments = [&["--origin", origin, "--log", "warn"], more].concat();
        let started = cpu::on_core(core, || Pagewell::start(binary, &arguments));
        let pagewell = started.map_err(|error| format!("bench: core {core}: {error}"))?;
        let pagewell = pagewell.map_err(error_text)?;
        let Address::Tcp(address) = *pagewell.address() else {
            return Err("bench: pagewell does not listen on TCP".into());
        };
        Ok(Subject { pagewell, address, load_core })
    }

    fn load(&self, connections: usize, until: LoadEnd) -> Load {
        let mut load = Load::new(self.address, "/", connections, until);
        load.core = Some(self.load_core);
        load
    }

    /// Asks for each of the pages below `/n/` once.
    fn fill(&self, pages: u32) -> Result<(), String> {
        self.ask_for_all(pages, &[])
    }

    /// The same with these field lines.
    fn ask_for_all(&self, pages: u32, headers: &[(&str, &str)]) -> Result<(), String> {
        let mut load = self.load(16, LoadEnd::Requests(u64::from(pages)));
        load.targets = (0..pages).map(target).collect();
        load.headers = headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let report = load.run().map_err(|error| format!("bench: {error}"))?;
        match report.failures + report.unexpected {
            0 => Ok(()),
            failed => Err(format!("bench: {failed} of {pages} pages could not be stored")),
        }
    }

    /// Waits, within a bound, until the codings of what was stored have been made.
    fn let_codings_finish(&self) -> Result<(), String> {
        let bound = Deadline::after(Duration::from_secs(600));
        let mut seen = u64::MAX;
        while seen != self.stat("coded")? && !bound.passed() {
            seen = self.stat("coded")?;
            std::thread::sleep(Duration::from_millis(500));
        }
        Ok(())
    }

    fn stat(&self, name: &str) -> Result<u64, String> {
        let stats = self.pagewell.stats().map_err(|error| format!("bench: {error}"))?;
        stats.get(name).copied().ok_or_else(|| format!("bench: there is no counter {name}"))
    }
}

fn target(page: u32) -> String {
    format!("/n/{page}/")
}

/// `used` seconds for so many requests, in microseconds each.
#[allow(clippy::cast_precision_loss, reason = "far fewer than 2^52 requests")]
fn micros_each(used: f64, requests: u64) -> f64 {
    used * 1e6 / requests.max(1) as f64
}
