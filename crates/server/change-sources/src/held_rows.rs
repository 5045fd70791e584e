//! Deleted rows that are held back for a second, in case they are inserted again with equal values
//! (`footprint::profile`), and when they are released: after that time, or because a write waits for all
//! changes of the database.
//!
//! The follower releases them, between two other steps. So one task opens all changes of a database, in an order in
//! which the change of a held row follows the transaction that deleted it. The same order holds for settling. The
//! settled position stays before that transaction until the change of its held rows is opened (`progress`), because
//! a process that resumes there must apply them. Not here: which rows are held.

use super::Feed;
use site_state::SiteState;
use statements::footprints::Release;
use std::future::pending;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

/// The maximum number of writes that may wait for the release of held rows.
const ASKING_MAX: usize = 10_000;
/// The shortest time until a release is tried again, if the site's clock stands still.
const PAUSE: Duration = Duration::from_millis(10);
/// How long rows may be held without interruption. Then all are released, so that the settled position advances.
const HELD_MAX: Duration = Duration::from_secs(10);

/// The sending side of the channel for releases.
pub type ReleaseAsks = mpsc::Sender<oneshot::Sender<()>>;

/// Creates the channel for releases.
pub fn release_asks() -> (ReleaseAsks, HeldRows) {
    let (asks, requests) = mpsc::channel(ASKING_MAX);
    (asks, HeldRows { requests, next: None, since: None })
}

/// When the held rows of a database are released.
pub struct HeldRows {
    requests: mpsc::Receiver<oneshot::Sender<()>>,
    /// When the next rows are released; `None` if no row is held.
    next: Option<Instant>,
    /// Since when rows have been held without interruption.
    since: Option<Instant>,
}

/// The reason for a release.
pub enum ReleaseCause {
    /// A row was held for long enough.
    Due,
    /// A caller waits for the release of all rows.
    Asked(oneshot::Sender<()>),
}

impl HeldRows {
    /// Waits until rows must be released. If the future is dropped, no request is lost.
    pub async fn wait(&mut self) -> ReleaseCause {
        let next = self.next;
        let due = async {
            match next {
                Some(next) => sleep_until(next).await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = due => ReleaseCause::Due,
            Some(asked) = self.requests.recv() => ReleaseCause::Asked(asked),
        }
    }

    /// Sets the time until the next release.
    pub fn set_next(&mut self, after: Option<Duration>) {
        let now = Instant::now();
        self.next = after.map(|after| now + after.max(PAUSE));
        self.since = after.and(self.since.or(Some(now)));
    }

    /// The rows that a release concerns.
    pub fn which(&self, cause: &ReleaseCause) -> Release {
        let is_long = self.since.is_some_and(|since| since.elapsed() > HELD_MAX);
        match cause {
            ReleaseCause::Due if !is_long => Release::Due,
            ReleaseCause::Due | ReleaseCause::Asked(_) => Release::All,
        }
    }
}

impl Feed {
    /// Waits until all held rows are released and their changes opened. Does not return if the database is no longer
    /// followed.
    pub(super) async fn release_held(&self, site: &SiteState) {
        if !site.footprints.follows(self.name()) {
            return;
        }
        let (ask, answer) = oneshot::channel();
        let released = self.release_asks.send(ask).await.is_ok() && answer.await.is_ok();
        if !released {
            pending::<()>().await;
        }
    }
}
