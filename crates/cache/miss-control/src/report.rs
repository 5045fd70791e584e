//! The load of the origin by groups, networks and user agents: counts of the last minutes.
//!
//! Counts are halved every five minutes, so that a report shows what happens now. Memory is bounded
//! (Metwally et al., "space-saving"): in a full list, a new name takes over the place and the count of
//! the least frequent one, so a count may be too high, and never too low.

use crate::clients::ClientNetwork;
use crate::group::MissGroup;
use crate::queue::MissOrder;
use std::borrow::Borrow;
use std::fmt::Display;
use std::time::Duration;

/// The most names of a list.
const NAMES_MAX: usize = 64;
/// Counts are halved after this time.
const HALVED_AFTER: Duration = Duration::from_secs(300);

/// The counts of one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Requests for the origin, with those that were deferred.
    pub requests: u64,
    /// Those that were deferred.
    pub deferred: u64,
    /// The time of the origin, in microseconds.
    pub busy_us: u64,
}

/// A list of names with their counts.
#[derive(Clone, Debug)]
pub struct Ranking<K> {
    names: Vec<(K, RequestCounts)>,
}

impl<K> Default for Ranking<K> {
    fn default() -> Ranking<K> {
        Ranking { names: Vec::new() }
    }
}

impl<K: PartialEq> Ranking<K> {
    fn counts<Q>(&mut self, name: &Q) -> &mut RequestCounts
    where
        K: Borrow<Q>,
        Q: ToOwned<Owned = K> + PartialEq + ?Sized,
    {
        let at = match self.names.iter().position(|(known, _)| known.borrow() == name) {
            Some(at) => at,
            None if self.names.len() < NAMES_MAX => {
                self.names.push((name.to_owned(), RequestCounts::default()));
                self.names.len() - 1
            }
            None => {
                let fewest = |at: &usize| self.names[*at].1.requests;
                let at = (0..self.names.len()).min_by_key(fewest).unwrap_or(0);
                let requests = self.names[at].1.requests;
                let counts = RequestCounts { requests, ..RequestCounts::default() };
                self.names[at] = (name.to_owned(), counts);
                at
            }
        };
        &mut self.names[at].1
    }

    fn halve(&mut self) {
        for (_, counts) in &mut self.names {
            counts.requests /= 2;
            counts.deferred /= 2;
            counts.busy_us /= 2;
        }
        self.names.retain(|(_, counts)| *counts != RequestCounts::default());
    }

    /// All names with their counts, those with the most requests first.
    pub fn into_sorted(mut self) -> Vec<(K, RequestCounts)> {
        self.names.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.requests));
        self.names
    }
}

impl<K: Display> Ranking<K> {
    /// The names with the most requests, each with its share of all.
    fn named(&self, requests: u64) -> String {
        let mut sorted: Vec<_> = self.names.iter().collect();
        sorted.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.requests));
        let one = |(name, counts): &&(K, RequestCounts)| {
            format!("{name} ({} %)", percent(counts.requests, requests))
        };
        sorted.iter().take(NAMED).map(one).collect::<Vec<_>>().join(", ")
    }
}

/// The group with the most requests, for one log line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BusiestGroup {
    /// Its pattern of URLs.
    pub group: String,
    /// Its share of the requests, in per cent.
    pub share: u64,
    /// Its share of the origin's time, in per cent. A request counts when it has ended.
    pub time_share: u64,
    /// The origin's time that it has used, in seconds.
    pub seconds: u64,
    /// The networks with the most requests, each with its share.
    pub networks: String,
    /// The user agents with the most requests, each with its share.
    pub agents: String,
    /// Advice for the operator.
    pub advice: String,
}

/// How requests have waited for the origin since the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct WaitCounts {
    /// The requests that had to wait.
    pub waited: u64,
    /// The requests that were deferred.
    pub deferred: u64,
    /// Whether the origin was ever overloaded, or is now.
    pub was_overloaded: bool,
}

/// The networks, and the user agents, that are named in a log line.
const NAMED: usize = 3;

/// A group or network with this share has most of the requests.
const MOST_PERCENT: u64 = 50;

/// The part of all, in per cent.
pub fn percent(part: u64, all: u64) -> u64 {
    (part.min(all) * 100).checked_div(all).unwrap_or(0)
}

/// The load of the origin by groups, networks and user agents.
#[derive(Clone, Debug, Default)]
pub struct MissReport {
    /// By what is requested.
    pub groups: Ranking<MissGroup>,
    /// By the client's network.
    pub networks: Ranking<ClientNetwork>,
    /// By the client's user agent.
    pub agents: Ranking<String>,
    halved_at: Duration,
}

impl MissReport {
    /// Records that a request needs the origin.
    pub fn note_request(
        &mut self,
        group: MissGroup,
        network: Option<ClientNetwork>,
        agent: Option<&str>,
        now: Duration,
    ) {
        if now.saturating_sub(self.halved_at) >= HALVED_AFTER {
            self.halved_at = now;
            self.groups.halve();
            self.networks.halve();
            self.agents.halve();
        }
        self.groups.counts(&group).requests += 1;
        if let Some(network) = network {
            self.networks.counts(&network).requests += 1;
        }
        if let Some(agent) = agent {
            self.agents.counts(agent).requests += 1;
        }
    }

    /// The group with the most requests; none before the first request. `order` and `waits` are those of the queue.
    pub fn busiest(&self, order: MissOrder, waits: WaitCounts) -> Option<BusiestGroup> {
        let of_all = |of: fn(&RequestCounts) -> u64| -> u64 {
            self.groups.names.iter().map(|(_, counts)| of(counts)).sum()
        };
        let (requests, busy_us) = (of_all(|one| one.requests), of_all(|one| one.busy_us));
        let top = self.groups.names.iter().max_by_key(|(_, counts)| counts.requests);
        let (group, counts) = top.map(|(group, counts)| (group.to_string(), counts))?;
        let share = percent(counts.requests, requests);
        Some(BusiestGroup {
            share,
            time_share: percent(counts.busy_us, busy_us),
            seconds: counts.busy_us / 1_000_000,
            networks: self.networks.named(requests),
            agents: self.agents.named(requests),
            advice: match waits {
                // Some group always has the most requests: that is no crawl while none of them has to wait long.
                WaitCounts { waited: 0, deferred: 0, was_overloaded: false } => {
                    "No request has waited for the origin, so there is nothing to do here.".into()
                }
                WaitCounts { waited, deferred: 0, was_overloaded: false } => format!(
                    "Requests that have waited for the origin: {waited}. It was never overloaded: that begins after a \
                     second in which requests wait without a break. There is nothing to do here."
                ),
                _ => self.advice((&group, share), requests, order),
            },
            group,
        })
    }

    /// The advice about the group with the most requests, by its share and by the network with the most requests.
    fn advice(&self, (group, share): (&str, u64), requests: u64, order: MissOrder) -> String {
        if share < MOST_PERCENT {
            return "No kind of URL has half of the requests, so this is no crawl of one kind of page. pagewell misses \
                    lists the pages that are slow, often purged, or not stored. If cores are idle, give PHP more \
                    workers."
                .into();
        }
        let network = self.networks.names.iter().max_by_key(|(_, counts)| counts.requests);
        let by = match network {
            Some((network, one)) if percent(one.requests, requests) >= MOST_PERCENT => format!(
                "Most come from one network, {network}: if it is no proxy or program of yours, block it in the firewall."
            ),
            _ => "They come from many networks, so blocking or limiting addresses does not stop them.".into(),
        };
        let protected = match order {
            MissOrder::Rationed => "Visitors come first (misses.mode = \"protect\").",
            MissOrder::Arrival => {
                "To let visitors come first, set misses.mode = \"protect\" and run pagewell reload."
            }
        };
        format!(
            "{share} % of the requests are for URLs like {group}. {by} {protected} If visitors do not need these URLs, \
             limit them by a rule with renders = \"60/m\" (or lower its rate), and disallow them in robots.txt."
        )
    }

    /// Records that a request was deferred.
    pub fn note_deferred(&mut self, group: MissGroup) {
        self.groups.counts(&group).deferred += 1;
    }

    /// Records how long a request has occupied the origin.
    pub fn note_busy(&mut self, group: MissGroup, took: Duration) {
        self.groups.counts(&group).busy_us += took.as_micros() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::MissKind;

    const OVERLOADED: WaitCounts = WaitCounts { waited: 257, deferred: 0, was_overloaded: true };

    fn group(url: &str) -> MissGroup {
        MissGroup::of(MissKind::Page, url)
    }

    #[test]
    fn without_an_overload_there_is_nothing_to_do_whoever_has_waited() {
        let mut report = MissReport::default();
        report.note_request(group("/a"), None, None, Duration::ZERO);
        let advice = |waits| report.busiest(MissOrder::Rationed, waits).expect("a request").advice;
        let none = WaitCounts::default();
        assert!(advice(none).starts_with("No request has waited for the origin"));
        let some = WaitCounts { was_overloaded: false, ..OVERLOADED };
        let text = advice(some);
        assert!(text.starts_with("Requests that have waited for the origin: 257."), "{text}");
        assert!(text.ends_with("There is nothing to do here."), "{text}");
        for waits in [OVERLOADED, WaitCounts { deferred: 1, ..some }] {
            assert!(advice(waits).starts_with("100 % of the requests are for URLs like /a."));
        }
    }

    #[test]
    fn the_crawled_group_is_first_whatever_else_is_requested() {
        let mut report = MissReport::default();
        for n in 0..10_000 {
            let network = ClientNetwork::of(std::net::Ipv4Addr::from_bits(n * 256).into());
            let (url, agent) = (format!("/s{n}/x"), format!("agent {n}"));
            let now = Duration::from_millis(n.into());
            report.note_request(group(&url), Some(network), Some(&agent), now);
            report.note_request(group("/shop/?a&b"), None, Some("Mozilla/5.0"), now);
            report.note_busy(group("/shop/?a&b"), Duration::from_millis(30));
        }
        let groups = report.groups.clone().into_sorted();
        assert_eq!((groups.len(), groups[0].0), (NAMES_MAX, group("/shop/?a&b")));
        assert_eq!(groups[0].1.requests, 10_000);
        assert_eq!(groups[0].1.busy_us, 300_000_000);
        let busiest = report.busiest(MissOrder::Arrival, OVERLOADED).expect("there are requests");
        assert_eq!((&*busiest.group, busiest.share), ("/shop?a&b", 50));
        assert_eq!((busiest.time_share, busiest.seconds), (100, 300));
        assert_eq!(busiest.networks.matches("/24 (").count(), 3, "{}", busiest.networks);
        assert!(busiest.agents.starts_with("Mozilla/5.0 (50 %), agent "), "{}", busiest.agents);
        let advice = &busiest.advice;
        for part in [
            "50 % of the",
            "URLs like /shop?a&b. They come from many",
            "To let visitors come first",
        ] {
            assert!(advice.contains(part), "{advice}");
        }
        assert_eq!(report.agents.into_sorted()[0].0, "Mozilla/5.0");
        assert_eq!(report.networks.into_sorted().len(), NAMES_MAX);
        // The three lists, without the names of agents.
        let entries = size_of::<(MissGroup, RequestCounts)>()
            + size_of::<(ClientNetwork, RequestCounts)>()
            + size_of::<(String, RequestCounts)>();
        assert!(entries * NAMES_MAX <= 16 << 10, "{entries}");
    }

    #[test]
    fn the_advice_follows_from_shares_and_order() {
        let mut report = MissReport::default();
        assert_eq!(report.busiest(MissOrder::Arrival, OVERLOADED), None);
        let network = ClientNetwork::of([203, 0, 113, 7].into());
        for url in ["/a", "/b/1", "/b/2"] {
            report.note_request(group(url), Some(network), None, Duration::ZERO);
        }
        let busiest = report.busiest(MissOrder::Rationed, OVERLOADED).expect("there are requests");
        assert!(busiest.advice.contains("one network, 203.0.113.0/24: "), "{busiest:?}");
        assert!(busiest.advice.contains("Visitors come first ("), "{busiest:?}");
        assert_eq!((busiest.time_share, busiest.seconds), (0, 0), "none has ended");
        report.note_request(group("/c/1/2"), None, None, Duration::ZERO);
        report.note_request(group("/d/1/2/3"), None, None, Duration::ZERO);
        let busiest = report.busiest(MissOrder::Rationed, OVERLOADED).expect("there are requests");
        assert!(busiest.advice.contains("no crawl"), "{busiest:?}");
    }

    #[test]
    fn old_counts_fade() {
        let mut report = MissReport::default();
        for _ in 0..100 {
            report.note_request(group("/old"), None, None, Duration::ZERO);
        }
        for minute in 0..60 {
            let now = Duration::from_secs(minute * 60);
            report.note_request(group("/new/1"), None, None, now);
        }
        let groups = report.groups.into_sorted();
        assert_eq!(groups.len(), 1);
        assert_eq!(groups[0].0, group("/new/1"));
    }
}
