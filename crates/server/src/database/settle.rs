//! Settles changes when every reader of the database sees them.
//!
//! A database sends a transaction before its rows are visible to others. A transaction that begins
//! `WITH CONSISTENT SNAPSHOT` says up to which place of the log it sees everything
//! (`binlog_snapshot_file`, `binlog_snapshot_position`): what was written before that place is
//! visible to whoever asks from now on. Where the database cannot say, a change settles after a fixed
//! time. Source: MariaDB's manual, "START TRANSACTION WITH CONSISTENT SNAPSHOT".
//!
//! Invariant: changes wait in the order of the stream, and none settles before one that came earlier.

use super::connection::{Connection, Failed};
use crate::config::Database;
use crate::site::Site;
use mysql_replication::position::{FilePosition, Standing};
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
    /// The place in the log after its transaction; none: it settles by time.
    pub at: Option<FilePosition>,
    /// When it was opened.
    pub since: Instant,
    /// What came before it belongs to another log.
    pub after_gap: bool,
}

/// Settles what comes in, until nothing can come any more.
pub async fn run(site: Arc<Site>, mut entries: mpsc::Receiver<Entry>) {
    let Some(feed) = &site.feed else { return };
    let config = feed.config.clone();
    let mut observer = Observer { connection: None, not_before: Instant::now() };
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
        let visible = observer.visible(&config, &waiting).await;
        let now = Instant::now();
        let mut settled = 0;
        while let Some(entry) = waiting.pop_front_if(|entry| {
            is_settled(entry, visible.as_ref(), now.duration_since(entry.since), config.settle)
        }) {
            site.settle(entry.opened);
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
            earlier.at.clone_from(&entry.at);
            earlier.since = entry.since;
        }
    }
    waiting.push_back(entry);
}

fn is_settled(
    entry: &Entry,
    visible: Option<&FilePosition>,
    waited: Duration,
    settle: Duration,
) -> bool {
    match (&entry.at, visible) {
        (Some(at), Some(visible)) => {
            matches!(visible.compare(at), Standing::Same | Standing::Ahead)
        }
        (None, _) | (_, None) => waited >= settle,
    }
}

/// Asks how far everybody sees.
struct Observer {
    connection: Option<Connection>,
    not_before: Instant,
}

impl Observer {
    /// The place up to which everything is visible; none if the database cannot say, or nobody asks.
    async fn visible(
        &mut self,
        config: &Database,
        waiting: &VecDeque<Entry>,
    ) -> Option<FilePosition> {
        if waiting.iter().all(|entry| entry.at.is_none()) {
            return None;
        }
        let connection = match self.connection.take() {
            Some(connection) => Ok(connection),
            None if Instant::now() < self.not_before => return None,
            None => Connection::open(config).await,
        };
        let asked = match connection {
            Ok(mut connection) => snapshot(&mut connection).await.map(|seen| (connection, seen)),
            Err(error) => Err(error),
        };
        match asked {
            Ok((connection, seen)) => {
                self.connection = Some(connection);
                seen
            }
            Err(error) => {
                self.not_before = Instant::now() + RETRY;
                tracing::debug!(event = "database-unasked", reason = error.as_str(), %error);
                None
            }
        }
    }
}

async fn snapshot(connection: &mut Connection) -> Result<Option<FilePosition>, Failed> {
    connection.query("START TRANSACTION WITH CONSISTENT SNAPSHOT").await?;
    let rows = connection.query("SHOW STATUS LIKE 'binlog_snapshot_%'").await?;
    // A snapshot that is kept keeps old rows from being cleaned up.
    connection.query("ROLLBACK").await?;
    let named = |name: &str| {
        let row = (0..rows.rows.len())
            .find(|row| rows.text(*row, 0).is_some_and(|own| own.eq_ignore_ascii_case(name)))?;
        rows.text(row, 1)
    };
    let file = named("binlog_snapshot_file").filter(|file| !file.is_empty());
    let offset = named("binlog_snapshot_position").and_then(|offset| offset.parse().ok());
    Ok(file.zip(offset).map(|(file, offset)| FilePosition { file: file.as_str().into(), offset }))
}
