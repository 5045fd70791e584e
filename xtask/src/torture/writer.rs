//! A writer: changes what pages are made from, in every way that there is, and publishes each
//! change as acknowledged once it has the answer.
//!
//! | manner | the change | who tells Pagewell |
//! |---|---|---|
//! | through | of one item, or several | the response to a POST that went through Pagewell (RFC 9875) |
//! | target | of what one page has of its own | the same POST, by its target or its Location (RFC 9111 section 4.4) |
//! | tags | of one item, or several | a call of the control interface, after the commit |
//! | urls | of one item, or one page's own | such a call, with every page that shows it |
//! | all | of three items | such a call, for everything |
//!
//! A POST without a good answer is not acknowledged, whatever the origin has done. A call without one
//! is made again until it has: the commit stands.

use super::chance::Chance;
use super::run::{HOST, Run};
use super::site::tag;
use harness::{Client, ClientError, Histogram, Request};
use serde_json::{Value, json};
use std::time::Duration;

/// One change in so many drops everything.
const ALL_ONE_IN: usize = 200;
/// How long an answer may take.
const WITHIN: Duration = Duration::from_secs(15);

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

/// What a writer has done, counted.
#[derive(Debug, Default)]
pub struct Done {
    /// Changes that were acknowledged, by manner: through, target, tags, urls, all.
    pub acknowledged: [u64; 5],
    /// Requests and calls without a good answer.
    pub unanswered: u64,
    /// From the begin of a change, its commit included, to its acknowledgement.
    pub times: Histogram,
}

/// The manners, in the order of [`Done::acknowledged`].
pub const MANNERS: [&str; 5] = ["through", "target", "tags", "urls", "all"];

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
}

struct Writer<'a> {
    run: &'a Run,
    chance: Chance,
    visitor: Client,
    operator: Client,
    done: Done,
}

/// Whether a change has its answer.
enum Answered {
    Yes,
    No,
}

/// Writes until the run is over, as one of `writers`.
pub fn write(run: &Run, number: usize, writers: usize, rate: Rate) -> Done {
    let mut writer = Writer {
        run,
        chance: Chance::new(run.seed, 1 << 24 | number as u64),
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
        writer.change();
    }
    writer.done
}

impl Writer<'_> {
    fn change(&mut self) {
        let site = &self.run.site;
        let begun_micros = self.run.micros();
        let item = self.chance.below(site.items);
        let several = [item, self.chance.below(site.items), self.chance.below(site.items)];
        let items = if self.chance.one_in(8) { &several[..] } else { &several[..1] };
        let page = self.chance.below(site.pages.len());
        let (manner, answered) = match self.chance.below(100) {
            _ if self.chance.one_in(ALL_ONE_IN) => (4, self.call(&several, &json!({"all": true}))),
            0..45 => (0, self.through(items)),
            45..60 => (1, self.target(page)),
            60..88 => {
                let tags: Vec<String> = items.iter().map(|item| tag(*item)).collect();
                (2, self.call(items, &json!({ "tags": tags })))
            }
            88..94 => (3, self.call(&[item], &json!({ "urls": site.pages_with(item) }))),
            _ => {
                let page = &site.pages[page];
                (3, self.call(&[page.own()], &json!({ "urls": [page.target] })))
            }
        };
        match answered {
            Answered::Yes => {
                self.done.acknowledged[manner] += 1;
                self.done.times.record((self.run.micros() - begun_micros) * 1000);
            }
            Answered::No => self.done.unanswered += 1,
        }
    }

    fn through(&mut self, items: &[usize]) -> Answered {
        let items: Vec<String> = items.iter().map(usize::to_string).collect();
        self.post(&format!("/write?items={}", items.join(",")))
    }

    /// By the page's own target, or from elsewhere with a Location that names it.
    fn target(&mut self, page: usize) -> Answered {
        let target = match self.chance.one_in(2) {
            true => self.run.site.pages[page].target.clone(),
            false => format!("/write?page={page}"),
        };
        self.post(&target)
    }

    fn post(&mut self, target: &str) -> Answered {
        let request = Request::form(target, "text=new");
        let response = match self.visitor.send(&request) {
            Ok(response) => response,
            Err(error) => {
                if error == ClientError::TimedOut {
                    self.run.report_silence(|| format!("POST {target}: {error}"));
                }
                return Answered::No;
            }
        };
        let committed = response.header("x-committed").filter(|_| response.status < 400);
        let Some(committed) = committed else { return Answered::No };
        for pair in committed.split(' ') {
            let Some((cell, version)) = pair.split_once(':') else { return Answered::No };
            let (Ok(cell), Ok(version)) = (cell.parse(), version.parse()) else {
                return Answered::No;
            };
            self.run.site.acknowledge(cell, version);
        }
        Answered::Yes
    }

    /// Commits, then calls until the call is answered.
    fn call(&mut self, cells: &[usize], what: &Value) -> Answered {
        let commit = |cell: &usize| (*cell, self.run.site.commit(*cell));
        let committed: Vec<(usize, u64)> = cells.iter().map(commit).collect();
        let request = Request::new("POST", "/v1/invalidate")
            .header("Content-Type", "application/json")
            .content(what.to_string().as_bytes());
        loop {
            match self.operator.send(&request) {
                Ok(response) if response.status == 200 => break,
                Err(ClientError::TimedOut) => {
                    self.run.report_silence(|| format!("the call {what}"));
                    return Answered::No;
                }
                _ if self.run.is_over() => return Answered::No,
                _ => {
                    self.done.unanswered += 1;
                    self.run.wait_up();
                }
            }
        }
        for (cell, version) in committed {
            self.run.site.acknowledge(cell, version);
        }
        Answered::Yes
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
