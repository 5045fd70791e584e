//! Settles changes when every reader of the database sees them.
//!
//! A database sends a transaction before its rows are visible to others. It is asked how far whoever
//! asks from now on sees everything (`source::Seen`), and what is within that is settled. Where the
//! database cannot say, a change settles after a fixed time.
//!
//! Invariant: changes wait in the order of the stream, and none settles before one that came earlier.

use super::Feed;
use super::kept::Kept;
use super::source::{Mark, Seen};
use crate::site::Site;
use page_store::Opened;
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
    pub opened: Opened,
    /// By what its transaction is known to be visible; none: it settles by time.
    pub mark: Option<Mark>,
    /// When it was opened.
    pub since: Instant,
}

/// Settles what comes in, until nothing can come any more.
pub async fn run(site: Arc<Site>, feed: Arc<Feed>, mut entries: mpsc::Receiver<Entry>) {
    let mut observer = Observer { kept: Kept::default(), not_before: Instant::now() };
    let mut waiting: VecDeque<Waiting> = VecDeque::new();
    let mut pause = PAUSE;
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
        let visible = observer.visible(&feed, &waiting).await;
        let now = Instant::now();
        let mut settled = 0;
        while let Some(entry) = waiting.pop_front_if(|entry| {
            let waited = now.duration_since(entry.since);
            is_settled(entry, visible.as_ref(), waited, feed.config.settle)
        }) {
            site.settle(entry.opened);
            feed.progress().settled();
            settled += 1;
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

fn is_settled(entry: &Waiting, visible: Option<&Seen>, waited: Duration, settle: Duration) -> bool {
    match (&entry.mark, visible) {
        (Some(mark), Some(visible)) => visible.shows(mark),
        (None, _) | (_, None) => waited >= settle,
    }
}

/// Asks how far everybody sees.
struct Observer {
    kept: Kept,
    not_before: Instant,
}

impl Observer {
    /// How far; none if the database cannot say, or nobody asks.
    async fn visible(&mut self, feed: &Feed, waiting: &VecDeque<Waiting>) -> Option<Seen> {
        let is_by_time = waiting.iter().all(|entry| entry.mark.is_none());
        if is_by_time || Instant::now() < self.not_before {
            return None;
        }
        match self.kept.ask(feed, async |session| session.visible().await).await {
            Ok(seen) => seen,
            Err(error) => {
                self.not_before = Instant::now() + RETRY;
                let (database, reason) = (&feed.config.name, error.as_str());
                tracing::debug!(event = "database-unasked", database, reason, %error);
                None
            }
        }
    }
}
