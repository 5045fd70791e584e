//! Positions in a binary log: where to start, and how far it was read.
//!
//! There are three forms: a file and an offset (both servers), a list of GTIDs with one entry per domain
//! (MariaDB), and a set of GTIDs (MySQL). A position includes a transaction only when all of it has been read,
//! including its XID or COMMIT ([`crate::Transactions`]).
//!
//! Sources: MariaDB's manual, "Global Transaction ID"; MySQL's, "GTID Format and Storage".

mod mariadb;
mod mysql;

pub use mariadb::{GtidList, MariaDbGtid};
pub(crate) use mysql::read_tag;
pub use mysql::{GtidSet, MySqlGtid, SourceId};

use std::fmt;
use std::sync::Arc;

/// A text is not a valid position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NoPosition;

impl fmt::Display for NoPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a position of a change stream")
    }
}

impl std::error::Error for NoPosition {}

/// The relation of two positions of the same server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PositionOrder {
    /// The positions are equal.
    Same,
    /// The first position includes the second, and more.
    Ahead,
    /// The second position includes the first, and more.
    Behind,
    /// Neither position includes the other, or they cannot be compared.
    Apart,
}

impl PositionOrder {
    /// The relation, from whether each position includes the other.
    fn of(first_has_second: bool, second_has_first: bool) -> PositionOrder {
        match (first_has_second, second_has_first) {
            (true, true) => PositionOrder::Same,
            (true, false) => PositionOrder::Ahead,
            (false, true) => PositionOrder::Behind,
            (false, false) => PositionOrder::Apart,
        }
    }
}

/// A file of the log, and an offset in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FilePosition {
    /// The name of the file.
    pub file: Arc<str>,
    /// The offset of the next event, in bytes.
    pub offset: u64,
}

impl FilePosition {
    /// The relation to `other`. The files of one log are numbered after their last dot.
    #[must_use]
    pub fn compare(&self, other: &FilePosition) -> PositionOrder {
        let key = |position: &FilePosition| {
            let (base, number) = position.file.rsplit_once('.')?;
            Some((base.to_owned(), number.parse::<u64>().ok()?, position.offset))
        };
        match (key(self), key(other)) {
            (Some(first), Some(second)) if first.0 == second.0 => {
                PositionOrder::of(first >= second, second >= first)
            }
            _ if self == other => PositionOrder::Same,
            _ => PositionOrder::Apart,
        }
    }
}

impl fmt::Display for FilePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.offset)
    }
}

impl std::str::FromStr for FilePosition {
    type Err = NoPosition;

    fn from_str(text: &str) -> Result<FilePosition, NoPosition> {
        let (file, offset) = text.rsplit_once(':').ok_or(NoPosition)?;
        if file.is_empty() || file.len() > 512 {
            return Err(NoPosition);
        }
        Ok(FilePosition { file: file.into(), offset: offset.parse().map_err(|_| NoPosition)? })
    }
}

/// The position at which a stream starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// This offset of this file.
    File(FilePosition),
    /// After these GTIDs of MariaDB.
    MariaDb(GtidList),
    /// After these GTIDs of MySQL.
    MySql(GtidSet),
}

/// The position up to which a stream was read, from which a reader resumes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The file and the offset after the last complete transaction; `None` before the server has sent a file
    /// name.
    pub file: Option<FilePosition>,
    /// The GTIDs of all complete transactions: those in [`Start`], and those read since.
    pub gtids: Gtids,
}

/// The GTIDs of a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gtids {
    /// No GTIDs: the stream was started by file and offset.
    None,
    /// The GTIDs of a MariaDB server.
    MariaDb(GtidList),
    /// The GTIDs of a MySQL server.
    MySql(GtidSet),
}

impl Position {
    /// The position at which a stream starts.
    #[must_use]
    pub fn at(start: &Start) -> Position {
        match start {
            Start::File(place) => Position { file: Some(place.clone()), gtids: Gtids::None },
            Start::MariaDb(list) => Position { file: None, gtids: Gtids::MariaDb(list.clone()) },
            Start::MySql(set) => Position { file: None, gtids: Gtids::MySql(set.clone()) },
        }
    }

    /// The start for a stream that continues here; `None` if not even a file is known.
    #[must_use]
    pub fn start(&self) -> Option<Start> {
        match &self.gtids {
            Gtids::MariaDb(list) => Some(Start::MariaDb(list.clone())),
            Gtids::MySql(set) => Some(Start::MySql(set.clone())),
            Gtids::None => self.file.clone().map(Start::File),
        }
    }

    /// Records a transaction as read.
    pub fn advance(&mut self, gtid: Option<&Gtid>) {
        match (&mut self.gtids, gtid) {
            (Gtids::MariaDb(list), Some(Gtid::MariaDb(gtid))) => list.advance(*gtid),
            (Gtids::MySql(set), Some(Gtid::MySql(gtid))) => set.add(gtid),
            _ => {}
        }
    }
}

/// The GTID of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gtid {
    /// A GTID of MariaDB.
    MariaDb(MariaDbGtid),
    /// A GTID of MySQL.
    MySql(MySqlGtid),
}

impl fmt::Display for Gtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Gtid::MariaDb(gtid) => gtid.fmt(f),
            Gtid::MySql(gtid) => gtid.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_compared_by_their_numbers() {
        let place = |text: &str| text.parse::<FilePosition>().expect("a position");
        assert_eq!(place("bin.999999:7").compare(&place("bin.1000000:4")), PositionOrder::Behind);
        assert_eq!(place("bin.2:7").compare(&place("bin.2:4")), PositionOrder::Ahead);
        assert_eq!(place("bin.2:7").compare(&place("bin.2:7")), PositionOrder::Same);
        assert_eq!(place("bin.2:7").compare(&place("log.2:7")), PositionOrder::Apart);
        assert_eq!(place("bin.2:7").to_string(), "bin.2:7");
        assert!("bin.2".parse::<FilePosition>().is_err());
    }
}
