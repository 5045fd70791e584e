//! The journal that is being written: one `write` for each change. The system keeps what it took, whatever
//! becomes of the process; a disk is not waited for.
//! Invariant: one that could not be appended to once is never appended to again, and is spoilt: what may be
//! missing from it was acknowledged.

use page_snapshot::{ChangedName, Journal};
use std::fs::File;
use std::io::{self, Write};

/// The longest journal; with a longer one starting cold is quicker.
pub const BYTES_MAX: u64 = 64 << 20;

/// A journal that is appended to.
pub struct Open {
    /// The number of the snapshot that it belongs to.
    pub generation: u64,
    /// The number of the snapshot that is there, and from which on journals are needed.
    pub complete: Option<u64>,
    journal: Journal,
    file: File,
    bytes: u64,
}

impl Open {
    /// Begins one in an empty file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin(
        mut file: File,
        generation: u64,
        complete: Option<u64>,
        own: u64,
    ) -> io::Result<Open> {
        let (journal, bytes) = Journal::begin(generation, own);
        file.write_all(&bytes)?;
        Ok(Open { generation, complete, journal, file, bytes: bytes.len() as u64 })
    }

    /// Goes on with one that was read to its end.
    pub fn resume(
        file: File,
        generation: u64,
        complete: u64,
        journal: Journal,
        bytes: u64,
    ) -> Open {
        Open { generation, complete: Some(complete), journal, file, bytes }
    }

    /// Appends a change.
    ///
    /// # Errors
    /// It cannot be written, or the journal is full. Then it is not whole any more.
    pub fn append(&mut self, names: &[ChangedName]) -> io::Result<()> {
        let bytes = self.journal.change(names);
        self.write(&bytes)
    }

    /// Appends that something is in hand which may tell of a change, or that nothing is any more.
    ///
    /// # Errors
    /// As for [`append`](Self::append).
    pub fn in_hand(&mut self, is: bool) -> io::Result<()> {
        let bytes = self.journal.set_in_flight(is);
        self.write(&bytes)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        if self.bytes > BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the journal is full"));
        }
        self.file.write_all(bytes)
    }

    /// Makes it one that nobody can read: it is emptied, which a full disk allows. It may not be torn where
    /// it ends, if nothing at all of a change could be written.
    ///
    /// # Errors
    /// It is as it was.
    pub fn spoil(&self) -> io::Result<()> {
        self.file.set_len(0)
    }

    /// Waits until a disk has it.
    ///
    /// # Errors
    /// It has not.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}
