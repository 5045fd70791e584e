//! The answers to honest visitors during one fault: how often they were served, how fast, and the names of the
//! failures. A visitor can see a failure (an error, a connection that ends, silence), but not that an answer is
//! wrong: that must never happen.

use harness::{ClientError, Histogram};
use std::collections::BTreeMap;
use std::time::Duration;

/// So many wrong answers are kept to be shown.
const WRONG_SHOWN: usize = 8;

/// The kinds of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// A page that may come from memory.
    Page,
    /// What PHP has to be asked for: a visitor's own page, or one that is never stored.
    Rendered,
    /// A write.
    Write,
}

/// The answers during a fault, counted.
#[derive(Debug, Default)]
pub struct Tally {
    /// How often the fault was put upon Pagewell, by rounds.
    pub rounds: u64,
    /// How many answers were right.
    pub answers: u64,
    /// Of them, from memory.
    pub hits: u64,
    /// How long pages took, and what PHP was asked for, and writes.
    pub pages: Histogram,
    /// The times of answers that PHP rendered.
    pub rendered: Histogram,
    /// How often visitors were not served, by its name.
    pub failures: BTreeMap<String, u64>,
    /// How often an answer was wrong.
    pub wrong: u64,
    /// The first of them.
    pub wrong_shown: Vec<String>,
    /// How often each action of the fault was done, by its name.
    pub done: BTreeMap<&'static str, u64>,
    /// The longest time from a fault's end until an uncached page was there again, in milliseconds.
    pub recovered_ms: u64,
}

impl Tally {
    /// Counts a right answer and its time.
    pub fn right(&mut self, asked: RequestKind, is_hit: bool, took: Duration) {
        self.answers += 1;
        self.hits += u64::from(is_hit);
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        match asked {
            RequestKind::Page => self.pages.record(nanos),
            RequestKind::Rendered | RequestKind::Write => self.rendered.record(nanos),
        }
    }

    /// No answer of use.
    pub fn failed(&mut self, name: String) {
        *self.failures.entry(name).or_default() += 1;
    }

    /// An answer that should never have been given.
    pub fn wrong(&mut self, what: String) {
        self.wrong += 1;
        if self.wrong_shown.len() < WRONG_SHOWN {
            self.wrong_shown.push(what);
        }
    }

    /// Something was done once.
    pub fn did(&mut self, name: &'static str) {
        self.did_many(name, 1);
    }

    /// The same so many times.
    pub fn did_many(&mut self, name: &'static str, times: u64) {
        *self.done.entry(name).or_default() += times;
    }

    /// Visitors who were not served.
    pub fn failed_count(&self) -> u64 {
        self.failures.values().sum()
    }
}

/// The name of a failure that a client has noticed; `None` for what no server may send.
pub fn name_of(error: &ClientError) -> Option<&'static str> {
    match error {
        ClientError::Connect(_) => Some("no connection"),
        ClientError::TimedOut => Some("no answer in time"),
        ClientError::Closed { .. } | ClientError::Reset => Some("cut off"),
        ClientError::TooLarge { .. } | ClientError::Malformed(_) => None,
        ClientError::Io(_) => Some("error of the connection"),
    }
}
