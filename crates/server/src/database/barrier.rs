//! The write barrier: the answer to a write is held until everything that was committed before it is
//! applied, so whoever wrote finds the pages of after.
//!
//! The database is asked for its position (`@@gtid_binlog_pos`) after the origin has answered, on a
//! connection of its own; whoever waits at that moment shares the question, and never one that was
//! put before. The position counts a transaction before its COMMIT is answered, so what the origin
//! has committed is in it. Bounded: what takes longer is answered, and said in `Cache-Status`.

use super::Feed;
use super::connection::{Connection, Failed};
use crate::config::Database;
use mysql_replication::position::{GtidList, Standing};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// How many may wait for a question to be put.
const ASKING_MAX: usize = 10_000;
/// How long after a connection failed no other is tried.
const PAUSE: Duration = Duration::from_millis(500);

type Ask = oneshot::Sender<GtidList>;
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
    /// What `Cache-Status` says of it.
    pub fn detail(self) -> Option<&'static str> {
        match self {
            Waited::No | Waited::Applied => None,
            Waited::Late => Some("changes-late"),
        }
    }
}

impl Feed {
    /// Waits until all that the database has committed by now is applied, within the bound.
    pub async fn barrier(&self) -> Waited {
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
            applied.as_ref().is_some_and(|applied| has_all(applied, &committed))
        });
        reached.await.ok().map(|_| ())
    }
}

/// Whether everything of `committed` is in `applied`.
pub fn has_all(applied: &GtidList, committed: &GtidList) -> bool {
    matches!(applied.compare(committed), Standing::Same | Standing::Ahead)
}

/// Asks the database whenever somebody wants to know.
pub async fn run(config: Arc<Database>, mut questions: Questions) {
    let mut connection = None;
    let mut asking = Vec::new();
    while questions.recv_many(&mut asking, ASKING_MAX).await > 0 {
        match committed(&config, &mut connection).await {
            Ok(position) => {
                for ask in asking.drain(..) {
                    // Who has given up does not mind.
                    let _ = ask.send(position.clone());
                }
            }
            Err(error) => {
                // Nobody is answered: each waits for as long as it may, or hears of it here.
                tracing::debug!(event = "database-unasked", reason = error.as_str(), %error);
                asking.clear();
                connection = None;
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// What the database has committed. A connection that was idle may have been closed by the server:
/// then it is tried once more.
async fn committed(config: &Database, kept: &mut Option<Connection>) -> Result<GtidList, Failed> {
    const ASK: &str = "SELECT @@gtid_binlog_pos";
    let was_kept = kept.is_some();
    let mut connection = match kept.take() {
        Some(connection) => connection,
        None => Connection::open(config).await?,
    };
    let text = match connection.one(ASK).await {
        Err(_) if was_kept => {
            connection = Connection::open(config).await?;
            connection.one(ASK).await?
        }
        text => text?,
    };
    *kept = Some(connection);
    text.parse().map_err(|_| Failed::Said("bad-position", text))
}
