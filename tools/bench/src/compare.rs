//! Servers in turn, in many short rounds, on the same pages: the way that most cases are measured.
//!
//! The server has one core, the load generator another. Before the rounds each server must answer with
//! the page, byte for byte the same as the others; after them PHP must not have been asked by those that
//! answer from memory. A server that cannot be started, or answers something else, is left out with its
//! reason; Pagewell and the floor may not be.

use super::figures::{Round, Series, table};
use super::pages::{Pages, fast_dir};
use super::rivals::{Ground, Rival, Server};
use super::{Amount, error_text, plot};
use harness::{Client, Deadline, Load, LoadEnd, Request, cpu};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

/// How often the origin may be asked by a server that answers from memory: none of it counts for
/// anything in a round of thousands.
const STRAY_RENDERS: usize = 8;

/// One measurement: who is asked for what, and how.
#[derive(Debug, Clone)]
pub struct Measure {
    /// The title of its tables.
    pub title: String,
    /// Its name among the figures.
    pub name: String,
    /// The target that is asked for; one of [`super::pages::FILES`].
    pub target: &'static str,
    /// The servers that are measured.
    pub rivals: Vec<Rival>,
    /// How many connections ask.
    pub connections: usize,
    /// Whether a connection is used for more than one request.
    pub keep_alive: bool,
    /// Field lines in addition to `Host`.
    pub headers: Vec<(String, String)>,
    /// Whether servers may use both cores, as the load does.
    pub both_cores: bool,
    /// Whether servers write their access logs.
    pub logs: bool,
}

impl Measure {
    /// Bare requests over kept connections.
    pub fn new(name: &str, title: &str, target: &'static str, rivals: &[Rival]) -> Measure {
        Measure {
            title: title.to_owned(),
            name: name.to_owned(),
            target,
            rivals: rivals.to_vec(),
            connections: 50,
            keep_alive: true,
            headers: Vec::new(),
            both_cores: false,
            logs: false,
        }
    }

    /// The same measure, with so many connections.
    pub fn connections(mut self, connections: usize) -> Measure {
        self.connections = connections;
        self
    }

    /// A connection for each request.
    pub fn closing(mut self) -> Measure {
        self.keep_alive = false;
        self
    }

    /// With these field lines.
    pub fn headers(mut self, headers: &[(&str, &str)]) -> Measure {
        self.headers = headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        self
    }

    /// The same measure, with access logs on.
    pub fn logging(mut self) -> Measure {
        self.logs = true;
        self
    }

    fn gzip(&self) -> bool {
        self.headers.iter().any(|(_, value)| value.contains("gzip"))
    }
}

/// Measures, and returns the tables (Markdown) and the figures.
///
/// # Errors
/// A server that did not start; an answer that is wrong.
pub fn run(measure: &Measure, amount: &Amount, binary: &Path) -> Result<(String, Value), String> {
    let cores = two_cores()?;
    let core = (!measure.both_cores).then_some(cores.0);
    let start = || Pages::start(8);
    let pages = match core {
        // PHP is one of the servers.
        Some(core) => cpu::on_core(core, start).map_err(|error| format!("bench: {error}"))??,
        None => start()?,
    };
    let ground = Ground {
        pages,
        binary: binary.to_owned(),
        core,
        load_core: cores.1,
        targets: vec![measure.target],
        connections: measure.connections,
        gzip: measure.gzip(),
        certificate: None,
        logs: if measure.logs { Some(fast_dir("logs").map_err(error_text)?) } else { None },
        log: RefCell::default(),
    };
    let (servers, left_out) = start_all(measure, &ground)?;
    let mut series: Vec<Series> = servers.iter().map(|one| Series::new(one.rival.name())).collect();
    for round in 0..=amount.rounds {
        for (server, series) in servers.iter().zip(&mut series) {
            // The first round only warms up.
            let slice = if round == 0 { amount.slice() / 4 } else { amount.slice() };
            let before = ground.pages.php.requests();
            // So many connections take a while to be made.
            let slice = if measure.connections > 1000 { slice * 4 } else { slice };
            one_round(measure, server, &ground, slice, (round > 0).then_some(series))?;
            server.empty_log()?;
            if server.rival.renders() {
                let_php_finish(&ground);
                continue;
            }
            let asked = ground.pages.php.requests() - before;
            if asked > STRAY_RENDERS {
                let name = server.rival.name();
                return Err(format!("bench: {name} asked PHP {asked} times: no hits"));
            }
        }
        progress(round, amount.rounds);
    }
    report(measure, amount, &servers, &series, &left_out)
}

/// Waits, within a bound, until what php-fpm still had to do is done: it must not count for the next.
pub fn let_php_finish(ground: &Ground) {
    let bound = Deadline::after(Duration::from_secs(60));
    let mut seen = usize::MAX;
    while seen != ground.pages.php.requests() && !bound.passed() {
        seen = ground.pages.php.requests();
        std::thread::sleep(Duration::from_millis(300));
    }
}

/// The core of the servers and that of the load.
///
/// # Errors
/// When there are not two.
pub fn two_cores() -> Result<(usize, usize), String> {
    match cpu::cores().as_slice() {
        [server, load, ..] => Ok((*server, *load)),
        _ => Err("bench: two cores are needed, one for the server and one for the load".into()),
    }
}

fn progress(round: usize, rounds: usize) {
    if std::io::stderr().is_terminal() {
        eprint!("\rbench: round {round} of {rounds} ");
        if round == rounds {
            eprint!("\r");
        }
    }
}

/// Those that started and answer rightly, and for the others why not.
type StartedServers = (Vec<Server>, Vec<(Rival, String)>);

fn start_all(measure: &Measure, ground: &Ground) -> Result<StartedServers, String> {
    let (mut servers, mut left_out) = (Vec::new(), Vec::new());
    let mut page = None;
    for rival in &measure.rivals {
        let started = rival.start(ground).and_then(|server| {
            let content = answer(&server, measure)?;
            match page.get_or_insert_with(|| content.clone()) {
                first if *first != content && !measure.gzip() => {
                    Err(format!("it answers {} other bytes", content.len()))
                }
                _ => Ok(server),
            }
        });
        match started {
            Ok(server) => servers.push(server),
            Err(error) if matches!(rival, Rival::Floor | Rival::Pagewell) => {
                return Err(format!("bench: {}: {error}", rival.name()));
            }
            Err(error) => {
                let reason = error.lines().next().unwrap_or_default().to_owned();
                eprintln!("bench: {} is left out: {error}", rival.name());
                left_out.push((*rival, reason));
            }
        }
    }
    Ok((servers, left_out))
}

/// Asks three times, so that whatever stores has stored; returns the content.
fn answer(server: &Server, measure: &Measure) -> Result<Vec<u8>, String> {
    let mut client = Client::new(server.address).within(Duration::from_secs(30));
    let request = measure
        .headers
        .iter()
        .fold(Request::get(measure.target), |request, (name, value)| request.header(name, value));
    let mut content = Vec::new();
    for _ in 0..3 {
        let page = client.send(&request).map_err(|error| error.to_string())?;
        if page.status != 200 {
            return Err(format!("it answers {} to {}", page.status, measure.target));
        }
        if measure.gzip() && page.header("content-encoding") != Some("gzip") {
            // Pagewell makes codings off the way of visitors: it is asked until it has.
            std::thread::sleep(Duration::from_millis(300));
        }
        content = page.content;
    }
    Ok(content)
}

fn one_round(
    measure: &Measure,
    server: &Server,
    ground: &Ground,
    slice: Duration,
    into: Option<&mut Series>,
) -> Result<(), String> {
    let until = LoadEnd::Elapsed(slice);
    let mut load = Load::new(server.address, measure.target, measure.connections, until);
    load.core = Some(ground.load_core);
    load.keep_alive = measure.keep_alive;
    load.headers.clone_from(&measure.headers);
    let before = server.cpu_seconds();
    let report = load.run().map_err(|error| format!("bench: {error}"))?;
    let used = server.cpu_seconds() - before;
    if let Some(series) = into {
        #[allow(clippy::cast_precision_loss, reason = "far fewer than 2^52 requests")]
        let cpu_micros = used * 1e6 / report.requests.max(1) as f64;
        series.rounds.push(Round { cpu_micros, per_second: report.per_second() });
        series.times.merge(&report.times);
        series.failures += report.failures + report.unexpected;
        series.rss_bytes = server.rss_bytes();
    }
    Ok(())
}

fn report(
    measure: &Measure,
    amount: &Amount,
    servers: &[Server],
    series: &[Series],
    left_out: &[(Rival, String)],
) -> Result<(String, Value), String> {
    let place = |wanted: Rival| servers.iter().position(|server| server.rival == wanted);
    let floor = place(Rival::Floor);
    let ours = place(Rival::Pagewell).or(place(Rival::PagewellFile));
    let mut text = format!("### {}\n\n{}", measure.title, table(series, floor, ours));
    for (rival, reason) in left_out {
        text.push_str(&format!("\nLeft out: {}: {reason}\n", rival.name()));
    }
    plot::write(amount, &measure.name, &measure.title, series)?;
    let base = floor.or(ours).and_then(|place| series.get(place));
    let figures = json!({
        "title": measure.title,
        "target": measure.target,
        "connections": measure.connections,
        "keep_alive": measure.keep_alive,
        "headers": measure.headers.len(),
        "rounds": amount.rounds,
        "slice_seconds": amount.slice().as_secs_f64(),
        "servers": series.iter().map(|one| one.json(base.unwrap_or(one))).collect::<Vec<_>>(),
        "left_out": left_out.iter().map(|(rival, reason)| json!([rival.name(), reason])).collect::<Vec<_>>(),
    });
    Ok((text, figures))
}
