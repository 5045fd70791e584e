//! HTTP/1.1 and HTTP/2 over TLS, asked by h2load: Pagewell and nginx with its cache, in turn.
//!
//! The server and h2load share one core. On two cores h2load, which decrypts as much as the server encrypts, is the
//! slower one, so that all servers answer as many requests per second. On one core the time of a request is the CPU of
//! both, and h2load's share is the same: a server that needs less answers more. A line below the table says how busy
//! both were, which together must have the core, and how many bytes and write calls a response took.
//!
//! The certificate is made for the run, and both servers must agree on one version of TLS, one cipher and one key
//! exchange with h2load. It takes its times in microseconds; handshakes are made once for each connection and count
//! with the rest.

use super::figures::{Round, Series, shown, table};
use super::pages::Pages;
use super::rivals::{Ground, Rival, Server};
use super::{Amount, CaseResult, error_text, plot};
use harness::{PrivateDir, cpu};
use serde_json::json;
use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "/p/2042-0";
const CONNECTIONS: u32 = 50;

/// The protocol over TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2, ten requests at once on a connection.
    Http2,
}

impl Protocol {
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Protocol::Http1 => ("tls", "A page of 2,042 bytes over TLS, HTTP/1.1, 50 connections"),
            Protocol::Http2 => {
                ("http2", "A page of 2,042 bytes over TLS, HTTP/2, 50 connections of ten streams")
            }
        }
    }
}

/// Measures.
///
/// # Errors
/// A server that did not start; a program that is missing.
pub fn run(amount: &Amount, binary: &Path, protocol: Protocol) -> Result<CaseResult, String> {
    let core = cpu::cores().first().copied().unwrap_or(0);
    let (name, title) = protocol.names();
    eprintln!("bench: {title}");
    let dir = PrivateDir::temporary("tls").map_err(error_text)?;
    let ground = Ground {
        pages: Pages::start(4)?,
        binary: binary.to_owned(),
        core: Some(core),
        load_core: core,
        targets: vec![TARGET],
        connections: 1024,
        gzip: false,
        certificate: Some(certificate(dir.path())?),
        logs: None,
        log: RefCell::default(),
    };
    let mut servers = Vec::new();
    for rival in [Rival::Pagewell, Rival::NginxCache] {
        let started = rival.start(&ground).map_err(|e| format!("bench: {}: {e}", rival.name()))?;
        ask(&started, protocol, core, 200, dir.path())?;
        servers.push(started);
    }
    let mut series: Vec<Series> = servers.iter().map(|one| Series::new(one.rival.name())).collect();
    let mut busy = vec![BusyShares::default(); servers.len()];
    let mut session: Option<String> = None;
    for _ in 0..amount.rounds {
        for ((server, series), busy) in servers.iter().zip(&mut series).zip(&mut busy) {
            let before = (server.cpu_seconds(), ended_seconds(), writes(server));
            let asked = ask(server, protocol, core, amount.requests(), dir.path())?;
            let used = server.cpu_seconds() - before.0;
            busy.add(&asked, used, ended_seconds() - before.1);
            busy.writes += writes(server).saturating_sub(before.2);
            let same = session.get_or_insert_with(|| asked.session.clone());
            if *same != asked.session {
                let (name, seen) = (server.rival.name(), &asked.session);
                return Err(format!("bench: {name} has {seen}, the other server {same}"));
            }
            #[allow(clippy::cast_precision_loss, reason = "far fewer than 2^52 requests")]
            let cpu_micros = used * 1e6 / asked.micros.len().max(1) as f64;
            series.rounds.push(Round { cpu_micros, per_second: asked.per_second });
            asked.micros.iter().for_each(|micros| series.times.record(micros * 1000));
            series.failures += asked.failed;
            series.rss_bytes = server.rss_bytes();
        }
    }
    plot::write(amount, name, title, &series)?;
    let shares: Vec<String> =
        servers.iter().zip(&busy).map(|(one, busy)| busy.shown(one.rival.name())).collect();
    let session = session.unwrap_or_default();
    let text = format!(
        "### {title}\n\n{}\nServer and h2load share a core: {} answers {} times as many requests per second as {}. \
         {session}. {}\n",
        table(&series, None, Some(0)),
        series[0].name,
        shown(series[0].rate_to(&series[1])),
        series[1].name,
        shares.join(" ")
    );
    let figures = json!({
        "title": title,
        "servers": series.iter().map(|one| one.json(&series[0])).collect::<Vec<_>>(),
    });
    Ok(CaseResult { name: name.to_owned(), text, figures })
}

/// The CPU time of the programs that this process has started and that have ended, in seconds.
fn ended_seconds() -> f64 {
    let line = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The numbers follow the name, which may have blanks.
    let numbers = line.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = numbers.skip(13).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    #[allow(clippy::cast_precision_loss, reason = "2^52 ticks are a million years")]
    let seconds = ticks as f64 / rustix::param::clock_ticks_per_second() as f64;
    seconds
}

/// The write calls of a server so far, on sockets and on what wakes its threads.
fn writes(server: &Server) -> u64 {
    let of = |pid: u32| {
        let text = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
        let count = text.lines().find_map(|line| line.strip_prefix("syscw: "));
        count.and_then(|count| count.parse::<u64>().ok()).unwrap_or(0)
    };
    server.pids.iter().flat_map(|pid| cpu::descendants(*pid)).map(of).sum()
}

/// What h2load found.
struct H2loadResult {
    /// How long it took, in seconds.
    lasted: f64,
    per_second: f64,
    failed: u64,
    micros: Vec<u64>,
    /// The bytes of all responses as received.
    bytes: u64,
    /// The version of TLS, the cipher and the key exchange.
    session: String,
}

/// How busy a server and h2load were, over all rounds, in seconds.
#[derive(Clone, Copy, Default)]
struct BusyShares {
    lasted: f64,
    server: f64,
    load: f64,
    bytes: u64,
    writes: u64,
    requests: u64,
}

impl BusyShares {
    fn add(&mut self, asked: &H2loadResult, server: f64, load: f64) {
        self.lasted += asked.lasted;
        self.server += server;
        self.load += load;
        self.bytes += asked.bytes;
        self.requests += asked.micros.len() as u64;
    }

    fn shown(&self, name: &str) -> String {
        let share = |part: f64| 100.0 * part / self.lasted.max(f64::MIN_POSITIVE);
        let requests = self.requests.max(1);
        #[allow(clippy::cast_precision_loss, reason = "far fewer than 2^52 calls")]
        let writes = self.writes as f64 / requests as f64;
        format!(
            "{name}: {:.0} % of the core, h2load {:.0} %; {} bytes and {writes:.2} writes for each response.",
            share(self.server),
            share(self.load),
            self.bytes / requests
        )
    }
}

fn ask(
    server: &Server,
    protocol: Protocol,
    core: usize,
    requests: u64,
    dir: &Path,
) -> Result<H2loadResult, String> {
    let log = dir.join("times");
    let _ = fs::remove_file(&log);
    let mut command = Command::new(harness::program(&["h2load"]).map_err(error_text)?);
    command.args(["-c", &CONNECTIONS.to_string(), "-n", &requests.to_string(), "-t", "1"]);
    command.arg(format!("--log-file={}", log.display()));
    match protocol {
        Protocol::Http1 => command.arg("--h1"),
        Protocol::Http2 => command.args(["-m", "10", "--npn-list=h2"]),
    };
    command.arg(format!("https://{}{TARGET}", server.address));
    let output = cpu::on_core(core, || command.output()).and_then(|output| output);
    let output = output.map_err(|error| format!("bench: h2load: {error}"))?;
    let output = String::from_utf8_lossy(&output.stdout);
    let times = fs::read_to_string(&log).unwrap_or_default();
    read(&output, &times, protocol)
        .ok_or_else(|| format!("bench: {}: h2load says: {output}", server.rival.name()))
}

/// Reads h2load's summary, and its log: start, status and time of each request, in tabs.
fn read(output: &str, times: &str, protocol: Protocol) -> Option<H2loadResult> {
    let version = if protocol == Protocol::Http2 { "Application protocol: h2" } else { "" };
    let finished = output.lines().find(|line| line.starts_with("finished in "))?;
    let lasted = seconds(finished.strip_prefix("finished in ")?.split(',').next()?)?;
    let per_second = finished.split(", ").nth(1)?.split(' ').next()?.parse().ok()?;
    let of = |key: &str| output.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    let bytes = of("traffic: ")?.split(['(', ')']).nth(1)?.parse().ok()?;
    let session = [of("TLS Protocol: ")?, of("Cipher: ")?, of("Server Temp Key: ")?].join(", ");
    let counts = output.lines().find(|line| line.starts_with("requests: "))?;
    let failed = counts.split(", ").find_map(|part| part.strip_suffix(" failed"))?.parse().ok()?;
    let mut micros = Vec::new();
    for line in times.lines() {
        let mut fields = line.split('\t').skip(1);
        if fields.next()? != "200" {
            return None;
        }
        micros.push(fields.next()?.parse().ok()?);
    }
    (output.contains(version) && !micros.is_empty()).then_some(H2loadResult {
        lasted,
        per_second,
        failed,
        micros,
        bytes,
        session,
    })
}

/// A duration as h2load writes it: `1.50s`, `385.20ms`, `12us`.
fn seconds(text: &str) -> Option<f64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: f64 = digits.parse().ok()?;
    match &text[digits.len()..] {
        "s" => Some(number),
        "ms" => Some(number / 1e3),
        "us" => Some(number / 1e6),
        _ => None,
    }
}

/// A certificate for 127.0.0.1, good for a day.
fn certificate(dir: &Path) -> Result<(PathBuf, PathBuf), String> {
    let (certificate, key) = (dir.join("cert.pem"), dir.join("key.pem"));
    let mut command = Command::new(harness::program(&["openssl"]).map_err(error_text)?);
    command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]);
    command.args(["-nodes", "-days", "1", "-subj", "/CN=bench", "-addext"]);
    command.arg("subjectAltName=IP:127.0.0.1,DNS:localhost");
    command.arg("-keyout").arg(&key).arg("-out").arg(&certificate);
    let output = command.output().map_err(|error| format!("bench: openssl: {error}"))?;
    if output.status.success() {
        Ok((certificate, key))
    } else {
        Err(format!("bench: openssl: {}", String::from_utf8_lossy(&output.stderr)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "TLS Protocol: TLSv1.3\nCipher: TLS_AES_256_GCM_SHA384\n\
         Server Temp Key: X25519 253 bits\nApplication protocol: h2\n\n\
         finished in 385.20ms, 20000.50 req/s, 42.1MB/s\n\
         requests: 2 total, 2 started, 2 done, 2 succeeded, 1 failed, 0 errored, 0 timeout\n\
         traffic: 4.20KB (4300) total, 100B (100) headers (space savings 0.00%), 4.1KB (4200) data\n";

    #[test]
    fn the_output_of_h2load_is_read() {
        let asked = read(SAID, "1\t200\t310\n2\t200\t290\n", Protocol::Http2).expect("readable");
        assert_eq!((asked.failed, &asked.micros), (1, &vec![310, 290]));
        assert!((asked.per_second - 20000.5).abs() < 0.1 && (asked.lasted - 0.3852).abs() < 1e-9);
        assert_eq!(asked.session, "TLSv1.3, TLS_AES_256_GCM_SHA384, X25519 253 bits");
        let mut busy = BusyShares::default();
        busy.add(&asked, 0.1926, 0.3852);
        busy.writes = 3;
        assert_eq!(
            busy.shown("x"),
            "x: 50 % of the core, h2load 100 %; 2150 bytes and 1.50 writes for each response."
        );
        assert!(read(SAID, "1\t500\t310\n", Protocol::Http2).is_none());
        let plain = SAID.replace("protocol: h2", "protocol: http/1.1");
        assert!(read(&plain, "1\t200\t310\n", Protocol::Http2).is_none());
    }
}
