//! The state shared by the origin's threads and the engine: the rules and which were used, the holds, the
//! requests received, the connections. One mutex protects all of it; the condition variable is notified of each
//! change.
//!
//! An epoch is the time between two `origin down` steps: a thread of an older epoch ends.

use crate::blanks::Blanks;
use crate::check;
use crate::failure::Mismatch;
use crate::story::{Answer, BodyTest, FieldTest, RequestPattern, Rule};
use crate::transcript::{Transcript, shorten};
use harness::Deadline;
use harness::wire::MessageHead;
use std::collections::{HashMap, HashSet};
use std::net::TcpStream;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The maximum number of requests that are stored; further ones are only counted.
const SEEN_MAX: usize = 4096;

/// A request received by the origin.
pub(super) struct SeenRequest {
    method: String,
    target: String,
    head: MessageHead,
    body: Vec<u8>,
}

/// The state of the script; see the top of this file.
pub(crate) struct Script {
    rules: Vec<(Rule, bool)>,
    seen: Vec<SeenRequest>,
    /// Requests without a rule, as text.
    pub(super) unexpected: Vec<String>,
    open_gates: HashSet<String>,
    held: HashMap<String, usize>,
    streams: Vec<TcpStream>,
    epoch: u64,
    is_up: bool,
    /// The placeholder values for answers.
    pub(super) blanks: Blanks,
}

/// The script and its lock.
pub(crate) struct ScriptState {
    script: Mutex<Script>,
    /// Notified whenever the script changes.
    pub(super) changed: Condvar,
    /// The transcript, to which the origin writes the requests it receives.
    pub(super) transcript: Transcript,
}

impl ScriptState {
    pub(super) fn new(script: Script, transcript: Transcript) -> ScriptState {
        ScriptState { script: Mutex::new(script), changed: Condvar::new(), transcript }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `judge` succeeds. After the deadline, returns its last error.
    pub(super) fn wait_until(
        &self,
        until: Deadline,
        judge: impl Fn(&Script) -> Result<(), Mismatch>,
    ) -> Result<(), Mismatch> {
        let mut script = self.lock();
        loop {
            let judged = judge(&script);
            let (Err(_), Some(left)) = (&judged, until.left()) else { return judged };
            let waited = self.changed.wait_timeout(script, left);
            script = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits at a hold until it is released; `false` if the epoch ended first.
    pub(super) fn wait_at(&self, gate: &str, epoch: u64) -> bool {
        let mut script = self.lock();
        *script.held.entry(gate.to_owned()).or_default() += 1;
        self.changed.notify_all();
        while script.is_current(epoch) && !script.open_gates.contains(gate) {
            script = self.changed.wait(script).unwrap_or_else(PoisonError::into_inner);
        }
        if let Some(held) = script.held.get_mut(gate) {
            *held -= 1;
        }
        script.is_current(epoch)
    }

    /// Waits until the epoch ends.
    pub(super) fn wait_for_end(&self, epoch: u64) {
        let mut script = self.lock();
        while script.is_current(epoch) {
            script = self.changed.wait(script).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Script {
    pub(super) fn new(blanks: Blanks) -> Script {
        Script {
            rules: Vec::new(),
            seen: Vec::new(),
            unexpected: Vec::new(),
            open_gates: HashSet::new(),
            held: HashMap::new(),
            streams: Vec::new(),
            epoch: 0,
            is_up: false,
            blanks,
        }
    }

    pub(super) fn add_rules(&mut self, rules: &[Rule]) {
        self.rules.extend(rules.iter().map(|rule| (rule.clone(), false)));
    }

    pub(super) fn begin_epoch(&mut self) -> u64 {
        self.epoch += 1;
        self.is_up = true;
        self.epoch
    }

    /// Ends the epoch, and returns its open connections.
    pub(super) fn end_epoch(&mut self) -> Vec<TcpStream> {
        self.is_up = false;
        std::mem::take(&mut self.streams)
    }

    fn is_current(&self, epoch: u64) -> bool {
        self.is_up && self.epoch == epoch
    }

    /// Registers a connection; `false` if its epoch is over.
    pub(super) fn add_stream(&mut self, epoch: u64, stream: TcpStream) -> bool {
        if !self.is_current(epoch) {
            return false;
        }
        self.streams.retain(|stream| stream.peer_addr().is_ok());
        self.streams.push(stream);
        true
    }

    pub(super) fn open_gate(&mut self, gate: &str) {
        self.open_gates.insert(gate.to_owned());
    }

    pub(super) fn held(&self, gate: &str) -> usize {
        self.held.get(gate).copied().unwrap_or(0)
    }

    /// Records a request and selects its answer, with the line of the rule: the first matching rule that was
    /// not used, otherwise the last matching rule. HEAD uses the rules of GET if it has none.
    pub(super) fn take(&mut self, head: MessageHead, body: Vec<u8>) -> Option<(usize, Answer)> {
        let mut words = head.first.split(' ').map(str::to_owned);
        let method = words.next().unwrap_or_default();
        let target = words.next().unwrap_or_default();
        let fits = |rule: &Rule, method: &str| {
            covers(&rule.which, method, &target)
                && rule.conditions.iter().all(|test| {
                    check::field(test, &head.fields, &self.blanks).is_ok_and(|keep| keep.is_none())
                })
        };
        let pick = |method: &str| {
            let fitting = || (0..self.rules.len()).filter(|&i| fits(&self.rules[i].0, method));
            fitting().find(|&i| !self.rules[i].1).or_else(|| fitting().next_back())
        };
        let picked = match (pick(&method), method.as_str()) {
            (None, "HEAD") => pick("GET"),
            (picked, _) => picked,
        };
        if picked.is_none() {
            self.unexpected.push(format!("{method} {target}"));
        }
        if self.seen.len() < SEEN_MAX {
            self.seen.push(SeenRequest { method, target, head, body });
        }
        let (rule, used) = self.rules.get_mut(picked?)?;
        *used = true;
        Some((rule.line, rule.answer.clone()))
    }

    pub(super) fn count(&self, only: Option<&RequestPattern>) -> usize {
        self.matching(only).count()
    }

    fn matching<'s>(
        &'s self,
        only: Option<&'s RequestPattern>,
    ) -> impl Iterator<Item = &'s SeenRequest> {
        let fits =
            move |seen: &&SeenRequest| only.is_none_or(|w| covers(w, &seen.method, &seen.target));
        self.seen.iter().filter(fits)
    }

    /// The requests received, in one line.
    pub(super) fn describe_seen(&self) -> String {
        let all: Vec<_> =
            self.seen.iter().map(|seen| format!("{} {}", seen.method, seen.target)).collect();
        format!("it saw: {}", shorten(all.join(", ").as_bytes(), 300))
    }

    pub(super) fn judge_last(
        &self,
        only: Option<&RequestPattern>,
        fields: &[FieldTest],
        body: Option<&BodyTest>,
    ) -> Vec<Mismatch> {
        let Some(last) = self.matching(only).last() else {
            let what = only.map_or("a request".into(), describe_which);
            return vec![Mismatch::new(format!("{what} at the origin"), self.describe_seen())];
        };
        let judge = |test| check::field(test, &last.head.fields, &self.blanks).err();
        let mut wrong: Vec<Mismatch> = fields.iter().filter_map(judge).collect();
        wrong.extend(body.and_then(|test| check::body(test, &last.body, &self.blanks).err()));
        wrong
    }
}

/// A [`RequestPattern`] as written in a scenario.
pub(super) fn describe_which(which: &RequestPattern) -> String {
    format!("{} {}", which.method.as_deref().unwrap_or("*"), which.pattern)
}

fn covers(which: &RequestPattern, method: &str, target: &str) -> bool {
    which.method.as_deref().is_none_or(|wanted| wanted == method)
        && glob(which.pattern.as_bytes(), target.as_bytes())
}

/// Whether `text` matches `pattern`, in which `*` matches any text. On a mismatch only the last star is tried
/// again, so that the work is bounded by the product of the lengths.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(byte) if *byte == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    p = at + 1;
                    t = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, text) in
            [("*", "/a"), ("/a*", "/a"), ("/a*c", "/abcbc"), ("/a", "/a"), ("**", "")]
        {
            assert!(glob(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
        for (pattern, text) in [("/a", "/ab"), ("/a*c", "/ab"), ("", "/"), ("/a*", "/b")] {
            assert!(!glob(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
    }
}
