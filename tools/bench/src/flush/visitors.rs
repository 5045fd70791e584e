//! Visitors who come at their times, whether or not earlier ones have been answered.
//!
//! Each connection has its share of the times; a request that is due while its connection still waits
//! for an answer is sent after it, and its time runs from when it was due. So a server that holds
//! everybody up for a second is not asked less in that second, as it would be by clients that wait.
//! Pages are drawn by Zipf's law: the nth is asked for 1/n as often as the first.

use super::HOST;
use super::site::{GENERATION, target};
use harness::Chance;
use harness::{Client, Histogram, Response, Stopwatch};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// How long an answer may take.
const WITHIN: Duration = Duration::from_secs(15);

/// The load: which pages are requested, how often and how long.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// The address of the server.
    pub address: SocketAddr,
    /// How many pages there are.
    pub pages: u32,
    /// How many connections ask.
    pub connections: u32,
    /// How many requests are due in a second.
    pub per_second: u32,
    /// How long they come before the flush.
    pub before: Duration,
    /// And from then on.
    pub after: Duration,
}

/// The answers, from the flush on.
#[derive(Debug, Default)]
pub struct Visits {
    /// Answers with a page.
    pub answered: u64,
    /// Other answers, or none at all.
    pub failed: u64,
    /// Pages made before the flush, given to requests that were sent after it was done.
    pub from_before: u64,
    /// From when a request was due to its answer.
    pub times: Histogram,
}

impl Visits {
    /// Adds the answers of other visitors.
    pub fn add(&mut self, other: &Visits) {
        self.answered += other.answered;
        self.failed += other.failed;
        self.from_before += other.from_before;
        self.times.merge(&other.times);
    }
}

struct VisitorState<'a> {
    plan: &'a Plan,
    clock: Stopwatch,
    /// Where the pages stand on a line from 0 to 1, by how often they are asked for.
    places: Vec<f64>,
    /// The generation after the flush; 0 until it is done.
    flushed: AtomicU64,
    given_up: AtomicBool,
}

/// Lets them come; `flush` is called in the middle, and returns the generation from then on.
///
/// # Errors
/// That of the flush.
pub fn visit(plan: &Plan, flush: impl FnOnce() -> Result<u64, String>) -> Result<Visits, String> {
    let shared = &VisitorState {
        plan,
        clock: Stopwatch::start(),
        places: zipf(plan.pages),
        flushed: AtomicU64::new(0),
        given_up: AtomicBool::new(false),
    };
    thread::scope(|scope| {
        let visitors: Vec<_> =
            (0..plan.connections).map(|number| scope.spawn(move || shared.come(number))).collect();
        thread::sleep(plan.before.saturating_sub(shared.clock.elapsed()));
        let flushed = flush();
        match &flushed {
            Ok(generation) => shared.flushed.store(*generation, SeqCst),
            Err(_) => shared.given_up.store(true, SeqCst),
        }
        let mut visits = Visits::default();
        for visitor in visitors {
            visits.add(&visitor.join().map_err(|_| "bench: a visitor panicked")?);
        }
        flushed.map(|_| visits)
    })
}

impl VisitorState<'_> {
    /// One connection, until the end.
    fn come(&self, number: u32) -> Visits {
        let Plan { address, connections, per_second, before, after, .. } = *self.plan;
        let mut client = Client::new(address).host(HOST).within(WITHIN);
        let mut chance = Chance::new(1, number.into());
        let mut visits = Visits::default();
        for turn in 0_u64.. {
            let nth = turn * u64::from(connections) + u64::from(number);
            let due = Duration::from_micros(nth * 1_000_000 / u64::from(per_second));
            if due >= before + after || self.given_up.load(SeqCst) {
                break;
            }
            thread::sleep(due.saturating_sub(self.clock.elapsed()));
            let generation = self.flushed.load(SeqCst);
            let page = self.draw(&mut chance);
            let answer = client.get(&target(page)).ok().filter(|answer| answer.status == 200);
            if due < before {
                continue;
            }
            match answer {
                Some(answer) => {
                    let time = self.clock.elapsed().saturating_sub(due).as_nanos();
                    visits.times.record(u64::try_from(time).unwrap_or(u64::MAX));
                    visits.answered += 1;
                    visits.from_before += u64::from(made_in(&answer) < generation);
                }
                None => visits.failed += 1,
            }
        }
        visits
    }

    fn draw(&self, chance: &mut Chance) -> u32 {
        const STEPS: usize = 1 << 30;
        #[allow(clippy::cast_precision_loss, reason = "both are below 2^52")]
        let place = chance.below(STEPS) as f64 / STEPS as f64;
        let page = self.places.partition_point(|end| *end <= place);
        u32::try_from(page).unwrap_or(0).min(self.plan.pages - 1)
    }
}

/// The generation of a page; one without is of none.
fn made_in(answer: &Response) -> u64 {
    answer.header(GENERATION).and_then(|value| value.parse().ok()).unwrap_or(0)
}

/// The ends of the pages' shares, one after the other, the last at 1.
fn zipf(pages: u32) -> Vec<f64> {
    let total: f64 = (1..=pages).map(|rank| 1.0 / f64::from(rank)).sum();
    let mut end = 0.0;
    let share = |rank| {
        end += 1.0 / f64::from(rank) / total;
        end
    };
    (1..=pages).map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn the_first_page_is_asked_for_most_and_all_are() {
        let plan = Plan {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 1)),
            pages: 20,
            connections: 1,
            per_second: 1,
            before: Duration::ZERO,
            after: Duration::ZERO,
        };
        let shared = VisitorState {
            plan: &plan,
            clock: Stopwatch::start(),
            places: zipf(plan.pages),
            flushed: AtomicU64::new(0),
            given_up: AtomicBool::new(false),
        };
        let mut drawn = [0_u32; 20];
        let mut chance = Chance::new(1, 1);
        (0..20_000).for_each(|_| drawn[shared.draw(&mut chance) as usize] += 1);
        assert!(drawn.iter().all(|count| *count > 0));
        // A share of 1 / (1 + 1/2 + … + 1/20), that is 27.8 %, and half of it.
        assert!((5300..5800).contains(&drawn[0]) && (2600..2950).contains(&drawn[1]), "{drawn:?}");
    }
}
