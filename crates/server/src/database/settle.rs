//! Settles changes when every reader of the database sees them.
//!
//! A database sends a transaction before its rows are visible to others. It is asked how far whoever
//! asks from now on sees everything (`source::Seen`), and what is within that is settled. Where the
//! database cannot say, a change settles after a fixed time.
//!
//! Invariant: changes wait in the order of the stream, and none settles before one that came earlier.

use super::Feed;
use super::source::{Mark, Seen, Session};
use crate::config::Database;
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

/// A change that is open.
pub struct Entry {
    /// The change.
    pub opened: Opened,
    /// By what its transaction is known to be visible; none: it settles by time.
    pub mark: Option<Mark>,
    /// When it was opened.
    pub since: Instant,
    /// What came before it belongs to another log.
    pub after_gap: bool,
}

/// Settles what comes in, until nothing can come any more.
pub async fn run(site: Arc<Site>, feed: Arc<Feed>, mut entries: mpsc::Receiver<Entry>) {
    let config = &feed.config;
    let mut observer = Observer { session: None, not_before: Instant::now() };
    let mut waiting: VecDeque<Entry> = VecDeque::new();
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
        let visible = observer.visible(config, &waiting).await;
        let now = Instant::now();
        let mut settled = 0;
        while let Some(entry) = waiting.pop_front_if(|entry| {
            is_settled(entry, visible.as_ref(), now.duration_since(entry.since), config.settle)
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

/// What was open before a gap can be compared with nothing any more: it settles with what came after.
fn add(waiting: &mut VecDeque<Entry>, entry: Entry) {
    if entry.after_gap {
        for earlier in waiting.iter_mut() {
            earlier.mark.clone_from(&entry.mark);
            earlier.since = entry.since;
        }
    }
    waiting.push_back(entry);
}

fn is_settled(entry: &Entry, visible: Option<&Seen>, waited: Duration, settle: Duration) -> bool {
    match (&entry.mark, visible) {
        (Some(mark), Some(visible)) => visible.shows(mark),
        (None, _) | (_, None) => waited >= settle,
    }
}

/// Asks how far everybody sees.
struct Observer {
    session: Option<Session>,
    not_before: Instant,
}

impl Observer {
    /// How far; none if the database cannot say, or nobody asks.
    async fn visible(&mut self, config: &Database, waiting: &VecDeque<Entry>) -> Option<Seen> {
        if waiting.iter().all(|entry| entry.mark.is_none()) {
            return None;
        }
        let session = match self.session.take() {
            Some(session) => Ok(session),
            None if Instant::now() < self.not_before => return None,
            None => Session::open(config).await,
        };
        let asked = match session {
            Ok(mut session) => session.visible().await.map(|seen| (session, seen)),
            Err(error) => Err(error),
        };
        match asked {
            Ok((session, seen)) => {
                self.session = Some(session);
                seen
            }
            Err(error) => {
                self.not_before = Instant::now() + RETRY;
                let (database, reason) = (&config.name, error.as_str());
                tracing::debug!(event = "database-unasked", database, reason, %error);
                None
            }
        }
    }
}
