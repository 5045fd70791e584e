//! The journal that is being written, with one `write` for each change. The operating system keeps
//! written bytes even if the process is killed, so nothing waits for the disk. Invariant: after a
//! failed append a journal is emptied and never appended to again, because acknowledged changes may
//! be missing from it.

use page_snapshot::{ChangedName, Journal};
use std::fs::File;
use std::io::{self, Write};

/// The longest journal in bytes. Beyond this, a cold start is faster than reading it.
pub const BYTES_MAX: u64 = 64 << 20;

/// A journal that is open for appending.
pub struct Open {
    /// The number of the snapshot that it belongs to.
    pub generation: u64,
    /// The number of the snapshot on disk: its journal and all later ones are needed.
    pub complete: Option<u64>,
    journal: Journal,
    file: File,
    bytes: u64,
}

impl Open {
    /// Begins a journal in an empty file.
    ///
    /// # Errors
    /// The file cannot be written.
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

    /// Continues a journal that was read to its end.
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
    /// It cannot be written, or the journal is full. The journal is incomplete then.
    pub fn append(&mut self, names: &[ChangedName]) -> io::Result<()> {
        let bytes = self.journal.change(names);
        self.write(&bytes)
    }

    /// Appends whether an operation is in flight that may lead to a change.
    ///
    /// # Errors
    /// As for [`append`](Self::append).
    pub fn set_in_flight(&mut self, is: bool) -> io::Result<()> {
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

    /// Empties the journal, which makes it unreadable and works on a full disk. A failed append
    /// does not always leave a torn entry that a reader would detect.
    ///
    /// # Errors
    /// The journal is unchanged.
    pub fn spoil(&self) -> io::Result<()> {
        self.file.set_len(0)
    }

    /// Waits until the journal is on disk (`fsync`).
    ///
    /// # Errors
    /// The I/O error of the system.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}
