//! The visitors of a trial as numbers: how many different ones got the same, for an advice that would share more.
//!
//! Numbers are hashes of this process. Cookies count only if Pagewell does not know what they mean: ignored ones make no
//! difference, and a session is compared nowhere. Memory: 64 numbers of each kind.

use delivery::site::Site;
use delivery::trial::TrialRequest;
use http::header;
use page_comparison::ComparedVisitors;
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use telemetry::per_address::subscriber;
use telemetry::request_fields::AsSent;

/// Numbers of a kind that are counted.
const COUNTED_MAX: usize = 64;

/// A visitor, as far as visitors are distinguished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VisitorNumbers {
    pub(crate) client: u64,
    /// The `User-Agent` with the language.
    pub(crate) agent: u64,
    /// The cookies that can make a difference, if there are any.
    pub(crate) cookies: Option<u64>,
}

impl VisitorNumbers {
    /// The visitor of this request.
    pub(crate) fn of(site: &Site, hasher: &RandomState, request: &TrialRequest) -> VisitorNumbers {
        let headers = &*request.headers;
        let line = |name: header::HeaderName| headers.get(name).map(http::HeaderValue::as_bytes);
        let cookies = site.config.rules.stranger_pairs(&request.plan, &AsSent(headers));
        let address = request.client.peer.map(|peer| subscriber(peer.ip()));
        VisitorNumbers {
            client: hasher.hash_one(address),
            agent: hasher.hash_one((line(header::USER_AGENT), line(header::ACCEPT_LANGUAGE))),
            cookies: (!cookies.is_empty()).then(|| hasher.hash_one(&cookies)),
        }
    }
}

/// Different visitors who got the same.
#[derive(Debug, Default)]
pub(crate) struct SeenVisitors {
    clients: HashSet<u64>,
    agents: HashSet<u64>,
    cookies: HashSet<u64>,
    without_cookies: HashSet<u64>,
}

impl SeenVisitors {
    /// Counts a visitor, if it is a new one.
    pub(crate) fn note(&mut self, visitor: VisitorNumbers) {
        let VisitorNumbers { client, agent, cookies } = visitor;
        let of_cookies = match cookies {
            Some(cookies) => (&mut self.cookies, cookies),
            None => (&mut self.without_cookies, client),
        };
        for (set, number) in [(&mut self.clients, client), (&mut self.agents, agent), of_cookies] {
            if set.len() < COUNTED_MAX {
                set.insert(number);
            }
        }
    }

    /// The numbers so far.
    pub(crate) fn counts(&self) -> ComparedVisitors {
        ComparedVisitors {
            clients: self.clients.len() as u64,
            agents: self.agents.len() as u64,
            cookies: self.cookies.len() as u64,
            without_cookies: self.without_cookies.len() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_visitor_counts_once_and_the_numbers_are_bounded() {
        let mut seen = SeenVisitors::default();
        let visitor = |client, cookies| VisitorNumbers { client, agent: client % 3, cookies };
        (0..2).for_each(|_| seen.note(visitor(1, None)));
        (0..5).for_each(|cookies| seen.note(visitor(2, Some(cookies % 2))));
        let counts = seen.counts();
        assert_eq!((counts.clients, counts.agents), (2, 2));
        assert_eq!((counts.cookies, counts.without_cookies), (2, 1));
        (0..1_000).for_each(|client| seen.note(visitor(client, Some(client))));
        let max = COUNTED_MAX as u64;
        assert_eq!((seen.counts().clients, seen.counts().cookies), (max, max));
    }
}
