//! A writer: changes what pages are made from, in the ways of the run's mode ([`super::manner`]), and
//! publishes each change as acknowledged once it has the answer.
//!
//! A write that goes through without a good answer is not acknowledged, whatever the origin has done.
//! A call or a request to purge without one is made again until it has: the commit stands.

use super::chance::Chance;
use super::manner::{Manner, Strength};
use super::run::{HOST, Run};
use super::site::tag;
use harness::{Client, ClientError, Histogram, Request};
use serde_json::{Value, json};
use std::time::Duration;

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
    /// Changes that were acknowledged, by manner, in the order of [`Manner::ALL`].
    pub acknowledged: [u64; Manner::ALL.len()],
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
        let named = Manner::ALL.into_iter().zip(self.acknowledged);
        named.filter(|(_, count)| *count > 0).map(|(manner, count)| (manner.as_str(), count))
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answered {
    Yes,
    No,
}

/// Who is told of a change.
#[derive(Debug, Clone, Copy)]
enum Told {
    /// The control interface.
    Control,
    /// The address where visitors are served.
    Front,
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
        let begun_micros = self.run.micros();
        let manner = Manner::draw(self.run.site.by, &mut self.chance);
        match self.change_by(manner) {
            Answered::Yes => {
                self.done.acknowledged[manner as usize] += 1;
                self.done.times.record((self.run.micros() - begun_micros) * 1000);
            }
            Answered::No => self.done.unanswered += 1,
        }
    }

    fn change_by(&mut self, manner: Manner) -> Answered {
        let site = &self.run.site;
        let item = self.chance.below(site.items);
        let several = [item, self.chance.below(site.items), self.chance.below(site.items)];
        let items = if self.chance.one_in(8) { &several[..] } else { &several[..1] };
        let tags: Vec<String> = items.iter().map(|item| tag(*item)).collect();
        let page = &site.pages[self.chance.below(site.pages.len())];
        let own = [page.own()];
        let path = page.target.split('?').next().unwrap_or_default();
        let purge = |target: &str| Request::new("PURGE", target);
        match manner {
            Manner::Through | Manner::Get => self.through(manner, items),
            Manner::Target => self.target(page.number),
            Manner::Tags => self.call(items, json!({ "tags": tags })),
            Manner::HardTags => {
                let call = api(&json!({ "tags": tags }));
                self.tell(items, Strength::Hard, Told::Control, &[call])
            }
            Manner::Urls => self.call(&[item], json!({ "urls": site.pages_with(item) })),
            Manner::OwnUrl => self.call(&own, json!({ "urls": [page.target] })),
            Manner::Prefix => self.call(&own, json!({ "prefixes": [path] })),
            Manner::All => self.call(&several, json!({ "all": true })),
            Manner::PurgeUrls => {
                let purges: Vec<Request> = site.pages_with(item).into_iter().map(purge).collect();
                self.purge(&[item], &purges)
            }
            Manner::PurgeOwn => self.purge(&own, &[purge(&page.target)]),
            Manner::PurgeTags => {
                self.purge(items, &[purge("/").header("Surrogate-Key", &tags.join(" "))])
            }
            Manner::PurgeAll => self.purge(&several, &[purge("/.*")]),
            Manner::BanTags => {
                let request = by_expression(&tags, self.chance.one_in(2));
                self.purge(items, &[request])
            }
            Manner::Keys => {
                let keys = Request::new("PURGEKEYS", "/").header("xkey-purge", &tags.join(" "));
                self.purge(items, &[keys])
            }
            Manner::TagsMethod => {
                let tags = Request::new("PURGETAGS", "/").header("X-Cache-Tags", &tags.join(","));
                self.purge(items, &[tags])
            }
            Manner::BanUrl => {
                let pattern = format!("^{path}(\\?|$)");
                self.purge(&own, &[Request::new("BAN", "/").header("X-Url", &pattern)])
            }
        }
    }

    /// A POST, or a GET as scheduled tasks send it, whose response names the items.
    fn through(&mut self, manner: Manner, items: &[usize]) -> Answered {
        let items: Vec<String> = items.iter().map(usize::to_string).collect();
        let target = format!("/write?items={}", items.join(","));
        if manner == Manner::Get {
            // Two that change the same at once are two.
            let draw = self.chance.below(usize::MAX);
            return self.write(&Request::get(&format!("{target}&draw={draw}")));
        }
        self.write(&Request::form(&target, "text=new"))
    }

    /// By the page's own target, or from elsewhere with a Location that names it.
    fn target(&mut self, page: usize) -> Answered {
        let target = match self.chance.one_in(2) {
            true => self.run.site.pages[page].target.clone(),
            false => format!("/write?page={page}"),
        };
        self.write(&Request::form(&target, "text=new"))
    }

    fn write(&mut self, request: &Request) -> Answered {
        let response = match self.visitor.send(request) {
            Ok(response) => response,
            Err(error) => {
                if error == ClientError::TimedOut {
                    self.run.report_silence(|| format!("{request:?}: {error}"));
                }
                return Answered::No;
            }
        };
        let committed = response.header("x-committed").filter(|_| response.status < 400);
        let Some(committed) = committed else { return Answered::No };
        let at_micros = self.run.micros();
        for pair in committed.split(' ') {
            let Some((cell, version)) = pair.split_once(':') else { return Answered::No };
            let (Ok(cell), Ok(version)) = (cell.parse(), version.parse()) else {
                return Answered::No;
            };
            self.run.site.acknowledge(cell, version, Strength::Hard, at_micros);
        }
        Answered::Yes
    }

    /// A call of the control interface, as strong as the mode has it.
    fn call(&mut self, cells: &[usize], mut what: Value) -> Answered {
        let strength = match self.run.site.by {
            super::By::Soft => {
                what["soft"] = Value::Bool(true);
                Strength::Soft
            }
            _ => Strength::Hard,
        };
        self.tell(cells, strength, Told::Control, &[api(&what)])
    }

    /// Requests to where visitors are served.
    fn purge(&mut self, cells: &[usize], requests: &[Request]) -> Answered {
        self.tell(cells, Strength::Hard, Told::Front, requests)
    }

    /// Commits, then sends each request until it is answered.
    fn tell(
        &mut self,
        cells: &[usize],
        strength: Strength,
        whom: Told,
        requests: &[Request],
    ) -> Answered {
        let commit = |cell: &usize| (*cell, self.run.site.commit(*cell));
        let committed: Vec<(usize, u64)> = cells.iter().map(commit).collect();
        for request in requests {
            if self.until_answered(whom, request) == Answered::No {
                return Answered::No;
            }
        }
        let at_micros = self.run.micros();
        for (cell, version) in committed {
            self.run.site.acknowledge(cell, version, strength, at_micros);
        }
        Answered::Yes
    }

    fn until_answered(&mut self, whom: Told, request: &Request) -> Answered {
        loop {
            let client = match whom {
                Told::Control => &mut self.operator,
                Told::Front => &mut self.visitor,
            };
            match client.send(request) {
                Ok(response) if response.status == 200 => return Answered::Yes,
                Ok(response) => self.run.keep("refused", || {
                    format!("{request:?}\n    {} {}", response.status, response.text())
                }),
                Err(ClientError::TimedOut) => {
                    self.run.report_silence(|| format!("{request:?}"));
                    return Answered::No;
                }
                Err(_) => {}
            }
            if self.run.is_over() {
                return Answered::No;
            }
            self.done.unanswered += 1;
            self.run.wait_up();
        }
    }
}

fn api(what: &Value) -> Request {
    let call = Request::new("POST", "/v1/invalidate").header("Content-Type", "application/json");
    call.content(what.to_string().as_bytes())
}

/// In the words of Drupal's purger, or of FOSHttpCache's.
fn by_expression(tags: &[String], as_drupal: bool) -> Request {
    let request = Request::new("BAN", "/");
    if as_drupal {
        return request.header("Cache-Tags", &tags.join("|"));
    }
    let escaped: Vec<String> = tags.iter().map(|tag| tag.replace(':', "\\:")).collect();
    request.header("X-Cache-Tags", &format!("(^|,)({})(,|$)", escaped.join("|")))
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

    #[test]
    fn tags_are_banned_as_programs_do() {
        let tags = [String::from("item:1"), String::from("item:2")];
        let drupal = String::from_utf8(by_expression(&tags, true).to_bytes(HOST)).expect("text");
        assert!(drupal.contains("Cache-Tags: item:1|item:2\r\n"));
        let fos = String::from_utf8(by_expression(&tags, false).to_bytes(HOST)).expect("text");
        assert!(fos.contains("X-Cache-Tags: (^|,)(item\\:1|item\\:2)(,|$)\r\n"));
    }
}
