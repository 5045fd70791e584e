//! Pagewell under torture, through all of its restarts.
//!
//! It is killed like a crash and restarted at the same addresses. Its counters begin at zero after
//! each restart, and are added up. At the end no operation may be in flight.

use super::origin::Origin;
use super::publication::By;
use super::run::Run;
use super::site::SOFT_FOR;
use harness::Port;
use harness::{Deadline, Pagewell, PrivateDir, StartError, StartReason, Wait};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// How often a start is tried that finds its port taken.
const STARTS_MAX: usize = 5;
/// Pagewell's counters that only grow, so that those of all its lives can be added up.
const GROWING: [&str; 13] = [
    "hits",
    "stale_hits",
    "renders",
    "forwards",
    "collapsed",
    "joins_refused",
    "stored",
    "not_stored",
    "store_refused",
    "validated",
    "invalidations",
    "origin_failures",
    "dropped",
];
/// Those that say what is going on now: nothing, once nobody asks.
const LEFT: [&str; 4] = ["followers", "leases", "origin_places_taken", "origin_queue"];
/// How long what is under way at the end of a run may take.
const IDLE_WITHIN: Duration = Duration::from_secs(15);
/// How often somebody who waits looks again.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Pagewell, through all of its lives.
#[derive(Debug)]
pub struct RestartedPagewell<'a> {
    pagewell: Pagewell,
    binary: &'a Path,
    arguments: Vec<String>,
    /// Its own counters, over all of its lives.
    pub counters: BTreeMap<&'static str, u64>,
    /// How often it was started again.
    pub restarts: u64,
    _dir: PrivateDir,
}

impl RestartedPagewell<'_> {
    /// Starts it on these ports: for visitors, and for its control interface.
    ///
    /// # Errors
    /// The reason why it did not start.
    pub fn start<'a>(
        binary: &'a Path,
        origin: &Origin,
        ports: &(Port, Port),
        by: By,
    ) -> Result<RestartedPagewell<'a>, String> {
        let dir = PrivateDir::temporary("torture").map_err(error_text)?;
        let config = dir.path().join("pagewell.toml");
        let text = match by {
            By::Soft => format!("[cache]\nsoft_for = \"{}s\"\n", SOFT_FOR.as_secs()),
            _ => String::new(),
        };
        fs::write(&config, text).map_err(|error| format!("torture: {error}"))?;
        let config = config.display().to_string();
        let origin = format!("http://{}", origin.address());
        let [listen, admin] = [&ports.0, &ports.1].map(|port| port.address().to_string());
        let arguments = [
            ["--config", &config],
            ["--origin", &origin],
            ["--listen", &listen],
            ["--admin", &admin],
            ["--memory", "64M"],
            ["--log", "warn"],
        ];
        let arguments: Vec<String> = arguments.concat().into_iter().map(str::to_owned).collect();
        let pagewell = Pagewell::start(binary, &arguments).map_err(error_text)?;
        let counters = BTreeMap::new();
        Ok(RestartedPagewell { pagewell, binary, arguments, counters, restarts: 0, _dir: dir })
    }

    /// Kills it as a crash would, and starts it again at the same addresses.
    ///
    /// # Errors
    /// When it had ended by itself, or does not come up again.
    pub fn restart(&mut self, run: &Run) -> Result<(), String> {
        self.take_counters()?;
        // Clients with a request in flight are cut off; the others wait.
        run.set_down(true);
        self.pagewell.kill();
        let mut tried = 0;
        self.pagewell = loop {
            tried += 1;
            match Pagewell::start(self.binary, &self.arguments) {
                Ok(pagewell) => break pagewell,
                Err(error) if error.reason == StartReason::PortTaken && tried < STARTS_MAX => {}
                Err(error) => return Err(error_text(error)),
            }
        };
        self.restarts += 1;
        run.set_down(false);
        Ok(())
    }

    /// Adds what this life has counted; a life that has ended by itself is an error.
    ///
    /// # Errors
    /// Then its log; or it has no such counters.
    pub fn take_counters(&mut self) -> Result<(), String> {
        if let Wait::Ended(status) = self.pagewell.wait(Duration::ZERO) {
            let log = self.pagewell.log();
            return Err(format!("torture: pagewell has ended by itself, {status}\n{log}"));
        }
        let counters = self.counters_now()?;
        for name in GROWING {
            *self.counters.entry(name).or_default() += named(&counters, name)?;
        }
        Ok(())
    }

    fn counters_now(&self) -> Result<BTreeMap<String, u64>, String> {
        self.pagewell.stats().map_err(|error| format!("torture: {error}"))
    }

    /// Once nobody asks any more, no render, no lease and nobody who waits may be left.
    ///
    /// # Errors
    /// The work that is left, with its counters.
    pub fn wait_idle(&self) -> Result<(), String> {
        let deadline = Deadline::after(IDLE_WITHIN);
        loop {
            let counters = self.counters_now()?;
            let mut left = Vec::new();
            for name in LEFT {
                match named(&counters, name)? {
                    0 => {}
                    count => left.push(format!("{count} {name}")),
                }
            }
            if left.is_empty() {
                return Ok(());
            }
            if deadline.passed() {
                let left = left.join(", ");
                return Err(format!("torture: {left} when nobody had asked for {IDLE_WITHIN:?}"));
            }
            thread::sleep(LOOK_EVERY);
        }
    }
}

fn named(counters: &BTreeMap<String, u64>, name: &str) -> Result<u64, String> {
    counters.get(name).copied().ok_or_else(|| format!("torture: pagewell has no counter {name}"))
}

fn error_text(error: StartError) -> String {
    format!("torture: {error}")
}
