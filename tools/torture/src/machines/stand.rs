//! The whole stand: the site and its php-fpm, the stream's server, the machines before it, and what is noted
//! of the run.
//!
//! All in private directories, on Unix sockets and ports of loopback; it goes when it is dropped.

use super::due_versions::DueVersions;
use super::machine::{Common, Machine, WAITED_FOR};
use super::tally::Tally;
use super::{error_text, locked};
use crate::Amount;
use crate::run::Run;
use crate::script::Faults;
use crate::site::{Kind, Page, Site};
use harness::{Address, PhpFpm, PoolOptions, PrivateDir, Valkey};
use std::fs::{self, Permissions};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The script that answers everything.
const SCRIPT: &str = include_str!("site.php");
/// How many scripts run at once.
const CHILDREN: u32 = 10;
/// Between two requests of a reader: the machines, the scripts and all who ask share two cores or four.
const PAUSE: Duration = Duration::from_millis(40);
/// How many faults of the stand itself are kept.
const FAILED: usize = 30;

/// The stand. Fields are dropped in this order.
pub struct Stand {
    /// All machines of the run.
    pub machines: Vec<Machine>,
    /// For each machine the run of its readers.
    pub runs: Vec<Run>,
    /// The true version of each cell.
    pub due: DueVersions,
    /// The outcomes of writes.
    pub tally: Tally,
    /// The server of the stream.
    pub server: Mutex<Valkey>,
    /// The Unix socket at which that server listens.
    pub socket: PathBuf,
    /// When a machine was started last, and the stream's server, in microseconds since the start.
    pub started: (AtomicU64, AtomicU64),
    failed: Mutex<Vec<String>>,
    _php: PhpFpm,
    _dir: PrivateDir,
}

impl Stand {
    /// Starts everything.
    ///
    /// # Errors
    /// The reason why it did not start.
    pub fn start(
        amount: &Amount,
        machines: usize,
        binary: &Path,
        enough: u64,
    ) -> Result<Stand, String> {
        let site = Arc::new(Site::new(amount.seed, amount.items, amount.pages));
        let dir = PrivateDir::temporary("machines").map_err(error_text)?;
        let root = dir.path().join("root");
        write_site(&site, &root).map_err(error_text)?;
        let due = dir.path().join("truth");
        let env = [("TRUTH", due.display().to_string()), ("ITEMS", site.items.to_string())];
        let env = env.map(|(name, value)| (name.to_owned(), value)).to_vec();
        let due = DueVersions::new(site.clone(), &due).map_err(error_text)?;
        let options = PoolOptions { children: CHILDREN, env, ini: Vec::new() };
        let php_dir = PrivateDir::temporary("machines-php").map_err(error_text)?;
        let php = PhpFpm::start(php_dir, &options).map_err(error_text)?;
        let server = Valkey::start(&[]).map_err(error_text)?;
        let socket = server.socket().to_owned();
        let waits = !amount.without_wait;
        let common = Common { binary, root: &root, php: php.socket(), stream: &socket, waits };
        let start = |number: usize| {
            Machine::start(number, &common, &dir.path().join(format!("machine-{number}")))
        };
        let machines: Vec<Machine> = (0..machines).map(start).collect::<Result<_, _>>()?;
        let time = Duration::from_secs(amount.seconds);
        let servers = |machine: &Machine| (machine.ports.0.address(), machine.ports.1.address());
        let first = servers(&machines[0]);
        let mut first = Run::new(site, Faults::On, amount.seed, first, time, Some(enough));
        first.pause = PAUSE;
        let others: Vec<Run> =
            machines[1..].iter().map(|machine| first.beside(servers(machine))).collect();
        let shadow = u64::try_from(WAITED_FOR.as_micros()).unwrap_or(u64::MAX);
        Ok(Stand {
            runs: [first].into_iter().chain(others).collect(),
            tally: Tally::new(machines.len(), shadow),
            machines,
            due,
            server: Mutex::new(server),
            socket,
            started: (AtomicU64::new(0), AtomicU64::new(0)),
            failed: Mutex::default(),
            _php: php,
            _dir: dir,
        })
    }

    /// Whether the time is up, or enough has gone wrong.
    pub fn is_over(&self) -> bool {
        self.runs.iter().any(Run::is_over)
    }

    /// Something failed that no fault explains.
    pub fn fail(&self, what: String) {
        eprintln!("torture: {what}");
        let mut failed = locked(&self.failed);
        if failed.len() < FAILED {
            failed.push(what);
        }
    }

    /// All faults that could not be caused, in words.
    pub fn failed(&self) -> Vec<String> {
        locked(&self.failed).clone()
    }

    /// Where a machine serves visitors.
    pub fn address(&self, machine: usize) -> SocketAddr {
        self.runs[machine].pagewell
    }

    /// Where a machine's control interface is.
    pub fn control(&self, machine: usize) -> Address {
        self.runs[machine].control.into()
    }
}

fn write_site(site: &Site, root: &Path) -> io::Result<()> {
    let pages = root.join("pages");
    fs::create_dir_all(&pages)?;
    for dir in [root, &pages] {
        fs::set_permissions(dir, Permissions::from_mode(0o755))?;
    }
    fs::write(root.join("index.php"), SCRIPT)?;
    for page in &site.pages {
        fs::write(pages.join(format!("{}.php", page.number)), php(page, site))?;
    }
    Ok(())
}

/// A page as the script reads it.
fn php(page: &Page, site: &Site) -> String {
    let Page { number, target, kind, reads, shape } = page;
    let kind = Kind::as_str(*kind);
    let variants: Vec<String> = page.variants().iter().map(|name| format!("'{name}'")).collect();
    format!(
        "<?php\nreturn ['number' => {number}, 'target' => '{target}', 'kind' => '{kind}', \
         'reads' => {reads:?}, 'variants' => [{variants}], 'lines' => {lines}, \
         'filling' => {filling}, 'control' => '{control}'];\n",
        variants = variants.join(", "),
        lines = shape.lines,
        filling = shape.filling_bytes,
        control = page.cache_control(site.by),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_written_for_the_script() {
        let site = Site::new(1, 60, 10);
        let text = php(&site.pages[3], &site);
        assert!(text.contains("'target' => '/page/3?part=2&of=3', 'kind' => 'plain'"), "{text}");
        assert!(text.contains("'variants' => ['-'], 'lines' => 32, 'filling' => 24"), "{text}");
        assert!(php(&site.pages[6], &site).contains("'variants' => ['a', 'b', 'c']"));
    }
}
