//! A stream that can be read ahead of the transactions that are applied.
//!
//! A look-up in the database may see transactions that come later in the stream. Reading ahead shows which rows they
//! have changed ([`StreamAhead::read_to`]). They are applied in their turn: [`StreamAhead::next`] returns what was read
//! before in the same order, with the positions as they were then. Invariant: nothing is read ahead of a new definition
//! of the tables, and the number of transactions and rows is limited. Not here: the meaning of the changes for a look-up
//! (`partner_search`).

use database_links::fault::StreamFault;
use databases::source::Stream;
use databases::stream_types::{
    Forget, Position, Resume, StreamPosition, StreamRead, TransactionBody,
};
use footprint::TableChange;
use footprint::schema::SqlSchema;
use std::collections::VecDeque;
use tokio::time::Instant;

/// The maximum number of transactions that are read ahead.
const TRANSACTIONS_MAX: usize = 64;
/// The maximum number of changed rows in them.
const ROWS_MAX: usize = 10_000;

/// A stream, and what has been read of it already.
pub struct StreamAhead {
    stream: Stream,
    ahead: VecDeque<(StreamRead, Positions)>,
    /// Why the stream ended, if that was noticed ahead.
    broken: Option<StreamFault>,
    /// The positions after the last returned transaction, if the stream is ahead of them.
    returned: Option<Positions>,
}

/// The positions after a transaction.
#[derive(Clone)]
struct Positions {
    position: Option<Position>,
    reached: Option<StreamPosition>,
}

impl StreamAhead {
    /// The stream, with nothing read.
    pub fn new(stream: Stream) -> StreamAhead {
        StreamAhead { stream, ahead: VecDeque::new(), broken: None, returned: None }
    }

    /// Starts the stream, see [`Stream::start`].
    ///
    /// # Errors
    /// The stream could not be started.
    pub async fn start(&mut self, from: &Position, left: Resume) -> Result<(), StreamFault> {
        self.stream.start(from, left).await
    }

    /// Returns the next transaction, see [`Stream::next`].
    ///
    /// # Errors
    /// The stream has ended.
    pub async fn next(&mut self, forget: Forget<'_>) -> Result<StreamRead, StreamFault> {
        if let Some((read, after)) = self.ahead.pop_front() {
            self.returned = Some(after);
            return Ok(read);
        }
        if let Some(broken) = self.broken.take() {
            return Err(broken);
        }
        self.returned = None;
        self.stream.next(forget).await
    }

    /// Returns when the command was sent by which this node has last reported itself to the other nodes of
    /// the cluster, with success; `None` for databases.
    pub fn contact(&self) -> Option<Instant> {
        match &self.stream {
            Stream::MariaDb(_) | Stream::Postgres(_) => None,
            Stream::Valkey(stream) => Some(stream.contact()),
        }
    }

    /// Returns the tables of the database, see [`Stream::take_definitions`].
    #[must_use]
    pub fn take_definitions(&mut self) -> Option<SqlSchema> {
        self.stream.take_definitions()
    }

    /// Returns the position after the last returned transaction; `None`: not known yet.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        match &self.returned {
            Some(returned) => returned.position.clone(),
            None => self.stream.position(),
        }
    }

    /// Returns the same position, with the landmark that identifies the log there.
    #[must_use]
    pub fn reached(&self) -> Option<StreamPosition> {
        match &self.returned {
            Some(returned) => returned.reached.clone(),
            None => self.stream.reached(),
        }
    }

    /// Reads ahead up to a position, for at most this time. Returns whether it is reached: then
    /// [`StreamAhead::changes`] has all changes between the last returned transaction and the position.
    pub async fn read_to(&mut self, end: &Position, until: Instant) -> bool {
        loop {
            // After a break the look-up may have been made on another server.
            if self.broken.is_some() {
                return false;
            }
            if self.stream.has_read(end) {
                return true;
            }
            let is_full = self.ahead.len() >= TRANSACTIONS_MAX || self.changes().count() > ROWS_MAX;
            if is_full || Instant::now() >= until {
                return false;
            }
            if self.returned.is_none() {
                self.returned = Some(self.positions());
            }
            match self.stream.next_until(until).await {
                Ok(Some(StreamRead::Nothing)) => {}
                Ok(Some(read)) => self.ahead.push_back((read, self.positions())),
                Ok(None) => return false,
                Err(broken) => self.broken = Some(broken),
            }
        }
    }

    /// The changed rows of the transactions that were read ahead.
    pub fn changes(&self) -> impl Iterator<Item = &TableChange> {
        self.ahead.iter().flat_map(|(read, _)| changes(read))
    }

    /// The positions of the stream itself.
    fn positions(&self) -> Positions {
        Positions { position: self.stream.position(), reached: self.stream.reached() }
    }
}

fn changes(read: &StreamRead) -> &[TableChange] {
    match read {
        StreamRead::Transaction(transaction) => match &transaction.made {
            TransactionBody::Rows(changed) => &changed.rows,
            TransactionBody::Published(_) => &[],
        },
        StreamRead::Moved | StreamRead::Nothing => &[],
    }
}
