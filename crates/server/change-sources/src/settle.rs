//! Settles changes when every reader of the database sees them.
//!
//! A database sends a transaction before its rows are visible to other connections. Pagewell
//! queries which transactions every new reader sees (`stream_types::Visibility`), and settles the changes that
//! this covers. If the database cannot report it, a change settles after a fixed time. If the
//! database is unreachable, the change waits. An opened gate waits in the same way, for everything
//! that was committed when the stream began. The stream does not send those transactions, and some
//! may not be visible yet. For example, a commit that waits for a replica is in the log already
//! (semi-synchronous, `synchronous_standby_names`).
//!
//! Invariant: changes wait in the order of the stream, and none settles before an earlier one.

use super::Feed;
use super::barrier::KnownPositions;
use super::reusable_session::{Asking, ReusableSession};
use databases::source::Session;
use databases::stream_types::{Position, Visibility, VisibilityMarker};
use page_store::OpenChange;
use site_state::SiteState;
use statements::footprints::StatementLook;
use statements::terms::Look;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// The most changes that may wait in each of two places: the channel, and the queue for visibility.
pub const WAITING_MAX: usize = 4096;
/// The pause between two visibility queries: the first, and the longest.
const PAUSE: Duration = Duration::from_micros(500);
const PAUSE_MAX: Duration = Duration::from_millis(20);
/// How long an opened gate may wait before a warning is logged.
const SAY_AFTER: Duration = Duration::from_secs(10);
/// How long no new connection is tried after one failed.
const RETRY: Duration = Duration::from_secs(1);

/// A message from the follower.
pub enum Entry {
    /// A change was opened.
    Change(Box<Waiting>),
    /// The stream now reads another server's log. Marks of earlier changes are not comparable with
    /// it, so these changes settle by time.
    Elsewhere,
}

/// An open change that waits to be settled.
pub struct Waiting {
    /// The open change in the store.
    pub opened: OpenChange,
    /// The search through texts that belongs to the change, if there was one.
    pub look: Option<Look>,
    /// The search for statements that the changed rows touch, if there was one.
    pub statements: Option<StatementLook>,
    /// Identifies the transaction in a visibility query; `None`: the change settles by time.
    pub mark: Option<VisibilityMarker>,
    /// The reason why the change is open.
    pub what: Opening,
    /// The time at which it was opened.
    pub since: Instant,
}

/// The reason why a change is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// A transaction of the stream.
    Transaction,
    /// An opened gate: pages are stored again when it is settled.
    Gate,
}

/// Settles what comes in, until nothing can come any more.
pub async fn run(site: Arc<SiteState>, feed: Arc<Feed>, mut entries: mpsc::Receiver<Entry>) {
    let mut observer = Observer { kept: ReusableSession::default(), not_before: Instant::now() };
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
        let answer = observer.visible(&site, &feed, &waiting).await;
        let now = Instant::now();
        let mut settled = 0;
        while let Some(entry) = waiting.pop_front_if(|entry| {
            let waited = now.duration_since(entry.since);
            is_settled(entry, &answer, waited, feed.config.settle)
        }) {
            let number = site.changes().settle(entry.opened);
            if let Some(look) = entry.look {
                site.terms.settled(look);
            }
            if let Some(look) = entry.statements {
                site.footprints.settled(look, number);
            }
            feed.progress().settled();
            feed.note_settled();
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
        Entry::Change(change) => waiting.push_back(*change),
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

/// Returns how long an opened gate has waited, if that exceeds [`SAY_AFTER`].
fn waits_long(waiting: &VecDeque<Waiting>, now: Instant) -> Option<Duration> {
    let first = waiting.front().filter(|first| first.what == Opening::Gate)?;
    Some(now.duration_since(first.since)).filter(|waited| *waited >= SAY_AFTER)
}

/// The database's response to a visibility query.
enum Answer {
    /// These transactions are visible.
    Sees(Visibility),
    /// The database cannot report what is visible.
    CannotSay,
    /// No response: the database is unreachable.
    Nobody,
}

/// Queries a session for what every new reader sees; `None`: the database cannot report it.
pub fn visible(session: &mut Session, mark: VisibilityMarker) -> Asking<'_, Option<Visibility>> {
    Box::pin(async move { session.visible(&mark).await })
}

/// Queries which transactions are visible to all readers.
struct Observer {
    kept: ReusableSession,
    not_before: Instant,
}

impl Observer {
    /// Queries visibility in the representation that the first marked change needs.
    async fn visible(
        &mut self,
        site: &SiteState,
        feed: &Feed,
        waiting: &VecDeque<Waiting>,
    ) -> Answer {
        let Some(mark) = waiting.iter().find_map(|entry| entry.mark.as_ref()) else {
            return Answer::CannotSay;
        };
        if Instant::now() < self.not_before {
            return Answer::Nobody;
        }
        let before = KnownPositions::of(feed);
        match self.kept.ask(feed, |session| visible(session, mark.clone())).await {
            Ok(Some(Visibility::MySql(seen))) => {
                let committed = Position::MySql(seen.clone());
                if before.is_taken_back(site, feed, &committed) {
                    return Answer::Nobody;
                }
                Answer::Sees(Visibility::MySql(seen))
            }
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
