//! The steps, one match arm each, and the requests of the clients.
//!
//! A step either acts or checks; a request does both. Every wait of a step has the scene's timeout. A client
//! belongs to the scene, except while one of its requests is in flight: then it belongs to the thread of that
//! request, which returns it with the answer.

use super::{PendingAnswer, Scene, describe, judge_trouble};
use crate::blanks;
use crate::check;
use crate::deadline::LOOK_EVERY;
use crate::failure::Mismatch;
use crate::request::Request;
use crate::story::{Action, Expectation, Message, Text};
use crate::transcript::shorten;
use harness::wire::MessageFields;
use harness::{Client, ClientError, Deadline, Response};
use std::net::Shutdown;
use std::sync::mpsc;

/// The maximum duration of a request sent with `&`, in units of the wait timeout. Each wait between its sending
/// and its collection has a timeout of its own.
const UNDER_WAY_WAITS: u32 = 12;

type CheckResult = Result<(), Vec<Mismatch>>;

impl Scene {
    /// Executes one action.
    pub(super) fn act(&mut self, action: &Action) -> CheckResult {
        match action {
            Action::Rules(rules) => self.origin.add_rules(rules),
            Action::Ask { client, message, expect } => return self.ask(client, message, expect),
            Action::Send { client, message } => return self.send(client, message),
            Action::Collect { client, expect } => return self.collect(client, expect),
            Action::Repeat { client, message, expect } => {
                return self.repeat(client, message, expect);
            }
            Action::More { client, expect } => return self.more(client, expect),
            Action::Finish { client } => self.finish(client),
            Action::Leave { client } => self.leave(client),
            Action::Clock(by) => {
                self.subject.advance(*by);
                self.advanced += *by;
            }
            Action::OriginDown => self.origin.down(),
            Action::OriginUp => {
                let up = self.origin.up();
                return up.map_err(|e| vec![Mismatch::new("the origin up", e.to_string())]);
            }
            Action::AwaitHold { gate, count } => {
                return one(self.origin.await_hold(gate, *count, self.deadline()));
            }
            Action::Release { gate } => self.origin.release(gate),
            Action::OriginSaw { count, only } => {
                return one(self.origin.saw(*count, only.as_ref(), self.deadline()));
            }
            Action::OriginLast { only, fields, body } => {
                let wrong = self.origin.last(only.as_ref(), fields, body.as_ref());
                return if wrong.is_empty() { Ok(()) } else { Err(wrong) };
            }
            Action::Stat { name, comparison, number } => {
                return one(self.stat(name, *comparison, *number));
            }
            Action::Invalidate { what, count } => return one(self.invalidate(what, *count)),
            Action::Admin { message, expect } => return self.admin(message, expect),
        }
        Ok(())
    }

    /// Replaces the placeholders of a text.
    pub(super) fn fill(&self, text: &Text) -> Result<Vec<u8>, Vec<Mismatch>> {
        let filled = self.origin.with_blanks(|blanks| blanks::fill(&text.0, blanks));
        filled.map_err(|why| vec![Mismatch::new("text that can be filled in", why)])
    }

    /// Encodes a request.
    pub(super) fn request(&self, message: &Message) -> Result<Request, Vec<Mismatch>> {
        let (method, target, fields, body) = match message {
            Message::Raw(text) => return Ok(Request::raw(self.fill(text)?)),
            Message::Http { method, target, fields, body } => (method, target, fields, body),
        };
        let mut lines = MessageFields::new();
        for (name, value) in fields {
            lines.push((name.clone(), self.fill(value)?));
        }
        let body = body.as_ref().map(|body| self.fill(body)).transpose()?;
        Ok(Request::http(method, &self.fill(target)?, lines, body))
    }

    fn client(&mut self, name: &str) -> Client {
        let address = self.subject.address();
        self.clients.remove(name).unwrap_or_else(|| Client::new(address))
    }

    fn ask(&mut self, name: &str, message: &Message, expect: &Expectation) -> CheckResult {
        let request = self.request(message)?;
        let explained = self.explanation(message);
        let mut client = self.client(name);
        let deadline = self.deadline();
        let answer = ask(&mut client, &request, deadline);
        self.transcript.add(describe(&answer));
        let as_explained = match (&explained, &answer) {
            (Some(explained), Ok(response)) => explained.judge(response),
            _ => Ok(()),
        };
        let judged = self.judge(&mut client, answer, expect);
        self.clients.insert(name.to_owned(), client);
        judged?;
        one(as_explained)
    }

    fn more(&mut self, name: &str, expect: &Expectation) -> CheckResult {
        let mut client = self.client(name);
        let answer = client.receive(self.deadline());
        self.transcript.add(describe(&answer));
        let judged = self.judge(&mut client, answer, expect);
        self.clients.insert(name.to_owned(), client);
        judged
    }

    /// Checks an answer, saves its values, and records the end of the connection.
    pub(super) fn judge(
        &mut self,
        client: &mut Client,
        answer: Result<Response, ClientError>,
        expect: &Expectation,
    ) -> CheckResult {
        let response = match answer {
            Ok(response) => self.with_own_names(response),
            Err(trouble) => return judge_trouble(expect, &trouble),
        };
        let slack = self.slack_seconds();
        let mut wrong = Vec::new();
        self.origin.with_blanks(|blanks| match check::response(expect, &response, blanks, slack) {
            Ok(kept) => blanks.kept.extend(kept),
            Err(found) => wrong = found,
        });
        if !wrong.is_empty() {
            for (name, value) in &response.headers {
                self.transcript.add(format!("    {name}: {}", shorten(value, 200)));
            }
        }
        if expect.closed {
            let closed = client.await_close(self.deadline());
            wrong.extend(closed.err().map(|why| Mismatch::new("the connection closed", why)));
        } else if response.ends_connection {
            client.close();
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    /// Sends a request on a separate thread, and returns when it has been written.
    fn send(&mut self, name: &str, message: &Message) -> CheckResult {
        let request = self.request(message)?;
        let mut client = self.client(name);
        let sent = client.write(&request.bytes, request.is_head, self.deadline());
        sent.map_err(|why| vec![Mismatch::new("a request that can be sent", why.to_string())])?;
        let handle = client.handle();
        let (report, answer) = mpsc::channel();
        let until = Deadline::after(self.wait * UNDER_WAY_WAITS);
        let thread = std::thread::spawn(move || {
            let read = client.receive(until);
            // The scenario may have ended without collecting the answer.
            let _ = report.send((client, read));
        });
        self.under_way.insert(name.to_owned(), PendingAnswer { thread, answer, handle });
        Ok(())
    }

    fn collect(&mut self, name: &str, expect: &Expectation) -> CheckResult {
        let Some(under_way) = self.under_way.get(name) else {
            return Err(vec![Mismatch::new("a request under way", format!("none of {name}"))]);
        };
        let Ok((mut client, answer)) = under_way.answer.recv_timeout(self.wait) else {
            let got = format!("none came to {name} within {:?}", self.wait);
            return Err(vec![Mismatch::new("an answer", got)]);
        };
        self.under_way.remove(name);
        self.transcript.add(describe(&answer));
        let judged = self.judge(&mut client, answer, expect);
        self.clients.insert(name.to_owned(), client);
        judged
    }

    /// Repeats a request until the answer is as expected. After the timeout, returns the differences of the
    /// last answer.
    fn repeat(&mut self, name: &str, message: &Message, expect: &Expectation) -> CheckResult {
        let mut last = Vec::new();
        let until = self.deadline();
        let found = until.poll(LOOK_EVERY, || match self.ask(name, message, expect) {
            Ok(()) => Some(()),
            Err(wrong) => {
                last = wrong;
                None
            }
        });
        found.ok_or(last)
    }

    fn finish(&self, name: &str) {
        let handle = self.under_way.get(name).and_then(|under_way| under_way.handle.as_ref());
        if let Some(handle) = handle {
            let _ = handle.shutdown(Shutdown::Write);
        }
    }

    fn leave(&mut self, name: &str) {
        if let Some(under_way) = self.under_way.remove(name) {
            if let Some(handle) = &under_way.handle {
                let _ = handle.shutdown(Shutdown::Both);
            }
            let _ = under_way.thread.join();
        }
        if let Some(mut client) = self.clients.remove(name) {
            client.close();
        }
    }
}

/// Sends a request and reads the answer.
pub(super) fn ask(
    client: &mut Client,
    request: &Request,
    deadline: Deadline,
) -> Result<Response, ClientError> {
    client.write(&request.bytes, request.is_head, deadline)?;
    client.receive(deadline)
}

fn one(judged: Result<(), Mismatch>) -> CheckResult {
    judged.map_err(|wrong| vec![wrong])
}
