//! The services that Pagewell asks about clients: a DNS server for the names of search engines (`crawler_names`), and a
//! challenge such as Anubis (`challenge`).
//!
//! Invariants: they are asked in the background, for requests that need the origin, never for a hit, and no client waits
//! for an answer. Questions and answers are bounded (`miss_control::OutsideAnswers`). A service that is down changes
//! nothing: its clients are clients like others. A reload begins with no answers.

use crate::challenge::{self, Challenge};
use crate::crawler_names::CrawlerNames;
use config::Config;
use origin::Origin;
use std::net::IpAddr;
use std::sync::Arc;
use telemetry::clock::Clock;

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
            names: CrawlerNames::of(&config.misses).map(Arc::new),
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
        path_and_query.starts_with(challenge::PATHS).then(|| challenge.server())
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
