//! A record in a file beside the snapshots of the site's pages: `NAME.trial`, `NAME.audit`. Only the owner may read it.
//!
//! The directory is created if it is missing, as for the pages: without them, nothing else does this. The file is
//! replaced by a rename, so there is always a complete one. It is not waited for (`fsync`): after a power failure a
//! minute of counts may be missing. One process writes it at a time: while one takes over from another, the old one
//! writes nothing more. A file that cannot be read or written is reported once, and the record goes on in memory.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use trusted_files::Existing;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Only the owner may read the file: it names URLs and cookies.
const MODE: u32 = 0o600;

/// A record of a site that survives restarts in a file: of its trial, or of its audit. One process at a time writes it.
pub trait SavedRecord {
    /// The file of the record.
    fn file(&self) -> &RecordFile;

    /// The path of the file and the text of the record; `None` if the record has no file.
    fn written(&self) -> Option<(PathBuf, String)>;

    /// Writes the record, if it has changed and is not handed over. May wait for the disk. The first of several
    /// failures is logged.
    fn save(&self) {
        let writer = self.file().writer();
        if *writer == RecordWriter::ThisProcess {
            self.file().write(self);
        }
    }

    /// Writes the record for the last time, and leaves its file to a process that takes over. When this returns, no
    /// call of [`SavedRecord::save`] is in progress, and none writes until [`SavedRecord::take_back`]. So the new
    /// process reads a text that no other process replaces. Later counts are not in the file. May wait for the disk.
    fn hand_over(&self) {
        let mut writer = self.file().writer();
        if std::mem::replace(&mut *writer, RecordWriter::Successor) == RecordWriter::ThisProcess {
            self.file().write(self);
        }
    }

    /// Writes the record here again, because the new process has not taken over. It has written nothing then.
    fn take_back(&self) {
        *self.file().writer() = RecordWriter::ThisProcess;
    }
}

/// The file of one record, and whether this process writes it.
pub struct RecordFile {
    /// The longest text that is read, in bytes.
    bytes_max: u64,
    /// Held while the file is written.
    writer: Mutex<RecordWriter>,
    /// The file, and the hash of its text that this process has last read or written.
    known: Mutex<Option<(PathBuf, Option<u64>)>>,
    /// Whether the file lacks something.
    is_unsaved: AtomicBool,
    /// Whether the last attempt to save failed, and this was reported.
    has_failed: AtomicBool,
}

/// The process that writes the file of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordWriter {
    ThisProcess,
    /// A process that takes over: this one writes nothing more.
    Successor,
}

impl RecordFile {
    /// A file that is not read yet. A longer one than `bytes_max` bytes cannot be used.
    pub(crate) fn new(bytes_max: u64) -> RecordFile {
        RecordFile {
            bytes_max,
            writer: Mutex::new(RecordWriter::ThisProcess),
            known: Mutex::default(),
            is_unsaved: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
        }
    }

    /// Reads the record of an earlier process. `None` if there is none, or it cannot be used, which is logged.
    pub(crate) fn read<T>(
        &self,
        path: &Path,
        parse: impl FnOnce(&[u8]) -> io::Result<T>,
    ) -> Option<T> {
        let text = trusted_files::read(path, self.bytes_max);
        let hash = text.as_ref().ok().map(|text| hash_of(text));
        *self.known() = Some((path.to_owned(), hash));
        match text.and_then(|text| parse(&text)) {
            Ok(record) => Some(record),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => {
                tracing::warn!(event = "record-not-read", path = %path.display(), %error);
                None
            }
        }
    }

    /// Notes that the record has something that the file lacks.
    pub(crate) fn changed(&self) {
        self.is_unsaved.store(true, Ordering::Release);
    }

    /// Whether the last attempt to save failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Acquire)
    }

    /// Writes the record of this file if it has changed, for a caller that holds `writer`.
    fn write(&self, record: &(impl SavedRecord + ?Sized)) {
        if !self.is_unsaved.swap(false, Ordering::AcqRel) {
            return;
        }
        let Some((path, text)) = record.written() else { return self.changed() };
        let written = self.replace(&path, &text);
        let has_failed = self.has_failed.swap(written.is_err(), Ordering::AcqRel);
        match written {
            Ok(()) => *self.known() = Some((path, Some(hash_of(text.as_bytes())))),
            Err(error) => {
                self.changed();
                if !has_failed {
                    tracing::warn!(event = "record-not-saved", path = %path.display(), %error);
                }
            }
        }
    }

    /// Replaces the file, unless another process has written it.
    fn replace(&self, path: &Path, text: &str) -> io::Result<()> {
        let known = self.known().clone().filter(|(known, _)| known == path);
        let now = trusted_files::read(path, self.bytes_max).ok().map(|text| hash_of(&text));
        if now.is_some() && known.is_some_and(|(_, hash)| hash != now) {
            let why = "another process has written it: each needs a snapshot.directory of its own";
            return Err(io::Error::other(why));
        }
        create_directory_of(path)?;
        let mut new = path.as_os_str().to_owned();
        new.push(".new");
        let new = PathBuf::from(new);
        let written = trusted_files::create(&new, Existing::Removed, MODE)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .and_then(|()| fs::rename(&new, path));
        if written.is_err() {
            // A part of it would take the last room of a full disk.
            let _ = fs::remove_file(&new);
        }
        written
    }

    fn writer(&self) -> MutexGuard<'_, RecordWriter> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Never held while another lock is taken.
    fn known(&self) -> MutexGuard<'_, Option<(PathBuf, Option<u64>)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Creates the directory of the file at this path if it is missing, and checks it.
pub(crate) fn create_directory_of(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), trusted_files::create_directory)
}

fn hash_of(text: &[u8]) -> u64 {
    xxh3_64_with_seed(text, 0)
}
