//! Places in a change stream: where to start, and how far it was read.
//!
//! Three ways to name one: a file and an offset in it (both servers), a list of GTIDs with one entry
//! for each domain (MariaDB), a set of GTIDs (MySQL). A position counts a transaction only when all
//! of it has been read, its XID or COMMIT included ([`crate::Transactions`]).
//!
//! Sources: MariaDB's manual, "Global Transaction ID"; MySQL's, "GTID Format and Storage".

mod mariadb;
mod mysql;

pub use mariadb::{GtidList, MariaDbGtid};
pub(crate) use mysql::read_tag;
pub use mysql::{GtidSet, MySqlGtid, SourceId};

use std::fmt;
use std::sync::Arc;

/// A text that is no position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NoPosition;

impl fmt::Display for NoPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a position of a change stream")
    }
}

impl std::error::Error for NoPosition {}

/// How two positions of the same server stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Standing {
    /// The same.
    Same,
    /// The first has everything of the second, and more.
    Ahead,
    /// The second has everything of the first, and more.
    Behind,
    /// Each has something that the other has not, or they cannot be compared.
    Apart,
}

impl Standing {
    /// From "has all of the other" in both directions.
    fn of(first_has_second: bool, second_has_first: bool) -> Standing {
        match (first_has_second, second_has_first) {
            (true, true) => Standing::Same,
            (true, false) => Standing::Ahead,
            (false, true) => Standing::Behind,
            (false, false) => Standing::Apart,
        }
    }
}

/// A file of the log, and an offset in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FilePosition {
    /// The file's name.
    pub file: Arc<str>,
    /// The offset of the next event, in bytes.
    pub offset: u64,
}

impl FilePosition {
    /// How this stands to `other`: files of one log are numbered after their last dot.
    #[must_use]
    pub fn compare(&self, other: &FilePosition) -> Standing {
        let key = |position: &FilePosition| {
            let (base, number) = position.file.rsplit_once('.')?;
            Some((base.to_owned(), number.parse::<u64>().ok()?, position.offset))
        };
        match (key(self), key(other)) {
            (Some(first), Some(second)) if first.0 == second.0 => {
                Standing::of(first >= second, second >= first)
            }
            _ if self == other => Standing::Same,
            _ => Standing::Apart,
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

/// Where a stream is to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// At this place of this file.
    File(FilePosition),
    /// After these GTIDs of MariaDB.
    MariaDb(GtidList),
    /// After these GTIDs of MySQL.
    MySql(GtidSet),
}

/// How far a stream was read: what a reader resumes by after a break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The file and the offset after the last whole transaction; none before the server has named a
    /// file.
    pub file: Option<FilePosition>,
    /// The GTIDs of all whole transactions, as [`Start`] named them, and those read since.
    pub gtids: Gtids,
}

/// The GTIDs of a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gtids {
    /// The stream was started by file and offset.
    None,
    /// Of MariaDB.
    MariaDb(GtidList),
    /// Of MySQL.
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

    /// Where to start again from here; none if not even a file is known.
    #[must_use]
    pub fn start(&self) -> Option<Start> {
        match &self.gtids {
            Gtids::MariaDb(list) => Some(Start::MariaDb(list.clone())),
            Gtids::MySql(set) => Some(Start::MySql(set.clone())),
            Gtids::None => self.file.clone().map(Start::File),
        }
    }

    /// Counts a transaction as read.
    pub fn advance(&mut self, gtid: Option<&Gtid>) {
        match (&mut self.gtids, gtid) {
            (Gtids::MariaDb(list), Some(Gtid::MariaDb(gtid))) => list.advance(*gtid),
            (Gtids::MySql(set), Some(Gtid::MySql(gtid))) => set.add(gtid),
            _ => {}
        }
    }
}

/// The name of one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gtid {
    /// Of MariaDB.
    MariaDb(MariaDbGtid),
    /// Of MySQL.
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
        assert_eq!(place("bin.999999:7").compare(&place("bin.1000000:4")), Standing::Behind);
        assert_eq!(place("bin.2:7").compare(&place("bin.2:4")), Standing::Ahead);
        assert_eq!(place("bin.2:7").compare(&place("bin.2:7")), Standing::Same);
        assert_eq!(place("bin.2:7").compare(&place("log.2:7")), Standing::Apart);
        assert_eq!(place("bin.2:7").to_string(), "bin.2:7");
        assert!("bin.2".parse::<FilePosition>().is_err());
    }
}
