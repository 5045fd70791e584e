//! Settles changes when every reader of the database sees them.
//!
//! A database sends a transaction before its rows are visible to others. It is asked how far whoever
//! asks from now on sees everything (`source::Seen`), and what is within that is settled. Where the
//! database cannot say, a change settles after a fixed time; where it cannot be reached, it waits.
//!
//! A gate that was opened waits like a change: for all that was committed when the stream began. Of that
//! nothing is sent, and some of it may not be visible yet: a commit that waits for a replica
//! (semi-synchronous, `synchronous_standby_names`) is in the log all the while.
//!
//! Invariant: changes wait in the order of the stream, and none settles before one that came earlier.

use super::Feed;
use super::kept::{Asking, Kept};
use super::source::{Mark, Seen, Session};
use crate::site::Site;
use crate::terms::Look;
use page_store::OpenChange;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// How many changes may wait, twice: in the channel, and to be shown visible.
pub const WAITING_MAX: usize = 4096;
/// Between two questions, at first and at most.
const PAUSE: Duration = Duration::from_micros(500);
const PAUSE_MAX: Duration = Duration::from_millis(20);
/// How long a gate may wait before that is said.
const SAY_AFTER: Duration = Duration::from_secs(10);
/// How long after a connection failed no other is tried.
const RETRY: Duration = Duration::from_secs(1);

/// What the stream has to say.
pub enum Entry {
    /// A change was opened.
    Change(Waiting),
    /// What comes now belongs to another log: what came before can be compared with nothing any more,
    /// and settles by time.
    Elsewhere,
}

/// A change that is open.
pub struct Waiting {
    /// The change.
    pub opened: OpenChange,
    /// That texts were looked through for it.
    pub look: Option<Look>,
    /// By what its transaction is known to be visible; none: it settles by time.
    pub mark: Option<Mark>,
    /// What it is.
    pub what: Opening,
    /// When it was opened.
    pub since: Instant,
}

/// Why a change is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// A transaction has made it.
    Transaction,
    /// A gate was opened, which lets pages in from when it is settled.
    Gate,
}

/// Settles what comes in, until nothing can come any more.
pub async fn run(site: Arc<Site>, feed: Arc<Feed>, mut entries: mpsc::Receiver<Entry>) {
    let mut observer = Observer { kept: Kept::default(), not_before: Instant::now() };
    let mut waiting: VecDeque<Waiting> = VecDeque::new();
    let mut pause = PAUSE;
    let mut is_said = false;
    loop {
        if waiting.is_empty() {
            let Some(entry) = entries.recv().await else { return };
            add(&mut waiting, entry);
            pause = PAUSE;
        }
        while waiting.len() < WAITING_MAX
            && let Ok(entry) = entries.try_recv()
        {
            add(&mut waiting, entry);
        }
        let answer = observer.visible(&feed, &waiting).await;
        let now = Instant::now();
        let mut settled = 0;
        while let Some(entry) = waiting.pop_front_if(|entry| {
            let waited = now.duration_since(entry.since);
            is_settled(entry, &answer, waited, feed.config.settle)
        }) {
            site.settle(entry.opened);
            if let Some(look) = entry.look {
                site.terms.settled(look);
            }
            feed.progress().settled();
            is_said &= entry.what != Opening::Gate;
            settled += 1;
        }
        if !is_said && let Some(waited) = waits_long(&waiting, now) {
            let (database, waited_ms) = (&feed.config.name, waited.as_millis() as u64);
            tracing::warn!(event = "database-unseen", database, waited_ms);
            is_said = true;
        }
        pause = if settled > 0 { PAUSE } else { (pause * 2).min(PAUSE_MAX) };
        if !waiting.is_empty() {
            tokio::time::sleep(pause).await;
        }
    }
}

fn add(waiting: &mut VecDeque<Waiting>, entry: Entry) {
    match entry {
        Entry::Change(change) => waiting.push_back(change),
        Entry::Elsewhere => {
            for earlier in waiting.iter_mut() {
                earlier.mark = None;
                earlier.since = Instant::now();
            }
        }
    }
}

fn is_settled(entry: &Waiting, answer: &Answer, waited: Duration, settle: Duration) -> bool {
    match (&entry.mark, answer) {
        (Some(mark), Answer::Sees(visible)) => visible.shows(mark),
        (Some(_), Answer::Nobody) => false,
        (None, _) | (_, Answer::CannotSay) => waited >= settle,
    }
}

/// How long a gate waits that was opened, if it is too long to say nothing.
fn waits_long(waiting: &VecDeque<Waiting>, now: Instant) -> Option<Duration> {
    let first = waiting.front().filter(|first| first.what == Opening::Gate)?;
    Some(now.duration_since(first.since)).filter(|waited| *waited >= SAY_AFTER)
}

/// What a database has said of what everybody sees.
enum Answer {
    /// This.
    Sees(Seen),
    /// That it cannot.
    CannotSay,
    /// Nothing: it could not be reached.
    Nobody,
}

fn visible(session: &mut Session, mark: Mark) -> Asking<'_, Option<Seen>> {
    Box::pin(async move { session.visible(&mark).await })
}

/// Asks how far everybody sees.
struct Observer {
    kept: Kept,
    not_before: Instant,
}

impl Observer {
    /// How far, as far as the change that is first needs it.
    async fn visible(&mut self, feed: &Feed, waiting: &VecDeque<Waiting>) -> Answer {
        let Some(mark) = waiting.iter().find_map(|entry| entry.mark.as_ref()) else {
            return Answer::CannotSay;
        };
        if Instant::now() < self.not_before {
            return Answer::Nobody;
        }
        match self.kept.ask(feed, |session| visible(session, mark.clone())).await {
            Ok(Some(seen)) => Answer::Sees(seen),
            Ok(None) => Answer::CannotSay,
            Err(error) => {
                self.not_before = Instant::now() + RETRY;
                let (database, reason) = (&feed.config.name, error.as_str());
                tracing::debug!(event = "database-unasked", database, reason, %error);
                Answer::Nobody
            }
        }
    }
}
