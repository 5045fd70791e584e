//! Pagewell under torture, through all of its restarts.
//!
//! It is killed like a crash and restarted at the same addresses. Its counters begin at zero after
//! each restart, and are added up. At the end no operation may be in flight.

use super::origin::Origin;
use super::run::Run;
use harness::stand::RestartedPagewell;
use harness::{Pagewell, Port, PrivateDir};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Pagewell's counters that only grow, so that those of all its lives can be added up.
const GROWING: [&str; 22] = [
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
    "audit_compared",
    "audit_unjudged",
    "audit_suspected",
    "audit_broken_promises",
    "audit_leaks",
    "audit_leaks_or_aged",
    "audit_aged",
    "audit_late",
    "audit_by_the_clock",
];
/// How long what is under way at the end of a run may take.
const IDLE_WITHIN: Duration = Duration::from_secs(60);

/// Pagewell, and what all of its lives have counted.
pub struct CountedPagewell<'a> {
    pagewell: RestartedPagewell<'a>,
    /// Its own counters, over all of its lives.
    pub counters: BTreeMap<&'static str, u64>,
    _dir: PrivateDir,
}

impl CountedPagewell<'_> {
    /// Starts it on these ports, for visitors and for its control interface, with these lines of its configuration.
    ///
    /// # Errors
    /// The reason why it did not start.
    pub fn start<'a>(
        binary: &'a Path,
        origin: &Origin,
        ports: &(Port, Port),
        settings: &str,
    ) -> Result<CountedPagewell<'a>, String> {
        let dir = PrivateDir::temporary("torture").map_err(error_text)?;
        let config = dir.path().join("pagewell.toml");
        fs::write(&config, settings).map_err(|error| format!("torture: {error}"))?;
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
        let pagewell = RestartedPagewell::start(move || Pagewell::start(binary, &arguments));
        let pagewell = pagewell.map_err(error_text)?;
        Ok(CountedPagewell { pagewell, counters: BTreeMap::new(), _dir: dir })
    }

    /// How often it was started again.
    pub fn restarts(&self) -> u64 {
        self.pagewell.restarts
    }

    /// Kills it as a crash would, and starts it again at the same addresses.
    ///
    /// # Errors
    /// When it had ended by itself, or does not come up again.
    pub fn restart(&mut self, run: &Run) -> Result<(), String> {
        self.take_counters()?;
        // Clients with a request in flight are cut off; the others wait.
        run.set_down(true);
        self.pagewell.kill_and_start().map_err(error_text)?;
        run.set_down(false);
        Ok(())
    }

    /// Adds what this life has counted; a life that has ended by itself is an error.
    ///
    /// # Errors
    /// Then its log; or it has no such counters.
    pub fn take_counters(&mut self) -> Result<(), String> {
        self.pagewell.check_running().map_err(error_text)?;
        let counters = self.pagewell.counters().map_err(error_text)?;
        for name in GROWING {
            let count =
                counters.get(name).ok_or_else(|| error_text(format!("no counter {name}")))?;
            *self.counters.entry(name).or_default() += count;
        }
        Ok(())
    }

    /// Its own counter of this life.
    ///
    /// # Errors
    /// The control interface does not answer, or has no such counter.
    pub fn counter(&self, name: &str) -> Result<u64, String> {
        self.pagewell.counter(name).map_err(error_text)
    }

    /// The log of the program so far.
    pub fn log(&self) -> String {
        self.pagewell.log()
    }

    /// Its own audit has found no wrong page in any life, and watches none now that all changes were announced.
    ///
    /// # Errors
    /// The counters, and its log.
    pub fn check_audit(&self) -> Result<(), String> {
        self.pagewell.check_audit().map(drop).map_err(error_text)
    }

    /// Once nobody asks any more, no render, no lease and nobody who waits may be left.
    ///
    /// # Errors
    /// The work that is left, with its counters.
    pub fn wait_idle(&self) -> Result<(), String> {
        self.pagewell.wait_idle(IDLE_WITHIN).map_err(error_text)
    }
}

fn error_text(error: impl std::fmt::Display) -> String {
    format!("torture: {error}")
}
