//! The services that Pagewell asks about clients: a DNS server for the names of search engines (`crawler_names`), and a
//! challenge such as Anubis (`challenge`).
//!
//! Invariants: they are asked in the background, for requests that need the origin, never for a hit, and no client waits
//! for an answer. Questions and answers are bounded (`miss_control::OutsideAnswers`). A service that is down changes
//! nothing: its clients are clients like others. A reload begins with no answers.

use crate::crawler_names::{CrawlerNames, LookupTimes};
use config::{Config, MissesMode, OriginServers};
use http::{HeaderMap, HeaderValue, header};
use miss_control::OutsideAnswers;
use origin::Origin;
use origin::http::HttpOrigin;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::Arc;
use telemetry::clock::Clock;

/// The paths of the challenge.
const PATHS: &str = "/.within.website/";
/// The checks of clients by the challenge at a time.
const CHECKS_MAX: usize = 32;
/// The requests of clients to the challenge at a time. Checks have places of their own, so a flood of such requests
/// does not delay them.
const REQUESTS_MAX: usize = 64;

/// The services of a site with one version of its configuration.
#[derive(Default)]
pub struct OutsideServices {
    names: Option<Arc<CrawlerNames>>,
    challenge: Option<Arc<Challenge>>,
}

impl OutsideServices {
    /// The services that are configured.
    pub fn new(config: &Arc<Config>) -> OutsideServices {
        OutsideServices {
            names: CrawlerNames::of(&config.misses, LookupTimes::default()).map(Arc::new),
            challenge: Challenge::of(config).map(Arc::new),
        }
    }

    /// The number of the crawler whose host name this address has, as far as that is known already.
    pub fn crawler_at(&self, address: IpAddr, clock: &Clock, look_up: LookUp) -> Option<usize> {
        let names = self.names.as_ref()?;
        match names.get(address, clock.monotonic()) {
            Some(found) => found,
            None => {
                if look_up == LookUp::InBackground {
                    names.look_up(address, clock);
                }
                None
            }
        }
    }

    /// The challenge as a server, if this path is below its own.
    pub fn challenge_of(&self, path_and_query: &str) -> Option<&Origin> {
        let challenge = self.challenge.as_ref()?;
        path_and_query.starts_with(PATHS).then(|| challenge.server())
    }

    pub(crate) fn challenge(&self) -> Option<&Arc<Challenge>> {
        self.challenge.as_ref()
    }
}

/// Whether the name of an address may be looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookUp {
    /// In the background, for the next requests.
    InBackground,
    /// Only what is known already counts.
    Never,
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckResult {
    Passed,
    Refused,
    Unanswered,
}

/// The challenge of a site, and what it has said about clients.
pub(crate) struct Challenge {
    server: Origin,
    /// The same server, for checks.
    pub(crate) checks: Origin,
    key: RandomState,
    pub(crate) results: OutsideAnswers<u64, CheckResult>,
}

impl Challenge {
    /// None if there is none.
    fn of(config: &Arc<Config>) -> Option<Challenge> {
        let servers = OriginServers {
            servers: vec![config.misses.challenge.clone()?],
            backups: Vec::new(),
            tls_name: None,
            ca_file: None,
            check: None,
        };
        let server = |requests_max: usize| {
            // Its requests are not rationed.
            let mut config = Config::clone(config);
            config.misses.mode = MissesMode::Off;
            config.limits.origin_connections = requests_max;
            let server = HttpOrigin::new(&servers, &Arc::new(config))
                .inspect_err(|error| tracing::error!(event = "challenge-failed", error));
            Some(Origin::Http(Box::new(server.ok()?)))
        };
        Some(Challenge {
            server: server(REQUESTS_MAX)?,
            checks: server(CHECKS_MAX)?,
            key: RandomState::new(),
            results: OutsideAnswers::new(CHECKS_MAX),
        })
    }

    fn server(&self) -> &Origin {
        &self.server
    }

    /// The number of the client in the results: its cookies, which include its ticket, and its user agent.
    pub(crate) fn client_of(&self, headers: &HeaderMap) -> u64 {
        let cookies: Vec<&[u8]> =
            headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
        let agent = headers.get(header::USER_AGENT).map(HeaderValue::as_bytes);
        self.key.hash_one((cookies, agent))
    }
}
