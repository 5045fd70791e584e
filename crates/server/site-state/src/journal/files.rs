//! The files of a site's snapshots: `NAME.snapshot`, `NAME.journal-7`, `NAME.running`, `NAME.lock`.
//! `NAME.unpublished` exists while changes of this node are not published to the cluster yet.
//!
//! A snapshot replaces the old one by a rename, so there is always a complete one. `NAME.running`
//! holds the system's `boot_id` from before the first request until the last snapshot is complete.
//! If a later boot finds it, the files on disk may be older than acknowledged changes. The file is
//! overwritten in place, which works on a full disk too. One process at a time holds the lock. Only
//! the owner may read or write the files.

use super::open::BYTES_MAX;
use config;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use trusted_files::Existing;

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// The most bytes read of `NAME.running`; Pagewell never writes more.
const SAID_BYTES_MAX: u64 = 64;
/// Written to `NAME.running` instead of a `boot_id` after an orderly shutdown.
const ENDED: &[u8] = b"ended";

/// The directory of a site's snapshots, and its lock.
pub struct Files {
    directory: PathBuf,
    name: String,
    lock: Mutex<Option<File>>,
    /// Whether this process has written `NAME.running`. Without it no snapshot may be used.
    is_running: AtomicBool,
    /// Whether there is an unusable snapshot or journal that could not be deleted yet.
    is_unusable: AtomicBool,
}

/// How an earlier process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Running {
    /// In an orderly way, or there was none.
    No,
    /// Without an orderly shutdown, during the current boot.
    Killed,
    /// Without an orderly shutdown, before the current boot.
    SystemStopped,
}

impl Files {
    /// Creates the file names for this configuration. Nothing is opened.
    pub fn new(config: &config::Snapshot) -> Files {
        let (directory, name) = (config.directory.clone(), config.name.clone());
        let (is_running, is_unusable) = (AtomicBool::new(false), AtomicBool::new(false));
        Files { directory, name, lock: Mutex::new(None), is_running, is_unusable }
    }

    /// Returns the directory of the snapshots.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn path(&self, suffix: &str) -> PathBuf {
        self.directory.join(format!("{}.{suffix}", self.name))
    }

    /// Returns the path of the snapshot.
    pub fn snapshot(&self) -> PathBuf {
        self.path("snapshot")
    }

    fn new_snapshot(&self) -> PathBuf {
        self.path("snapshot.new")
    }

    fn journal(&self, generation: u64) -> PathBuf {
        self.path(&format!("journal-{generation}"))
    }

    /// Creates the directory if it is missing, and takes the lock.
    ///
    /// # Errors
    /// The directory is unusable or another process has the lock: a sentence for the operator.
    pub fn take_hold(&self) -> Result<(), String> {
        let shown = self.directory.display();
        let wrong = |error: io::Error| format!("snapshot.directory {shown}: {error}");
        trusted_files::create_directory(&self.directory).map_err(wrong)?;
        let lock = own_file(&self.path("lock"), Existing::Kept).map_err(wrong)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            format!("snapshot.directory {shown}: another Pagewell has it; give each its own")
        })?;
        *self.lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(lock);
        Ok(())
    }

    /// Releases the lock of the directory, also for a child process that still holds a copy of the descriptor.
    pub fn let_go(&self) {
        let lock = self.lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(lock) = lock {
            let _ = flock(&lock, FlockOperation::Unlock);
        }
    }

    /// Opens the snapshot, and returns it with its length in bytes; `None` if there is none.
    ///
    /// # Errors
    /// It cannot be opened, or another user could have written it.
    pub fn open_snapshot(&self) -> io::Result<Option<(File, u64)>> {
        let file = match trusted_files::open(&self.snapshot()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let length = file.metadata()?.len();
        Ok(Some((file, length)))
    }

    /// Creates the file for a new snapshot.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create_snapshot(&self) -> io::Result<File> {
        own_file(&self.new_snapshot(), Existing::Removed)
    }

    /// Replaces the old snapshot by the new one.
    ///
    /// # Errors
    /// The rename failed.
    pub fn replace_snapshot(&self) -> io::Result<()> {
        fs::rename(self.new_snapshot(), self.snapshot())
    }

    /// Deletes an incomplete new snapshot.
    pub fn discard_snapshot(&self) {
        // It may not exist.
        let _ = fs::remove_file(self.new_snapshot());
    }

    /// Renames an unusable snapshot to `NAME.refused`, so that an operator can inspect it.
    pub fn set_aside(&self) {
        // If the rename fails, the snapshot is deleted with the other files.
        let _ = fs::rename(self.snapshot(), self.path("refused"));
    }

    /// Creates the file for a new journal, under a temporary name.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create_journal(&self) -> io::Result<File> {
        own_file(&self.path("journal.new"), Existing::Removed)
    }

    /// Renames the new journal to that of the snapshot with this number.
    ///
    /// # Errors
    /// The rename failed.
    pub fn name_journal(&self, generation: u64) -> io::Result<()> {
        fs::rename(self.path("journal.new"), self.journal(generation))
    }

    /// Returns the content of the journal of the snapshot with this number, and the file to append
    /// to; `None` if there is none.
    ///
    /// # Errors
    /// It cannot be read, or is longer than [`BYTES_MAX`].
    pub fn read_journal(&self, generation: u64) -> io::Result<Option<(Vec<u8>, File)>> {
        let file = match trusted_files::append(&self.journal(generation)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let mut bytes = Vec::new();
        (&file).take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > BYTES_MAX {
            Err(io::ErrorKind::FileTooLarge.into())
        } else {
            Ok(Some((bytes, file)))
        }
    }

    /// Deletes the journals of all snapshots with a number below `keep_from`.
    pub fn remove_journals(&self, keep_from: u64) {
        for (generation, path) in self.journals() {
            if generation < keep_from {
                // If this fails, the next snapshot tries again.
                let _ = fs::remove_file(path);
            }
        }
    }

    /// Returns the highest number of a journal.
    pub fn last_journal(&self) -> Option<u64> {
        self.journals().map(|(generation, _)| generation).max()
    }

    fn journals(&self) -> impl Iterator<Item = (u64, PathBuf)> + use<> {
        let start = format!("{}.journal-", self.name);
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        entries.filter_map(move |entry| {
            let name = entry.file_name();
            let generation = name.to_str()?.strip_prefix(&start)?.parse().ok()?;
            Some((generation, entry.path()))
        })
    }

    /// The existing files must not be used: they are deleted now or later.
    pub fn are_unusable(&self) {
        self.is_unusable.store(true, Ordering::Release);
    }

    /// Whether unusable files still exist.
    #[must_use]
    pub fn has_unusable(&self) -> bool {
        self.is_unusable.load(Ordering::Acquire)
    }

    /// Records that a usable snapshot exists.
    pub fn are_usable(&self) {
        self.is_unusable.store(false, Ordering::Release);
    }

    /// Deletes the snapshot and all journals, if they are unusable.
    ///
    /// # Errors
    /// The snapshot could not be deleted. It is tried again with the next call.
    pub fn remove_unusable(&self) -> io::Result<()> {
        if self.has_unusable() {
            self.remove_all()?;
            self.are_usable();
        }
        Ok(())
    }

    fn remove_all(&self) -> io::Result<()> {
        self.discard_snapshot();
        match fs::remove_file(self.snapshot()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => self.remove_journals(u64::MAX),
        }
        self.sync()
    }

    /// Returns how an earlier process ended.
    pub fn running(&self) -> Running {
        let read = |file: File| {
            let mut said = Vec::new();
            file.take(SAID_BYTES_MAX).read_to_end(&mut said).map(|_| said)
        };
        match trusted_files::open(&self.path("running")).and_then(read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Running::No,
            Ok(said) if said.starts_with(ENDED) => Running::No,
            Ok(boot) if !boot.is_empty() && boot == boot_id() => Running::Killed,
            _ => Running::SystemStopped,
        }
    }

    /// Records that a process is running, once. It is tried again after a failure, for example on a full disk.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn begin_running(&self) -> io::Result<()> {
        if !self.is_running.load(Ordering::Acquire) {
            self.say(&boot_id())?;
            self.is_running.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Overwrites the content of `NAME.running`.
    fn say(&self, what: &[u8]) -> io::Result<()> {
        let file = own_file(&self.path("running"), Existing::Kept)?;
        file.write_all_at(what, 0)?;
        file.set_len(what.len() as u64)?;
        file.sync_all()?;
        self.sync()
    }

    /// Records an orderly shutdown with everything on disk.
    ///
    /// # Errors
    /// The record cannot be written. A later process then assumes a kill.
    pub fn end_running(&self) -> io::Result<()> {
        self.say(&[ENDED, &[b'.'; 32]].concat())
    }

    /// Returns whether an earlier process may have left changes unpublished.
    pub fn has_unpublished(&self) -> bool {
        // If the check fails, the mark is assumed to exist.
        self.path("unpublished").try_exists().unwrap_or(true)
    }

    /// Writes the mark for unpublished changes. Does nothing if another process holds the lock.
    ///
    /// # Errors
    /// The mark cannot be written.
    pub fn mark_unpublished(&self) -> io::Result<()> {
        if self.is_held() {
            own_file(&self.path("unpublished"), Existing::Removed).map(drop)
        } else {
            Ok(())
        }
    }

    /// Deletes the mark for unpublished changes.
    ///
    /// # Errors
    /// The mark cannot be deleted.
    pub fn unmark_unpublished(&self) -> io::Result<()> {
        match self.is_held().then(|| fs::remove_file(self.path("unpublished"))) {
            Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn is_held(&self) -> bool {
        self.lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner).is_some()
    }

    /// Waits until the directory is on disk (`fsync`).
    ///
    /// # Errors
    /// The I/O error of the system.
    pub fn sync(&self) -> io::Result<()> {
        File::open(&self.directory)?.sync_all()
    }
}

fn own_file(path: &Path, existing: Existing) -> io::Result<File> {
    trusted_files::create(path, existing, 0o600)
}

/// Returns the system's boot ID; empty where the system has none.
fn boot_id() -> Vec<u8> {
    fs::read(BOOT_ID).unwrap_or_default()
}
