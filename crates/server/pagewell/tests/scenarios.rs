//! The scenarios of `tests/scenarios`, run three times: with a Pagewell inside this process, whose clock only
//! the scenario advances; with one that answers no hits in front of the HTTP library; and with the real binary.
//!
//! `SCENARIO=substring` selects scenarios. The clock of the binary can only be set if it is built with the
//! feature `settable-clock`. Without it, scenarios that advance the clock run only in this process.

use command_line::options::{Command, CommandLine};
use config::raw::{File, OneOrMany};
use config::{Address, resolve};
use pagewell::server::Server;
use scenario::{Config, Subject, run_dir, run_dir_where};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
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

    /// Starts a Pagewell whose responses all come from the HTTP library.
    fn start_without_front(config: &Config) -> Result<Box<dyn Subject>, String> {
        InProcess::start_with(config, false)
    }

    fn start_with(config: &Config, hits_in_front: bool) -> Result<Box<dyn Subject>, String> {
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
        Ok(Box::new(InProcess { runtime, server, clock }))
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

    fn finish(self: Box<Self>) -> Result<(), String> {
        self.runtime.shutdown_timeout(Duration::from_secs(2));
        Ok(())
    }
}

/// The real binary.
struct Binary {
    child: Child,
    address: SocketAddr,
    admin: SocketAddr,
    config: PathBuf,
}

impl Binary {
    fn start(config: &Config) -> Result<Box<dyn Subject>, String> {
        let name = config.story.replace(['/', '.'], "-");
        let file = format!("pagewell-{}-{name}.toml", std::process::id());
        let path = std::env::temp_dir().join(file);
        std::fs::write(&path, &config.toml).map_err(|error| error.to_string())?;
        let says_memory = config.flags.iter().any(|flag| flag == "--memory");
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_pagewell"))
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
            .args(&config.flags)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        let said = BufReader::new(child.stdout.take().ok_or("no standard output")?);
        let mut found = [None, None];
        for line in said.lines().map_while(Result::ok).take(2) {
            for (at, start) in ["listening on http://", "control on http://"].iter().enumerate() {
                if let Some(address) = line.strip_prefix(start) {
                    found[at] = address.parse().ok();
                }
            }
        }
        match found {
            [Some(address), Some(admin)] => {
                Ok(Box::new(Binary { child, address, admin, config: path }))
            }
            _ => Err(format!("pagewell did not start: {:?}", child.wait())),
        }
    }

    fn control(&self, path: &str, body: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(self.admin)?;
        let length = body.len();
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n{body}",
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }
}

impl Subject for Binary {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn admin_address(&self) -> SocketAddr {
        self.admin
    }

    fn advance(&self, by: Duration) {
        let call = format!("{{\"advance_ms\":{}}}", by.as_millis());
        let answer = self.control("/v1/clock", &call).expect("the control interface answers");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    fn clock_slack(&self) -> Duration {
        Duration::from_secs(2)
    }

    fn finish(mut self: Box<Self>) -> Result<(), String> {
        let ended = self.child.try_wait().map_err(|error| error.to_string())?;
        match ended {
            None => Ok(()),
            Some(status) => Err(format!("pagewell ended by itself: {status}")),
        }
    }
}

impl Drop for Binary {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.config);
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

#[test]
fn stories_with_the_real_binary() {
    let settable = cfg!(feature = "settable-clock");
    let told = move |story: &scenario::Story| settable || !story.moves_clock();
    run_dir_where(&stories(), &Binary::start, &told).assert_good();
}
