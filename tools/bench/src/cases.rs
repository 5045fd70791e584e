//! The cases by name, and what each of them measures.
//!
//! `o1` to `o5` are the arrangements of five field reports (docs/internals/measurements.md names them), each
//! beside Pagewell on the same machine in the same run; the others are about Pagewell's own promises.
//! Those that only compare servers on a page are lists of [`Measure`]s; the rest have a module.

use super::compare::{self, Measure};
use super::rivals::Rival;
use super::{Amount, CaseResult, alone, miss, secure, small};
use harness::instructions::BROWSER_HEADERS;
use std::path::Path;

/// A case of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Case {
    /// Every case, one after the other
    All,
    /// A 2,042-byte news page, 50 connections; 21 KB and 100 KB
    O1,
    /// A one-line script and a 21 KB home page, micro-cached; 100 to 1,000 connections
    O2,
    /// A file of 100 bytes, 5 connections
    O3,
    /// A page that takes 8.1 s of PHP; 3,334 and 10,000 connections
    O4,
    /// A file of 13 bytes, 100 and 250 connections; FastCGI in Perl
    O5,
    /// A thousand to a million pages, drawn by Zipf's law
    Growth,
    /// One core and two
    Cores,
    /// HTTP/1.1 over TLS
    Tls,
    /// HTTP/2 over TLS
    Http2,
    /// Clients that accept gzip
    Gzip,
    /// Servers that write an access log
    Logs,
    /// Changes while hits go on: 10, 100, 1,000 a second
    Invalidations,
    /// The cost of a miss, beside nginx before the same PHP
    Miss,
    /// The first byte of a visitor under trial, beside a bypass, at 200 requests a second
    Trial,
    /// Hits with an audit of 1 in 1,000, beside plain ones
    Audit,
    /// Hits of a site with rules, hits behind a password, and redirects
    Rules,
    /// The worst a hit waits while pages are stored, dropped, evicted, compressed, written to disk
    Pauses,
    /// Resident memory, idle and for each page
    Memory,
    /// 256 MB for Pagewell, php-fpm, MariaDB and the news site under load
    Small,
    /// 10,000 idle connections
    Connections,
    /// Five million requests over 250 connections
    Soak,
}

impl Case {
    /// All of them, in the order of the tables.
    const EACH: [Case; 21] = [
        Case::O1,
        Case::O2,
        Case::O3,
        Case::O4,
        Case::O5,
        Case::Growth,
        Case::Cores,
        Case::Tls,
        Case::Http2,
        Case::Gzip,
        Case::Logs,
        Case::Invalidations,
        Case::Miss,
        Case::Trial,
        Case::Audit,
        Case::Rules,
        Case::Pauses,
        Case::Memory,
        Case::Small,
        Case::Connections,
        Case::Soak,
    ];

    /// The cases that a list of names means, each once.
    pub fn chosen(names: &[Case]) -> Vec<Case> {
        if names.contains(&Case::All) {
            return Case::EACH.to_vec();
        }
        Case::EACH.into_iter().filter(|case| names.contains(case)).collect()
    }

    /// Its name, as on the command line.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// Measures it.
    ///
    /// # Errors
    /// A server that did not start, an answer that is wrong.
    pub fn run(self, amount: &Amount, binary: &Path) -> Result<Vec<CaseResult>, String> {
        match self {
            Case::Growth => alone::growth(amount, binary).map(|found| vec![found]),
            Case::Tls => secure::run(amount, binary, secure::Protocol::Http1).map(|one| vec![one]),
            Case::Http2 => {
                secure::run(amount, binary, secure::Protocol::Http2).map(|one| vec![one])
            }
            Case::Invalidations => alone::invalidations(amount, binary).map(|found| vec![found]),
            Case::Miss => miss::miss(amount, binary).map(|found| vec![found]),
            Case::Trial => alone::trial(amount, binary).map(|found| vec![found]),
            Case::Audit => alone::audit(amount, binary).map(|found| vec![found]),
            Case::Rules => alone::rules(amount, binary).map(|found| vec![found]),
            Case::Pauses => alone::pauses(amount, binary).map(|found| vec![found]),
            Case::Memory => alone::memory(amount, binary).map(|found| vec![found]),
            Case::Small => small::small(amount, binary).map(|found| vec![found]),
            Case::Connections => alone::connections(amount, binary).map(|found| vec![found]),
            Case::Soak => alone::soak(amount, binary).map(|found| vec![found]),
            _ => {
                let mut found = Vec::new();
                if self == Case::O4 {
                    found.push(alone::slow_page(binary)?);
                }
                for measure in self.measures() {
                    eprintln!("bench: {}", measure.title);
                    let (text, figures) = compare::run(&measure, amount, binary)?;
                    found.push(CaseResult { name: measure.name, text, figures });
                }
                Ok(found)
            }
        }
    }

    fn measures(self) -> Vec<Measure> {
        match self {
            Case::O1 => news(),
            Case::O2 => small_machine(),
            Case::O3 => vec![
                Measure::new(
                    "o3",
                    "O3: a file of 100 bytes, 5 connections",
                    "/p/100-0",
                    &[
                        Rival::Floor,
                        Rival::Pagewell,
                        Rival::PagewellFile,
                        Rival::NginxFile,
                        Rival::ApacheFile,
                        Rival::NginxApache,
                        Rival::H2oFile,
                        Rival::NginxMemcached,
                        Rival::NginxPagewell,
                    ],
                )
                .connections(5),
            ],
            Case::O4 => [3334, 10_000]
                .map(|connections| {
                    let title = format!("O4: a stored page, {connections} connections at once");
                    let rivals = [Rival::Pagewell, Rival::NginxCache, Rival::NginxMemcached];
                    Measure::new(&format!("o4-{connections}"), &title, "/p/21000-20", &rivals)
                        .connections(connections)
                })
                .to_vec(),
            Case::O5 => slice_of_a_machine(),
            Case::Cores => {
                let rivals = [Rival::Pagewell, Rival::NginxCache];
                let one = Measure::new("cores-1", "One core", "/p/2042-0", &rivals);
                let title = "Two cores, which the load generator shares";
                let two = Measure::new("cores-2", title, "/p/2042-0", &rivals);
                vec![one, Measure { both_cores: true, ..two }]
            }
            Case::Gzip => vec![
                Measure::new(
                    "gzip",
                    "A page of 21 KB for clients that accept gzip",
                    "/p/21000-0",
                    &[Rival::Pagewell, Rival::NginxCache, Rival::Varnish],
                )
                .headers(&[("Accept-Encoding", "gzip")]),
            ],
            Case::Logs => {
                let rivals = [Rival::Floor, Rival::Pagewell, Rival::NginxCache, Rival::ApacheCache];
                let title = "With access logs, in memory: a page of 2,042 bytes, 50 connections";
                let bare = Measure::new("logs", title, "/p/2042-0", &rivals).logging();
                let title = "With access logs: the same with a browser's headers";
                let full = Measure::new("logs-browser", title, "/p/2042-0", &rivals).logging();
                vec![bare, full.headers(&BROWSER_HEADERS)]
            }
            _ => Vec::new(),
        }
    }
}

/// Everything that answers from memory.
const CACHES: [Rival; 8] = [
    Rival::Floor,
    Rival::Pagewell,
    Rival::NginxCache,
    Rival::NginxMemcached,
    Rival::NginxPagewell,
    Rival::Varnish,
    Rival::HaProxy,
    Rival::TrafficServer,
];

fn news() -> Vec<Measure> {
    let most = [&CACHES[..], &[Rival::ApacheCache, Rival::H2oFile]].concat();
    let all = [&most[..], &[Rival::Php]].concat();
    vec![
        Measure::new("o1", "O1: a page of 2,042 bytes, 50 connections, bare", "/p/2042-0", &all),
        Measure::new("o1-browser", "O1: the same with a browser's headers", "/p/2042-0", &most)
            .headers(&BROWSER_HEADERS),
        Measure::new("o1-close", "O1: the same, a connection for each", "/p/2042-0", &most)
            .closing(),
        Measure::new("o1-21k", "O1: a page of 21 KB", "/p/21000-0", &most),
        Measure::new("o1-100k", "O1: a page of 100 KB", "/p/100000-0", &most),
    ]
}

fn small_machine() -> Vec<Measure> {
    let rivals = [Rival::Pagewell, Rival::NginxCache, Rival::Php];
    let mut all = vec![
        Measure::new("o2-script", "O2: a one-line script, 100 connections", "/p/13-0", &rivals)
            .connections(100),
    ];
    for connections in [165, 200, 1000] {
        let title = format!("O2: a home page of 21 KB and 20 ms of PHP, {connections} connections");
        let name = format!("o2-home-{connections}");
        all.push(Measure::new(&name, &title, "/p/21000-20", &rivals).connections(connections));
    }
    all
}

fn slice_of_a_machine() -> Vec<Measure> {
    let files =
        [Rival::Floor, Rival::Pagewell, Rival::PagewellFile, Rival::NginxFile, Rival::H2oFile];
    let scripts = [Rival::Pagewell, Rival::Php, Rival::PerlCgi];
    vec![
        Measure::new("o5-100", "O5: a file of 13 bytes, 100 connections", "/p/13-0", &files)
            .connections(100),
        Measure::new("o5-250", "O5: a file of 13 bytes, 250 connections", "/p/13-0", &files)
            .connections(250),
        Measure::new("o5-scripts", "O5: scripts of 13 bytes, 100 connections", "/p/13-0", &scripts)
            .connections(100),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::pages::FILES;
    use super::*;

    #[test]
    fn every_measure_has_a_name_of_its_own_and_a_page_that_is_there() {
        let measures: Vec<_> = Case::EACH.iter().flat_map(|case| case.measures()).collect();
        for (place, one) in measures.iter().enumerate() {
            assert!(FILES.contains(&one.target), "{}", one.target);
            assert!(measures[..place].iter().all(|other| other.name != one.name), "{}", one.name);
        }
    }

    #[test]
    fn all_means_each_once_and_names_come_in_the_order_of_the_tables() {
        assert_eq!(Case::chosen(&[Case::O2, Case::All]).len(), Case::EACH.len());
        assert_eq!(Case::chosen(&[Case::Soak, Case::O1, Case::O1]), [Case::O1, Case::Soak]);
    }
}
