//! The scenarios of `tests/scenarios`, run three times: with a Pagewell inside this process; with one that answers
//! no hits in front of the HTTP library; and with the real binary. Only the scenario advances their clocks.
//! Those of [`RENAMED`] run once more, with a binary that has other names for all reasons.
//!
//! `SCENARIO=substring` selects scenarios. The clock of the binary can only be set if it is built with the
//! feature `settable-clock`. Without it, the clock runs, and scenarios that advance it run only in this process.

use command_line::options::{Command, CommandLine};
use config::raw::{File, OneOrMany};
use config::{Address, resolve};
use harness::{Client, PrivateDir, Request, Wait};
use pagewell::server::Server;
use scenario::{Config, Subject, run_dir, run_dir_where};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use telemetry::clock::Clock;

fn stories() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/scenarios")
}

/// A Pagewell in this process.
struct InProcess {
    runtime: tokio::runtime::Runtime,
    server: Server,
    clock: Clock,
    explains: bool,
}

fn tcp(address: &Address) -> SocketAddr {
    match address {
        Address::Tcp(address) => *address,
        Address::Unix(path) => panic!("{} is no TCP address", path.display()),
    }
}

impl InProcess {
    fn start(config: &Config) -> Result<Box<dyn Subject>, String> {
        InProcess::start_with(config, true)
    }

    /// Starts a Pagewell that is asked before each request how it would answer.
    fn start_explained(config: &Config) -> Result<Box<dyn Subject>, String> {
        let mut subject = InProcess::start_one(config, true)?;
        subject.explains = true;
        Ok(Box::new(subject))
    }

    /// Starts a Pagewell whose responses all come from the HTTP library.
    fn start_without_front(config: &Config) -> Result<Box<dyn Subject>, String> {
        InProcess::start_with(config, false)
    }

    fn start_with(config: &Config, hits_in_front: bool) -> Result<Box<dyn Subject>, String> {
        Ok(Box::new(InProcess::start_one(config, hits_in_front)?))
    }

    fn start_one(config: &Config, hits_in_front: bool) -> Result<InProcess, String> {
        use clap::Parser;
        let mut file: File = toml::from_str(&config.toml).map_err(|error| error.to_string())?;
        let words = ["pagewell", "serve"].map(String::from).into_iter();
        let line = words.chain(config.flags.iter().cloned());
        let line = CommandLine::try_parse_from(line).map_err(|error| error.to_string())?;
        let Command::Serve(args) = line.command else { return Err("not serve".into()) };
        if file.site.list.is_empty() {
            file.site.origin.get_or_insert(vec![format!("http://{}", config.origin)]);
        }
        file.admin.get_or_insert("127.0.0.1:0".into());
        file.memory.get_or_insert("64M".into());
        file.hits_in_front = Some(hits_in_front);
        let mut file = args.over(file)?;
        if args.listen.is_empty() {
            file.listen = Some(OneOrMany::One("127.0.0.1:0".into()));
        }
        let resolved = resolve(&file).map_err(|error| error.to_string())?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        let clock = Clock::still();
        let server = runtime.block_on(Server::start(Arc::new(resolved), clock.clone()))?;
        Ok(InProcess { runtime, server, clock, explains: false })
    }
}

impl Subject for InProcess {
    fn address(&self) -> SocketAddr {
        tcp(&self.server.addresses()[0])
    }

    fn admin_address(&self) -> SocketAddr {
        tcp(self.server.admin())
    }

    fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    fn now_ms(&self) -> Option<u64> {
        Some(self.clock.now().0)
    }

    fn explains(&self) -> bool {
        self.explains
    }

    fn finish(self: Box<Self>) -> Result<(), String> {
        self.runtime.shutdown_timeout(Duration::from_secs(2));
        Ok(())
    }
}

/// The real binary.
struct Binary {
    process: harness::Pagewell,
    /// Stands still and is advanced as that of the process, if that can be set.
    clock: Option<Clock>,
    reason_prefix: Option<&'static str>,
}

impl Binary {
    fn start(config: &Config) -> Result<Box<dyn Subject>, String> {
        Binary::start_with(config, None)
    }

    /// Starts a binary in which the name of each reason begins with another text.
    #[cfg(feature = "settable-clock")]
    fn start_renamed(config: &Config) -> Result<Box<dyn Subject>, String> {
        Binary::start_with(config, Some("renamed-"))
    }

    fn start_with(
        config: &Config,
        reason_prefix: Option<&'static str>,
    ) -> Result<Box<dyn Subject>, String> {
        let dir = PrivateDir::temporary("scenario").map_err(|error| error.to_string())?;
        let path = dir.path().join("pagewell.toml");
        std::fs::write(&path, &config.toml).map_err(|error| error.to_string())?;
        let says_memory = config.flags.iter().any(|flag| flag == "--memory");
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_pagewell"));
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
            .args(["--log", "error"])
            .args(if says_memory { &[][..] } else { &["--memory", "64M"] })
            .arg("--config")
            .arg(&path)
            .args(if config.toml.contains("[[site]]") {
                vec![]
            } else {
                vec!["--origin".to_owned(), format!("http://{}", config.origin)]
            })
            .args(&config.flags);
        let clock = cfg!(feature = "settable-clock").then(Clock::still);
        command.envs(clock.as_ref().map(|clock| ("PAGEWELL_CLOCK", clock.now().0.to_string())));
        command.envs(reason_prefix.map(|prefix| ("PAGEWELL_REASON_PREFIX", prefix)));
        let process = harness::Pagewell::start_command(dir, &mut command);
        let process = process.map_err(|error| error.to_string())?;
        Ok(Box::new(Binary { process, clock, reason_prefix }))
    }
}

impl Subject for Binary {
    fn address(&self) -> SocketAddr {
        listens_on(self.process.address())
    }

    fn admin_address(&self) -> SocketAddr {
        listens_on(self.process.admin())
    }

    fn advance(&self, by: Duration) {
        let call = format!("{{\"advance_ms\":{}}}", by.as_millis());
        let call = Request::new("POST", "/v1/clock")
            .header("Content-Type", "application/json")
            .content(call.as_bytes());
        let answer = Client::new(self.process.admin().clone()).send(&call);
        let answer = answer.expect("the control interface answers");
        assert_eq!(answer.status, 200, "{}", answer.text());
        if let Some(clock) = &self.clock {
            clock.advance(by);
        }
    }

    fn now_ms(&self) -> Option<u64> {
        self.clock.as_ref().map(|clock| clock.now().0)
    }

    fn clock_slack(&self) -> Duration {
        if self.clock.is_some() { Duration::ZERO } else { Duration::from_secs(2) }
    }

    fn reason_prefix(&self) -> Option<&str> {
        self.reason_prefix
    }

    fn finish(mut self: Box<Self>) -> Result<(), String> {
        match self.process.wait(Duration::ZERO) {
            Wait::Running => Ok(()),
            Wait::Ended(status) => Err(format!("pagewell ended by itself: {status}")),
        }
    }
}

impl Drop for Binary {
    fn drop(&mut self) {
        // An orderly end is no part of a scenario.
        self.process.kill();
    }
}

fn listens_on(address: &harness::Address) -> SocketAddr {
    match address {
        harness::Address::Tcp(address) => *address,
        harness::Address::Unix(path) => panic!("{} is no TCP address", path.display()),
    }
}

#[test]
fn stories_in_process() {
    run_dir(&stories(), &InProcess::start).assert_good();
}

#[test]
fn stories_without_hits_in_front() {
    run_dir(&stories(), &InProcess::start_without_front).assert_good();
}

/// Scenarios whose answers depend on facts that an explanation does not have: the client's address and its earlier
/// requests, fragments, parts of pages, a session's own copy, a response that is too long.
const NOT_EXPLAINED: [&str; 13] = [
    "edge/",
    "esi/",
    "explain/",
    "limits/",
    "litespeed-esi/",
    "misses/",
    "parts/",
    "private/",
    "proxies/",
    "purge/",
    "rules/country",
    "superseded/",
    "trial/",
];

/// `explain` says what each request then gets.
#[test]
fn requests_are_answered_as_explained() {
    let is_explained =
        |story: &scenario::Story| !NOT_EXPLAINED.iter().any(|begin| story.name.starts_with(begin));
    let summary = run_dir_where(&stories(), &InProcess::start_explained, &is_explained);
    assert!(summary.failures().next().is_none(), "{summary}");
}

#[test]
fn stories_with_the_real_binary() {
    let settable = cfg!(feature = "settable-clock");
    let told = move |story: &scenario::Story| settable || !story.moves_clock();
    run_dir_where(&stories(), &Binary::start, &told).assert_good();
}

/// The directories of scenarios in which a reason decides about later requests, or is counted.
#[cfg(feature = "settable-clock")]
const RENAMED: [&str; 11] = [
    "collapse/",
    "faults/",
    "freshness/",
    "invalidation/",
    "leases/",
    "misses/",
    "private/",
    "storing/",
    "superseded/",
    "trial/",
    "validation/",
];

/// No behaviour depends on the name of a reason.
#[test]
#[cfg(feature = "settable-clock")]
fn stories_with_other_names_of_reasons() {
    let is_chosen = std::env::var_os("SCENARIO").is_some();
    let wanted = move |story: &scenario::Story| {
        is_chosen || RENAMED.iter().any(|directory| story.name.starts_with(directory))
    };
    run_dir_where(&stories(), &Binary::start_renamed, &wanted).assert_good();
}

#[test]
#[cfg(feature = "settable-clock")]
fn the_reasons_of_that_binary_have_other_names() {
    let config = Config {
        story: "renamed.scn".into(),
        toml: String::new(),
        // It is not asked.
        origin: SocketAddr::from(([127, 0, 0, 1], 1)),
        flags: Vec::new(),
        moves_clock: false,
    };
    let subject = Binary::start_renamed(&config).expect("it starts");
    let trace = Request::new("TRACE", "/");
    let answer = Client::new(subject.address()).send(&trace).expect("an answer");
    let status = answer.field("cache-status").unwrap_or_default();
    let status = String::from_utf8_lossy(&status);
    assert!(status.contains("detail=renamed-method-trace"), "{status}");
}
