//! The write barrier: the answer to a write is held until everything that was committed before it is
//! applied, so whoever wrote finds the pages of after.
//!
//! Each of the site's databases is asked for its position after the origin has answered, on a
//! connection of its own; whoever waits at that moment shares the question, and never one that was
//! put before. The position counts a transaction before its COMMIT is answered, so what the origin
//! has committed is in it. Bounded: what takes longer is answered, and said in `Cache-Status`.

use super::Feed;
use super::source::{Failed, Position, Session};
use crate::config::Database;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// How many may wait for a question to be put.
const ASKING_MAX: usize = 10_000;
/// How long after a connection failed no other is tried.
const PAUSE: Duration = Duration::from_millis(500);

type Ask = oneshot::Sender<Position>;
/// Where questions are put.
pub type Asks = mpsc::Sender<Ask>;
/// Where they come out.
pub type Questions = mpsc::Receiver<Ask>;

/// A channel for questions.
pub fn asks() -> (Asks, Questions) {
    mpsc::channel(ASKING_MAX)
}

/// What came of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// There is nothing to wait for, or it is not wanted.
    No,
    /// Everything committed before is applied.
    Applied,
    /// It is not known to be: it took too long, or the database is not followed.
    Late,
}

impl Waited {
    /// Both together.
    fn and(self, other: Waited) -> Waited {
        match (self, other) {
            (Waited::Late, _) | (_, Waited::Late) => Waited::Late,
            (Waited::No, Waited::No) => Waited::No,
            _ => Waited::Applied,
        }
    }

    /// What `Cache-Status` says of it.
    pub fn detail(self) -> Option<&'static str> {
        match self {
            Waited::No | Waited::Applied => None,
            Waited::Late => Some("changes-late"),
        }
    }
}

/// Waits for all of a site's databases.
pub async fn barrier(feeds: &[Arc<Feed>]) -> Waited {
    let waiting: Vec<_> =
        feeds.iter().skip(1).map(|feed| tokio::spawn(one(feed.clone()))).collect();
    let mut all = match feeds.first() {
        Some(feed) => feed.barrier().await,
        None => return Waited::No,
    };
    for waited in waiting {
        // A task that has panicked knows nothing.
        all = all.and(waited.await.unwrap_or(Waited::Late));
    }
    all
}

async fn one(feed: Arc<Feed>) -> Waited {
    feed.barrier().await
}

impl Feed {
    /// Waits until all that the database has committed by now is applied, within the bound.
    async fn barrier(&self) -> Waited {
        if self.config.barrier.is_zero() {
            return Waited::No;
        }
        match tokio::time::timeout(self.config.barrier, self.reach()).await {
            Ok(Some(())) => Waited::Applied,
            Ok(None) | Err(_) => Waited::Late,
        }
    }

    async fn reach(&self) -> Option<()> {
        let (ask, answer) = oneshot::channel();
        self.asks.try_send(ask).ok()?;
        let committed = answer.await.ok()?;
        let mut applied = self.applied.subscribe();
        let reached = applied.wait_for(|applied| {
            applied.as_ref().is_some_and(|applied| applied.has_all(&committed))
        });
        reached.await.ok().map(|_| ())
    }
}

/// Asks the database whenever somebody wants to know.
pub async fn run(config: Arc<Database>, mut questions: Questions) {
    let mut session = None;
    let mut asking = Vec::new();
    while questions.recv_many(&mut asking, ASKING_MAX).await > 0 {
        match committed(&config, &mut session).await {
            Ok(position) => {
                for ask in asking.drain(..) {
                    // Who has given up does not mind.
                    let _ = ask.send(position.clone());
                }
            }
            Err(error) => {
                // Nobody is answered: each waits for as long as it may, or hears of it here.
                let (database, reason) = (&config.name, error.as_str());
                tracing::debug!(event = "database-unasked", database, reason, %error);
                asking.clear();
                session = None;
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// What the database has committed. A connection that was idle may have been closed by the server:
/// then it is tried once more.
async fn committed(config: &Database, kept: &mut Option<Session>) -> Result<Position, Failed> {
    let was_kept = kept.is_some();
    let mut session = match kept.take() {
        Some(session) => session,
        None => Session::open(config).await?,
    };
    let position = match session.committed().await {
        Err(_) if was_kept => {
            session = Session::open(config).await?;
            session.committed().await?
        }
        position => position?,
    };
    *kept = Some(session);
    Ok(position)
}
