//! A writer: changes the data of pages, in the ways of the run's mode ([`super::publication`]), and
//! records each change as acknowledged after the response.
//!
//! A write without a successful response is not acknowledged, whatever the origin has done. A call
//! or a purge request without one is repeated until it succeeds, because the commit is final.

use super::change::{Change, ChangeRecipient, Way};
use super::publication::{Publication, Strength};
use super::run::{HOST, Run};
use harness::Chance;
use harness::{Client, ClientError, Histogram, Request};
use std::time::Duration;

/// How long an answer may take.
const WITHIN: Duration = Duration::from_secs(60);

/// How many changes are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// So many a second, by all writers together.
    PerSecond(u32),
    /// Each writer begins the next when it has the answer to the last.
    Max,
}

impl std::str::FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Rate, String> {
        match text.parse() {
            _ if text == "max" => Ok(Rate::Max),
            Ok(rate @ 1..) => Ok(Rate::PerSecond(rate)),
            _ => Err("a whole number of at least 1, or `max`".to_owned()),
        }
    }
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Rate::PerSecond(rate) => write!(f, "{rate}"),
            Rate::Max => f.write_str("max"),
        }
    }
}

/// The changes of a writer, counted.
#[derive(Debug, Default)]
pub struct Done {
    /// Changes that were acknowledged, by publication, in the order of [`Publication::ALL`].
    pub acknowledged: [u64; Publication::ALL.len()],
    /// Requests and calls without a good answer.
    pub unanswered: u64,
    /// From the begin of a change, its commit included, to its acknowledgement.
    pub times: Histogram,
}

impl Done {
    /// Adds what another writer has done.
    pub fn add(&mut self, other: &Done) {
        for (mine, theirs) in self.acknowledged.iter_mut().zip(other.acknowledged) {
            *mine += theirs;
        }
        self.unanswered += other.unanswered;
        self.times.merge(&other.times);
    }

    /// All changes that were acknowledged.
    pub fn changes(&self) -> u64 {
        self.acknowledged.iter().sum()
    }

    /// The manners that there were, each with its count.
    pub fn by_manner(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let named = Publication::ALL.into_iter().zip(self.acknowledged);
        named
            .filter(|(_, count)| *count > 0)
            .map(|(publication, count)| (publication.as_str(), count))
    }
}

struct Writer<'a> {
    run: &'a Run,
    chance: Chance,
    /// Before the draws of the last change.
    before: Chance,
    visitor: Client,
    operator: Client,
    done: Done,
}

/// Writes until the run is over, as one of `writers`.
pub fn write(run: &Run, number: usize, writers: usize, rate: Rate) -> Done {
    let chance = Chance::new(run.seed, 1 << 24 | number as u64);
    let mut writer = Writer {
        run,
        before: chance.clone(),
        chance,
        visitor: Client::new(run.pagewell).host(HOST).within(WITHIN),
        operator: Client::new(run.control).within(WITHIN),
        done: Done::default(),
    };
    for turn in 0_u64.. {
        if let Rate::PerSecond(rate) = rate {
            let nth = turn * writers as u64 + number as u64 + 1;
            run.wait_until(nth * 1_000_000 / u64::from(rate));
        }
        run.wait_up();
        if run.is_over() {
            break;
        }
        writer.change(run.site.saves_twice && turn % 2 == 1);
    }
    writer.done
}

impl Writer<'_> {
    fn change(&mut self, is_second: bool) {
        if is_second {
            // The same draws make the same change.
            self.chance = self.before.clone();
        }
        self.before = self.chance.clone();
        let begun_micros = self.run.micros();
        let publication = Publication::draw(self.run.site.by, &mut self.chance);
        if self.change_by(publication) {
            self.done.acknowledged[publication as usize] += 1;
            self.done.times.record((self.run.micros() - begun_micros) * 1000);
        } else {
            self.done.unanswered += 1;
        }
    }

    /// Makes a change, and returns whether it was acknowledged.
    fn change_by(&mut self, publication: Publication) -> bool {
        let Change { cells, way } = Change::draw(&self.run.site, publication, &mut self.chance);
        match way {
            Way::Through(request) => self.write(&request),
            Way::Tell(whom, strength, requests) => self.tell(&cells, strength, whom, &requests),
        }
    }

    /// Sends a write, and returns whether it was acknowledged.
    fn write(&mut self, request: &Request) -> bool {
        let response = match self.visitor.send(request) {
            Ok(response) => response,
            Err(error) => {
                if error == ClientError::TimedOut {
                    self.run.report_silence(|| format!("{request:?}: {error}"));
                }
                return false;
            }
        };
        let committed = response.header("x-committed").filter(|_| response.status < 400);
        let Some(committed) = committed else { return false };
        let at_micros = self.run.micros();
        for pair in committed.split(' ') {
            let Some((cell, version)) = pair.split_once(':') else { return false };
            let (Ok(cell), Ok(version)) = (cell.parse(), version.parse()) else {
                return false;
            };
            self.run.site.acknowledge(cell, version, Strength::Hard, at_micros);
        }
        true
    }

    /// Commits, then sends each request until it is answered. Returns whether all were.
    fn tell(
        &mut self,
        cells: &[usize],
        strength: Strength,
        whom: ChangeRecipient,
        requests: &[Request],
    ) -> bool {
        let commit = |cell: &usize| (*cell, self.run.site.commit(*cell));
        let committed: Vec<(usize, u64)> = cells.iter().map(commit).collect();
        for request in requests {
            if !self.until_answered(whom, request) {
                return false;
            }
        }
        let at_micros = self.run.micros();
        for (cell, version) in committed {
            self.run.site.acknowledge(cell, version, strength, at_micros);
        }
        true
    }

    /// Sends a request until it is answered; returns false if it timed out, or the run is over.
    fn until_answered(&mut self, whom: ChangeRecipient, request: &Request) -> bool {
        loop {
            let client = match whom {
                ChangeRecipient::Control => &mut self.operator,
                ChangeRecipient::Front => &mut self.visitor,
            };
            match client.send(request) {
                Ok(response) if response.status == 200 => return true,
                Ok(response) => self.run.keep("refused", || {
                    format!("{request:?}\n    {} {}", response.status, response.text())
                }),
                Err(ClientError::TimedOut) => {
                    self.run.report_silence(|| format!("{request:?}"));
                    return false;
                }
                Err(_) => {}
            }
            if self.run.is_over() {
                return false;
            }
            self.done.unanswered += 1;
            self.run.wait_up();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates() {
        assert_eq!("max".parse(), Ok(Rate::Max));
        assert_eq!("390".parse(), Ok(Rate::PerSecond(390)));
        assert!("0".parse::<Rate>().is_err() && "5.5".parse::<Rate>().is_err());
        assert_eq!(Rate::PerSecond(5).to_string(), "5");
    }
}
