//! A writer: changes what pages are made from through one machine after the other, in every kind of publication, and by
//! hand; notes the outcome of each write.
//!
//! A writer sends a burst of writes, and then writes slowly. After every other slow write, and one in ten of a
//! burst, it reads a page that depends on the write, on every machine: before, so that they have it in memory,
//! and once the write is answered in time.
//!
//! | answer | outcome of the write |
//! |---|---|
//! | in time | acknowledged: from now on nobody shows what was before |
//! | late | waits until the machine is known to have published it ([`super::late`]) |
//! | by hand, an entry of the stream | due in the end |
//! | none, to a request that went through | nobody knows |
//! | none, to a call or a purge | it is made again, through another machine: the commit stands |

use super::cause::KEY;
use super::due_versions::{Version, committed};
use super::stand::Stand;
use super::tally::Outcome;
use super::wire::Wire;
use super::{fault::Fault, locked, pause};
use crate::change::{Change, ChangeRecipient, Way};
use crate::publication::{By, Publication, Strength};
use crate::reader::{AnswerCounts, Reader};
use crate::run::HOST;
use crate::site::{Page, tag};
use crate::writer::Rate;
use harness::Chance;
use harness::{Client, ClientError, Deadline, Request, Response};
use serde_json::Value;
use std::time::Duration;

/// How long an answer may take.
const WITHIN: Duration = Duration::from_secs(60);
/// One change in so many is published by hand.
const BY_HAND_ONE_IN: usize = 8;
/// After which share of the writes a page is read, one in so many: of slow ones, and of a burst.
const LOOK_ONE_IN: [usize; 2] = [2, 10];
/// How long a burst and the slow writes after it last, in microseconds.
const POURS: u64 = 250_000;
const RESTS: u64 = 750_000;
/// The longest pause between two slow writes, in microseconds.
const PAUSE_MICROS: usize = 60_000;
/// How long entries that nobody needs are added in one way, at most, in microseconds.
const HUMS_MICROS: usize = 1_500_000;
/// Before a call is made again.
const AGAIN: Duration = Duration::from_millis(10);
/// For how long it is made again after the end of the run.
const LONGER: Duration = Duration::from_secs(20);
/// Adds an entry, and takes all out.
const ADD_AND_TRIM: &str = "redis.call('XADD', KEYS[1], '*', unpack(ARGV)) \
    return redis.call('XTRIM', KEYS[1], 'MAXLEN', 0)";

struct Writer<'a> {
    stand: &'a Stand,
    number: u64,
    chance: Chance,
    readers: Vec<Reader<'a>>,
    visitors: Vec<Client>,
    operators: Vec<Client>,
    wire: Wire,
}

/// Writes until the run is over, as one of `writers`; returns the answers to its reads, counted.
pub fn write(stand: &Stand, number: usize, writers: usize, rate: Rate) -> AnswerCounts {
    let machines = 0..stand.machines.len();
    let reader = |run| Reader::new(run, 1 << 14 | number);
    let visitor = |machine| Client::new(stand.address(machine)).host(HOST).within(WITHIN);
    let operator = |machine| Client::new(stand.control(machine)).within(WITHIN);
    let mut writer = Writer {
        stand,
        number: number as u64,
        chance: Chance::new(stand.runs[0].seed, 1 << 24 | number as u64),
        readers: stand.runs.iter().map(reader).collect(),
        visitors: machines.clone().map(visitor).collect(),
        operators: machines.map(operator).collect(),
        wire: Wire::new(&stand.socket),
    };
    for turn in 0_u64.. {
        if let Rate::PerSecond(rate) = rate {
            let nth = turn * writers as u64 + number as u64 + 1;
            stand.runs[0].wait_until(nth * 1_000_000 / u64::from(rate));
        } else {
            writer.rest();
        }
        if stand.is_over() {
            break;
        }
        writer.change();
    }
    let mut seen = AnswerCounts::default();
    writer.readers.iter().for_each(|reader| seen.add(reader.seen()));
    seen
}

/// Adds entries to the stream, until the run is over, that name nothing any page is made from: now and then as
/// many as go, as somebody does who imports something. Every machine has to read them.
pub fn hum(stand: &Stand, seed: u64) {
    let (mut chance, mut wire) = (Chance::new(seed, 1 << 41), Wire::new(&stand.socket));
    while !stand.is_over() {
        let pours = chance.one_in(2);
        let until = Deadline::after(Duration::from_micros(chance.below(HUMS_MICROS) as u64));
        while !until.passed() && !stand.is_over() {
            let name = format!("other:{}", chance.below(1_000_000));
            let is_added = wire.ask(&["XADD", KEY, "*", "tag", &name, "from", "import"]).is_ok();
            pause(if is_added && pours { Duration::ZERO } else { AGAIN });
        }
    }
}

impl Writer<'_> {
    /// Each pours at another time.
    fn pours(&self) -> bool {
        (self.stand.tally.micros() + self.number * POURS) % (POURS + RESTS) < POURS
    }

    /// Between two writes.
    fn rest(&mut self) {
        if !self.pours() {
            pause(Duration::from_micros(self.chance.below(PAUSE_MICROS) as u64));
        }
    }

    fn change(&mut self) {
        let due = &self.stand.due;
        let by = match self.chance.below(60) {
            0..30 => By::Mixed,
            30..40 => By::Purge,
            40..50 => By::Keys,
            50..59 => By::Api,
            _ => By::Ban,
        };
        let publication = Publication::draw(by, &mut self.chance);
        let Change { cells, way } = Change::draw(&due.site, publication, &mut self.chance);
        let shows = |page: &&Page| page.reads.contains(&cells[0]);
        let pages: Vec<&Page> = due.site.pages.iter().filter(shows).collect();
        let page = pages.get(self.chance.below(pages.len())).copied();
        let page = page.filter(|_| self.chance.one_in(LOOK_ONE_IN[usize::from(self.pours())]));
        self.look(page);
        let machine = self.machine();
        if self.chance.one_in(4) {
            self.visitors[machine].close();
        }
        let outcome = match way {
            _ if self.chance.one_in(BY_HAND_ONE_IN) => self.by_hand(&cells),
            Way::Through(request) => self.through(machine, &request),
            Way::Tell(whom, _, requests) => self.tell(machine, &cells, whom, &requests),
        };
        self.stand.tally.wrote(machine, outcome);
        if outcome == Outcome::InTime {
            self.look(page);
        }
    }

    /// Asks every machine for a page.
    fn look(&mut self, page: Option<&Page>) {
        let Some(page) = page else { return };
        let first = self.chance.below(self.readers.len());
        for at in 0..self.readers.len() {
            let machine = (first + at) % self.readers.len();
            if !self.stand.runs[machine].is_down() {
                self.readers[machine].ask_for(page);
            }
        }
    }

    /// A machine that is there, if there is one.
    fn machine(&mut self) -> usize {
        let first = self.chance.below(self.visitors.len());
        let all = (0..self.visitors.len()).map(|at| (first + at) % self.visitors.len());
        let mut up = all.filter(|machine| !self.stand.runs[*machine].is_down());
        up.next().unwrap_or(first)
    }

    /// A request that changes something at the origin, which says so.
    fn through(&mut self, machine: usize, request: &Request) -> Outcome {
        let life = locked(&self.stand.machines[machine].late).life();
        let response = match self.visitors[machine].send(request) {
            Ok(response) => response,
            Err(error) => {
                self.silence(machine, &error, request);
                return Outcome::Unanswered;
            }
        };
        let versions = response.header("x-committed").filter(|_| response.status < 400);
        let Some(versions) = versions.and_then(committed) else { return Outcome::Unanswered };
        if is_late(&response) {
            self.late(machine, life, &versions)
        } else {
            self.acknowledge(&versions)
        }
    }

    /// Commits, then sends each request until it is answered.
    fn tell(
        &mut self,
        machine: usize,
        cells: &[usize],
        whom: ChangeRecipient,
        all: &[Request],
    ) -> Outcome {
        let Some(versions) = self.commit(cells) else { return Outcome::Unanswered };
        let mut late: Vec<(usize, u64)> = Vec::new();
        for request in all {
            let Some((machine, life, response)) = self.until_answered(machine, whom, request)
            else {
                return Outcome::Unanswered;
            };
            if is_late(&response) && !late.contains(&(machine, life)) {
                late.push((machine, life));
            }
        }
        match late.as_slice() {
            [] => self.acknowledge(&versions),
            [(machine, life)] => self.late(*machine, *life, &versions),
            // Late by several machines: each may lose it.
            _ => Outcome::Unanswered,
        }
    }

    /// The answer, and by which machine, in which of its lives.
    fn until_answered(
        &mut self,
        first: usize,
        whom: ChangeRecipient,
        request: &Request,
    ) -> Option<(usize, u64, Response)> {
        let (mut machine, mut longer) = (first, None);
        loop {
            let life = locked(&self.stand.machines[machine].late).life();
            let client = match whom {
                ChangeRecipient::Control => &mut self.operators[machine],
                ChangeRecipient::Front => &mut self.visitors[machine],
            };
            match client.send(request) {
                Ok(response) if response.status == 200 => return Some((machine, life, response)),
                Ok(_) => {}
                Err(error) => self.silence(machine, &error, request),
            }
            if self.stand.is_over()
                && longer.get_or_insert_with(|| Deadline::after(LONGER)).passed()
            {
                return None;
            }
            pause(AGAIN);
            machine = self.machine();
        }
    }

    /// Commits, and adds an entry to the stream until the server has it.
    fn by_hand(&mut self, cells: &[usize]) -> Outcome {
        let Some(versions) = self.commit(cells) else { return Outcome::Unanswered };
        let site = &self.stand.due.site;
        let fields = cells.iter().flat_map(|cell| match cell.checked_sub(site.items) {
            None => ["tag".to_owned(), tag(*cell)],
            Some(page) => ["url".to_owned(), site.pages[page].target.clone()],
        });
        let fields: Vec<String> = fields.collect();
        let fields = fields.iter().map(String::as_str);
        let trims = self.stand.tally.now() == Some(Fault::Trim) && self.chance.one_in(2);
        let start: &[&str] =
            if trims { &["EVAL", ADD_AND_TRIM, "1", KEY] } else { &["XADD", KEY, "*"] };
        let words: Vec<&str> = start.iter().copied().chain(fields).collect();
        let mut longer = None;
        while self.wire.ask(&words).is_err() {
            if self.stand.is_over()
                && longer.get_or_insert_with(|| Deadline::after(LONGER)).passed()
            {
                return Outcome::Unanswered;
            }
            pause(AGAIN);
        }
        self.stand.due.owe(&versions);
        Outcome::ByHand
    }

    fn commit(&self, cells: &[usize]) -> Option<Vec<Version>> {
        match self.stand.due.commit(cells) {
            Ok(versions) => Some(versions),
            Err(error) => {
                self.stand.fail(format!("the truth cannot be written: {error}"));
                None
            }
        }
    }

    fn acknowledge(&self, versions: &[Version]) -> Outcome {
        let at_micros = self.stand.tally.micros();
        for (cell, version) in versions {
            self.stand.due.site.acknowledge(*cell, *version, Strength::Hard, at_micros);
        }
        Outcome::InTime
    }

    fn late(&self, machine: usize, life: u64, versions: &[Version]) -> Outcome {
        locked(&self.stand.machines[machine].late).written(life, versions);
        Outcome::Late
    }

    /// Reports a request that got neither an answer nor the end of its connection.
    fn silence(&self, machine: usize, error: &ClientError, request: &Request) {
        if *error == ClientError::TimedOut {
            self.stand.runs[machine].report_silence(|| format!("{request:?}: {error}"));
        }
    }
}

/// Whether the answer says that some machine may not know of it yet.
fn is_late(response: &Response) -> bool {
    let says = |value: &str| value.contains("changes-late");
    if response.all("cache-status").any(says) {
        return true;
    }
    let answer: Result<Value, _> = serde_json::from_slice(&response.content);
    answer.is_ok_and(|answer| answer["late"] == true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_that_it_is_late_in_two_ways() {
        let answer = |status: &str, content: &str| {
            is_late(&Response::new(200, &[("cache-status", status)], content.as_bytes()))
        };
        assert!(answer("pagewell; fwd=method; detail=changes-late", "written"));
        assert!(answer("pagewell", "{\"dropped\":1,\"late\":true}"));
        assert!(!answer("pagewell; fwd=method", "{\"dropped\":1,\"late\":false}"));
        assert!(!answer("pagewell; fwd=method", "written"));
    }
}
