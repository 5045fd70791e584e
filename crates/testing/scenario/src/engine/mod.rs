//! Runs one scenario: starts the origin and the subject, executes each step, checks the answers, and stops
//! everything, in this order and whatever happens.
//!
//! One thread executes the steps. Each request sent with `&` has a thread of its own until its answer is
//! collected. At the end the clients disconnect, the holds are released, and the subject and then the origin
//! are stopped.

mod control;
mod explain;
mod play;

use crate::check;
use crate::deadline::{WAIT, machine_now_ms};
use crate::failure::{Failure, Mismatch};
use crate::origin::Origin;
use crate::story::{ContentEnd, Expectation, Step, Story};
use crate::transcript::{Transcript, shorten};
use crate::{Config, StartSubject, Subject};
use harness::{Client, ClientError, Deadline, Response};
use std::collections::HashMap;
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::Duration;

/// Runs a scenario.
///
/// # Errors
/// The first step that failed, or the reason why the subject or the origin could not be started or stopped.
pub fn run_story(story: &Story, start: &StartSubject) -> Result<(), Failure> {
    run_story_within(story, start, WAIT)
}

/// Runs a scenario like [`run_story`], with another timeout per wait than [`WAIT`].
///
/// # Errors
/// As for [`run_story`].
pub fn run_story_within(
    story: &Story,
    start: &StartSubject,
    wait: Duration,
) -> Result<(), Failure> {
    let transcript = Transcript::default();
    let failure = |line, text: &str, wrong| Failure {
        file: story.name.clone(),
        line,
        text: text.to_owned(),
        wrong,
        transcript: transcript.lines(),
    };
    let failed_to = |what: &str, why: String| failure(0, "", vec![Mismatch::new(what, why)]);
    let origin = Origin::start(transcript.clone())
        .map_err(|e| failed_to("an origin that starts", e.to_string()))?;
    let config = Config {
        story: story.name.clone(),
        toml: story.config.join("\n").replace("{origin}", &origin.address().to_string()),
        origin: origin.address(),
        flags: story.flags.clone(),
        moves_clock: story.moves_clock(),
    };
    let subject = start(&config).map_err(|why| failed_to("a subject that starts", why))?;
    let mut scene = Scene::new(subject, origin, transcript.clone(), wait);
    let mut played = Ok(());
    for step in &story.steps {
        played = scene.step(step).map_err(|wrong| failure(step.line, &step.text, wrong));
        if played.is_err() {
            break;
        }
    }
    let ended = scene.end();
    match (played, ended) {
        (Ok(()), Ok(())) => Ok(()),
        (Ok(()), Err(wrong)) => Err(failure(0, "", vec![wrong])),
        (Err(failure), Ok(())) => Err(failure),
        (Err(mut failure), Err(wrong)) => {
            failure.wrong.push(wrong);
            Err(failure)
        }
    }
}

/// A request whose answer has not been collected.
struct PendingAnswer {
    thread: JoinHandle<()>,
    answer: Receiver<(Client, Result<Response, ClientError>)>,
    handle: Option<TcpStream>,
}

/// Everything that runs during a scenario.
struct Scene {
    subject: Box<dyn Subject>,
    origin: Origin,
    transcript: Transcript,
    wait: Duration,
    clients: HashMap<String, Client>,
    under_way: HashMap<String, PendingAnswer>,
    advanced: Duration,
}

impl Scene {
    fn new(
        subject: Box<dyn Subject>,
        origin: Origin,
        transcript: Transcript,
        wait: Duration,
    ) -> Scene {
        Scene {
            subject,
            origin,
            transcript,
            wait,
            clients: HashMap::new(),
            under_way: HashMap::new(),
            advanced: Duration::ZERO,
        }
    }

    /// Executes one step, and checks that the origin has received no request without a rule.
    fn step(&mut self, step: &Step) -> Result<(), Vec<Mismatch>> {
        self.transcript.add(format!("{:>3}  {}", step.line, step.text));
        self.update_time();
        let mut wrong = self.act(&step.action).err().unwrap_or_default();
        wrong.extend(self.unexpected());
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    fn unexpected(&self) -> Option<Mismatch> {
        let requests = self.origin.take_unexpected();
        let got = || format!("the origin got {}", shorten(requests.join(", ").as_bytes(), 300));
        (!requests.is_empty())
            .then(|| Mismatch::new("only requests that the story has a rule for", got()))
    }

    /// Sets the subject's time for the placeholders.
    fn update_time(&self) {
        let moved = u64::try_from(self.advanced.as_millis()).unwrap_or(u64::MAX);
        let own = || machine_now_ms().saturating_add(moved);
        let now_ms = self.subject.now_ms().unwrap_or_else(own);
        self.origin.with_blanks(|blanks| blanks.now_ms = now_ms);
    }

    fn deadline(&self) -> Deadline {
        Deadline::after(self.wait)
    }

    fn slack_seconds(&self) -> u64 {
        self.subject.clock_slack().as_secs()
    }

    /// The answer with the scenario's names of reasons.
    fn with_own_names(&self, mut response: Response) -> Response {
        if let Some(prefix) = self.subject.reason_prefix() {
            let values = response.headers.iter_mut().map(|(_, value)| value);
            for bytes in values.chain([&mut response.content]) {
                remove_all(bytes, prefix.as_bytes());
            }
        }
        response
    }

    /// Stops everything. An error of the subject, and a late request without a rule, count as failures.
    fn end(mut self) -> Result<(), Mismatch> {
        for client in self.clients.values_mut() {
            client.close();
        }
        for (_, under_way) in self.under_way.drain() {
            if let Some(handle) = &under_way.handle {
                let _ = handle.shutdown(Shutdown::Both);
            }
            let _ = under_way.thread.join();
        }
        let late = self.unexpected();
        self.origin.down();
        let finished = self.subject.finish();
        match (finished, late) {
            (Err(why), _) => Err(Mismatch::new("a subject that ends well", why)),
            (Ok(()), Some(wrong)) => Err(wrong),
            (Ok(()), None) => Ok(()),
        }
    }
}

/// Removes each occurrence of a text.
fn remove_all(bytes: &mut Vec<u8>, text: &[u8]) {
    let mut from = 0;
    while let Some(at) = bytes[from..].windows(text.len()).position(|window| window == text) {
        bytes.drain(from + at..from + at + text.len());
        from += at;
    }
}

/// An answer as a line for the transcript.
fn describe(response: &Result<Response, ClientError>) -> String {
    match response {
        Ok(response) => {
            let status = response.field("cache-status").unwrap_or_default();
            let shown = shorten(&response.content, 60);
            format!("  came: {} | {shown} ; {}", response.status, shorten(&status, 200))
        }
        Err(trouble) => format!("  came: {trouble}"),
    }
}

/// Compares a missing answer with the expectation: an answer, or none.
fn judge_trouble(expect: &Expectation, trouble: &ClientError) -> Result<(), Vec<Mismatch>> {
    if !trouble.is_end() {
        return Err(vec![Mismatch::new("an answer", trouble.to_string())]);
    }
    // If the content breaks off at once, the header section may be lost too.
    if expect.end == ContentEnd::CutOrStatus {
        return Ok(());
    }
    check::status(&expect.status, None).map_err(|wrong| vec![wrong])
}
