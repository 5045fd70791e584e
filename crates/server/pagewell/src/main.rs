//! The program: parses the command line and executes the command. `serve` runs until it gets a
//! signal to stop; a second signal ends it at once. On failure, the other commands print a sentence
//! to standard error and exit with status 1.

mod check;

use clap::FromArgMatches;
use cli::client;
use command_line::nginx_config;
use command_line::options::{
    ChangesArgs, ChangesCommand, Command, CommandLine, ControlArgs, DoctorArgs, ImportArgs,
    InitArgs, PurgeArgs, ServeArgs, TrialArgs,
};
use config::Config;
use control::reload::Reload;
use page_heap::PageHeap;
use pagewell::privileges;
use pagewell::server::{OpenedResources, Server};
use pagewell::service::{Supervisor, Tell, passed, successor, watchdog};
use pagewell::take_over::Predecessor;
use sockets::accept::{NotOpened, PassedSockets};
use std::io::{BufRead, ErrorKind, IsTerminal, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;
use telemetry::clock::Clock;
use telemetry::release_memory;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Pages have a heap of their own; all other allocations use the system's allocator.
#[global_allocator]
static HEAP: PageHeap = PageHeap;

/// The version, with the commit if this was built for use (`build.rs`).
const VERSION: &str = match option_env!("PAGEWELL_VERSION") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};

/// The tunable that enables huge pages for glibc's heap; the page heap then uses them, too.
const HUGE_PAGES: &str = "glibc.malloc.hugetlb=1";

/// Maximum number of socket events per poll. It is less than the length of a worker's queue (256).
/// Events that do not fit there wait behind all later ones. With ten thousand connections, some
/// would wait for seconds while others are answered at once.
const EVENTS_AT_ONCE: usize = 128;
/// Maximum number of tasks that run before sockets are polled again. It is large enough for all
/// tasks of the previous poll to run.
const TURNS: u32 = 8 * EVENTS_AT_ONCE as u32;

/// Maximum length of an answer at the terminal.
const ANSWER_BYTES: u64 = 1_024;
/// Maximum time for another Pagewell to answer the health request.
const ANOTHER: std::time::Duration = std::time::Duration::from_secs(2);

fn main() -> ExitCode {
    privileges::protect_memory();
    let outcome = match command() {
        Command::Serve(args) => serve(&args),
        Command::Init(args) => initialise(&args),
        Command::Import(args) => return import(&args),
        Command::Check(args) => check::check(&args),
        Command::Config(args) => check::config(&args),
        Command::Changes(ChangesArgs { command: ChangesCommand::Suggest(args) }) => {
            check::suggest(&args)
        }
        Command::Purge(args) => purge(&args),
        Command::Reload(args) => {
            once(async { client::reload(&args).await.and_then(|text| say(&text)) })
        }
        Command::Ready(args) => {
            once(async { client::ready(&args).await.and_then(|text| say(&text)) })
        }
        Command::Doctor(args) => return doctor(&args),
        Command::Status(args) => match once_with(client::status(&args)) {
            Ok((text, true)) => say(&text),
            Ok((text, false)) => {
                let _ = say(&text);
                return ExitCode::FAILURE;
            }
            Err(error) => Err(error),
        },
        Command::Trial(args) => return trial(&args),
        Command::Certificates(args) => {
            once(async { client::certificates(&args).await.and_then(|text| say(&text)) })
        }
        Command::NginxConfig(args) => say(nginx_config::text(&args).trim_end()),
        Command::Explain(args) => {
            once(async { client::explain(&args).await.and_then(|text| say(&text)) })
        }
        Command::Misses(args) => {
            once(async { client::misses(&args).await.and_then(|text| say(&text)) })
        }
        Command::Stats(args) if args.watch => {
            once(cli::watch::watch(&args, &mut std::io::stdout()))
        }
        Command::Stats(args) => {
            once(async { client::stats(&args).await.and_then(|text| say(&text)) })
        }
        Command::Completions(args) => say(args.script().trim_end()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Standard error may be closed or on a full disk; the exit status reports the failure,
            // too.
            let _ = writeln!(std::io::stderr(), "pagewell: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The command of the command line. Wrong usage, `--help` and `--version` end the process.
fn command() -> Command {
    let line = CommandLine::program().version(VERSION).get_matches();
    CommandLine::from_arg_matches(&line).unwrap_or_else(|error| error.exit()).command
}

/// Exit status: 0 no failure and none expected, 1 the check could not run, 3 a failure, present or
/// expected.
fn doctor(args: &DoctorArgs) -> ExitCode {
    let findings = match cli::doctor::look(args) {
        Ok(findings) => findings,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "pagewell: {error}");
            return ExitCode::FAILURE;
        }
    };
    if say(cli::doctor::text(&findings, args.json).trim_end()).is_err() {
        return ExitCode::FAILURE;
    }
    if cli::doctor::hurts(&findings) { ExitCode::from(3) } else { ExitCode::SUCCESS }
}

/// Exit status: 0 safe to turn on, 1 not safe, 2 not enough yet, 3 no answer or no trial.
fn trial(args: &TrialArgs) -> ExitCode {
    let shown = once_with(client::trial(args));
    let status = shown.and_then(|(text, status)| say(&text).map(|()| status));
    match status {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "pagewell: {error}");
            ExitCode::from(client::TRIAL_ERROR)
        }
    }
}

/// Exit status: 0 done, 1 it could not run, 2 a restriction was not translated.
fn import(args: &ImportArgs) -> ExitCode {
    let output = match cli::import::run(args) {
        Ok(output) => output,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "pagewell: {error}");
            return ExitCode::FAILURE;
        }
    };
    if let Some(Err(_)) = output.configuration.map(|text| say(text.trim_end())) {
        return ExitCode::FAILURE;
    }
    if let Some(report) = output.report {
        let _ = std::io::stderr().write_all(report.as_bytes());
    }
    if output.lacks_restrictions { ExitCode::from(2) } else { ExitCode::SUCCESS }
}

/// Writes a configuration for a site. Questions are asked only at a terminal.
fn initialise(args: &InitArgs) -> Result<(), String> {
    if args.verify {
        let tls = |host: &str, stream| {
            let stream = cli::doctor::secure(host, stream)?;
            Ok(Box::new(stream) as Box<dyn init::http::Duplex>)
        };
        let trust =
            |host: &str, stream| cli::doctor::verify_certificate(host, stream, args.ca.as_deref());
        let read_certificates = &check::read_certificates;
        let tools = init::verify::VerifyTools { tls: &tls, trust: &trust, read_certificates };
        let (text, failed) = init::verify::verify(args, tools)?;
        say(text.trim_end())?;
        return if failed == 0 { Ok(()) } else { Err(format!("checks that failed: {failed}")) };
    }
    let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let mut ask = |question: &str, default: &str| {
        let _ = write!(std::io::stdout(), "{question} [{default}]: ");
        let _ = std::io::stdout().flush();
        let mut line = String::new();
        let _ = std::io::stdin().lock().take(ANSWER_BYTES).read_line(&mut line);
        line.trim().to_owned()
    };
    let asks = is_terminal && !args.yes;
    let text = init::run(args, if asks { Some(&mut ask) } else { None })?;
    say(text.trim_end())
}

/// Writes a line to standard output. A reader that closes the pipe early is not an error.
fn say(line: &str) -> Result<(), String> {
    match writeln!(std::io::stdout(), "{line}") {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| format!("standard output cannot be written: {error}")),
    }
}

/// Runs a short task to completion.
fn once(task: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    once_with(task)
}

/// Runs a short task to completion, and returns its result.
fn once_with<T>(task: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?
        .block_on(task)
}

fn purge(args: &PurgeArgs) -> Result<(), String> {
    once(async {
        let done = client::invalidate(args).await?;
        let (did, count) =
            if args.soft { ("marked", done.marked) } else { ("purged", done.dropped) };
        let pages = if count == 1 { "page" } else { "pages" };
        say(&format!("{did} {count} {pages} (invalidation {})", done.number))?;
        for hint in client::invalidation_hints(args, count) {
            // The purge was executed; that a hint cannot be written is no error.
            let _ = writeln!(std::io::stderr(), "pagewell: {hint}");
        }
        if done.late {
            Err("the cluster's other nodes have not applied it yet: they will when the cluster's stream can be reached again".into())
        } else {
            Ok(())
        }
    })
}

/// The clock of the machine; in a build for tests, one that stands still at the time in `PAGEWELL_CLOCK`, if that is set.
fn clock() -> Clock {
    #[cfg(feature = "settable-clock")]
    if let Some(now_ms) = std::env::var("PAGEWELL_CLOCK").ok().and_then(|text| text.parse().ok()) {
        return Clock::still_at(now_ms);
    }
    Clock::start()
}

fn serve(args: &ServeArgs) -> Result<(), String> {
    #[cfg(feature = "settable-clock")]
    if std::env::var_os("PAGEWELL_LEASE_CHECK").is_some_and(|value| value == "off") {
        page_store::leave_out_lease_check();
    }
    #[cfg(feature = "settable-clock")]
    if let Ok(prefix) = std::env::var("PAGEWELL_REASON_PREFIX") {
        reasons::rename_all(&prefix);
    }
    // Before any file is opened.
    let mut passed = PassedSockets::new(passed::take()?);
    if std::env::var("GLIBC_TUNABLES").is_ok_and(|said| said.contains(HUGE_PAGES)) {
        page_heap::use_huge_pages();
    }
    event_log::start(args.log)?;
    telemetry::panics::watch();
    telemetry::open_files::raise();
    let (config, text) = args.read()?;
    let reload = Reload::of(args)?;
    let standing = privileges::standing(&config)?;
    let predecessor = if args.take_over {
        let token = config.admin_token.as_deref();
        Predecessor::find(&config.admin, standing.becomes(), token, &mut passed)?
    } else {
        None
    };
    let prepared = OpenedResources::open(&config, passed).map_err(|error| {
        let error = NotOpened { sentence: args.placed(&text, &error.sentence), ..error };
        if args.take_over { error.sentence } else { open_error(error, &config) }
    })?;
    // Before other threads are started.
    release_memory::long_at_once();
    privileges::drop_to(&standing, &config, args.config.as_deref())?;
    check::warn_of_sockets(&config);
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .event_interval(TURNS)
        .max_io_events_per_tick(EVENTS_AT_ONCE)
        .build()
        .map_err(|error| error.to_string())?
        .block_on(run(config, reload, prepared, predecessor))
}

/// The error message if something could not be opened. If a running Pagewell uses the address, it
/// contains a hint to use that process instead.
fn open_error(error: NotOpened, config: &Config) -> String {
    let control = ControlArgs { admin: config.admin.to_string(), token_file: None };
    let NotOpened { sentence, is_taken } = error;
    if !is_taken {
        return sentence;
    }
    let other = "choose free addresses with --listen (visitors) and --admin (control interface), such as \
                 --listen 127.0.0.1:8180 --admin 127.0.0.1:8181";
    if !answers(&control) {
        return format!("{sentence}\nend that program, or {other}");
    }
    format!(
        "{sentence}\na Pagewell answers at {}: `pagewell reload` has it read its configuration again, \
         `pagewell serve --take-over` takes its place\nto run another one beside it, {other}",
        control.admin
    )
}

/// Whether a Pagewell answers at this control interface.
fn answers(control: &ControlArgs) -> bool {
    let is_answer = async {
        let asked = tokio::time::timeout(ANOTHER, client::tell(control, "/v1/health"));
        Ok(matches!(asked.await, Ok(Ok(Some(_)))))
    };
    once_with(is_answer).unwrap_or(false)
}

async fn run(
    config: Config,
    reload: Option<Reload>,
    prepared: OpenedResources,
    predecessor: Option<Predecessor>,
) -> Result<(), String> {
    let mut interrupted = signal(SignalKind::interrupt()).map_err(|error| error.to_string())?;
    let mut terminated = signal(SignalKind::terminate()).map_err(|error| error.to_string())?;
    // Exceeding the file size limit (RLIMIT_FSIZE) must be a write error and not end the process.
    let too_large = SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());
    let _too_large = signal(too_large).map_err(|error| error.to_string())?;
    let mut hung_up = signal(SignalKind::hangup()).map_err(|error| error.to_string())?;
    let mut told = signal(SignalKind::user_defined1()).map_err(|error| error.to_string())?;
    let mut replaced = signal(SignalKind::user_defined2()).map_err(|error| error.to_string())?;
    let (supervisor, clock) = (Supervisor::of_environment(), clock());
    let server = Server::start_with(Arc::new(config), clock.clone(), prepared, predecessor);
    let mut server = server.await?;
    if let Some(reload) = reload {
        server.reload_with(reload);
    }
    say_where(&server);
    supervisor.tell(Tell::Ready);
    let watching = watchdog::start(Supervisor::of_environment(), clock)?;
    release_memory::code();
    release_memory::heap();
    loop {
        tokio::select! {
            _ = interrupted.recv() => break,
            _ = terminated.recv() => break,
            _ = hung_up.recv() => {
                server.reopen();
                // Further signals are handled in between; the result is logged.
                tokio::spawn(server.reload());
            }
            _ = told.recv() => server.reopen(),
            _ = replaced.recv() => {
                let started = successor::start().and_then(|started| server.hand_over_to(started));
                if let Err(error) = started {
                    tracing::error!(event = "successor-not-started", error);
                }
            }
            left = server.left() => {
                supervisor.tell(Tell::Successor(left.pid));
                // From now on the supervisor watches the new process.
                drop(watching);
                return finish(server, [interrupted, terminated]).await;
            }
        }
    }
    tracing::info!(event = "stopping");
    supervisor.tell(Tell::Stopping);
    let default_site = server.site().now();
    tokio::select! {
        () = server.stop() => {
            // Not earlier, because stopping may take long.
            drop(watching);
            return Ok(());
        }
        _ = interrupted.recv() => {}
        _ = terminated.recv() => {}
    }
    // Requests in flight at the origin do not end with this process.
    default_site.all_sites().for_each(|site| site.abandon());
    Err("stopped at once, as asked twice".into())
}

/// Ends after another process has taken over: in good order, or at once on a signal.
async fn finish(
    server: Server,
    [mut interrupted, mut terminated]: [Signal; 2],
) -> Result<(), String> {
    tokio::select! {
        () = server.finish() => {}
        _ = interrupted.recv() => {}
        _ = terminated.recv() => {}
    }
    Ok(())
}

/// Prints the listening addresses; write errors are ignored.
fn say_where(server: &Server) {
    for address in server.addresses() {
        let _ = say(&format!("listening on {}", shown(address)));
    }
    for address in server.tls_addresses() {
        let secure = shown(address).replacen("http:", "https:", 1);
        let _ = say(&format!("listening on {secure} (TLS)"));
    }
    for address in server.memcached() {
        let _ = say(&format!("memcached on {address}"));
    }
    let _ = say(&format!("control on {}", shown(server.admin())));
}

fn shown(address: &config::Address) -> String {
    match address {
        config::Address::Tcp(tcp) => format!("http://{tcp}"),
        unix => unix.to_string(),
    }
}
