//! The files of a site's snapshots: `NAME.snapshot`, `NAME.journal-7`, `NAME.running`, `NAME.lock`; and
//! `NAME.untold`, which is there while the other machines have not been told all that was changed.
//!
//! A snapshot is put in place by renaming, so that there is the old one or the new one. `NAME.running` says
//! from before anything is served until everything was written at the end which start of the system this is
//! (`boot_id`): found by another start of it, what the disk has may be older than what was acknowledged. It is
//! written over in its place, for which a disk that is full has room. One process at a time has the lock. The files are the user's own and nobody else's.

use super::journal::BYTES_MAX;
use crate::config;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// More than this is nothing that was written there.
const SAID_BYTES_MAX: u64 = 64;
/// Says in the place of a `boot_id` that the process has come to its end.
const ENDED: &[u8] = b"ended";

/// Where they are.
pub struct Files {
    directory: PathBuf,
    name: String,
    lock: Mutex<Option<File>>,
}

/// Whether an earlier process has come to its end in good order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Running {
    /// It has, or there was none.
    No,
    /// It has not, and the system has run since.
    Killed,
    /// It has not, and the system was stopped since.
    SystemStopped,
}

impl Files {
    /// The files that this configuration speaks of.
    pub fn new(config: &config::Snapshot) -> Files {
        let (directory, name) = (config.directory.clone(), config.name.clone());
        Files { directory, name, lock: Mutex::new(None) }
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn path(&self, suffix: &str) -> PathBuf {
        self.directory.join(format!("{}.{suffix}", self.name))
    }

    /// The snapshot.
    pub fn snapshot(&self) -> PathBuf {
        self.path("snapshot")
    }

    fn new_snapshot(&self) -> PathBuf {
        self.path("snapshot.new")
    }

    fn journal(&self, generation: u64) -> PathBuf {
        self.path(&format!("journal-{generation}"))
    }

    /// Makes the directory where there is none, and takes the lock.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn take_hold(&self) -> Result<(), String> {
        let shown = self.directory.display();
        let wrong = |error: io::Error| format!("snapshot.directory {shown}: {error}");
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory).map_err(wrong)?;
        let lock =
            own_file().create(true).truncate(false).open(self.path("lock")).map_err(wrong)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            format!("snapshot.directory {shown}: another Pagewell has it; give each its own")
        })?;
        *self.lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(lock);
        Ok(())
    }

    /// Lets go of the lock.
    pub fn let_go(&self) {
        *self.lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = None;
    }

    /// The snapshot, open, with its length; none where there is none.
    ///
    /// # Errors
    /// It cannot be opened, or somebody else could have written it.
    pub fn open_snapshot(&self) -> io::Result<Option<(File, u64)>> {
        let file = match File::open(self.snapshot()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let found = file.metadata()?;
        let is_ours = found.uid() == rustix::process::geteuid().as_raw();
        if !is_ours || found.mode() & 0o022 != 0 || !found.is_file() {
            return Err(io::Error::other("it is somebody else's, or others may write it"));
        }
        Ok(Some((file, found.len())))
    }

    /// A new file for a snapshot that is to be put in place.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create_snapshot(&self) -> io::Result<File> {
        own_file().create(true).truncate(true).open(self.new_snapshot())
    }

    /// Puts the new snapshot in place of the old one.
    ///
    /// # Errors
    /// It is not.
    pub fn replace_snapshot(&self) -> io::Result<()> {
        fs::rename(self.new_snapshot(), self.snapshot())
    }

    /// Lets go of a snapshot that was not finished.
    pub fn discard_snapshot(&self) {
        // It may not be there.
        let _ = fs::remove_file(self.new_snapshot());
    }

    /// Sets a snapshot aside that cannot be used, where somebody can look at it.
    pub fn set_aside(&self) {
        // Where that cannot be, it is removed with the rest.
        let _ = fs::rename(self.snapshot(), self.path("refused"));
    }

    /// A new file for a journal, under no name that anybody looks for.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create_journal(&self) -> io::Result<File> {
        own_file().create(true).truncate(true).open(self.path("journal.new"))
    }

    /// Gives it its name: it is the journal of the snapshot with this number.
    ///
    /// # Errors
    /// It is not.
    pub fn name_journal(&self, generation: u64) -> io::Result<()> {
        fs::rename(self.path("journal.new"), self.journal(generation))
    }

    /// The journal of the snapshot with this number, and the file to append to it; none where there is none.
    ///
    /// # Errors
    /// It cannot be read, or is longer than any is.
    pub fn read_journal(&self, generation: u64) -> io::Result<Option<(Vec<u8>, File)>> {
        let file = OpenOptions::new().read(true).append(true).open(self.journal(generation));
        let file = match file {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let mut bytes = Vec::new();
        (&file).take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
        match bytes.len() as u64 > BYTES_MAX {
            true => Err(io::ErrorKind::FileTooLarge.into()),
            false => Ok(Some((bytes, file))),
        }
    }

    /// Removes the journals of these snapshots.
    pub fn remove_journals(&self, keep_from: u64) {
        for (generation, path) in self.journals() {
            if generation < keep_from {
                // Tried again with the next snapshot.
                let _ = fs::remove_file(path);
            }
        }
    }

    /// The highest number that a journal has.
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

    /// Removes snapshot and journals.
    ///
    /// # Errors
    /// One is still there.
    pub fn remove_all(&self) -> io::Result<()> {
        self.discard_snapshot();
        match fs::remove_file(self.snapshot()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => self.remove_journals(u64::MAX),
        }
        self.sync()
    }

    /// What is left of an earlier process.
    pub fn running(&self) -> Running {
        let read = |file: File| {
            let mut said = Vec::new();
            file.take(SAID_BYTES_MAX).read_to_end(&mut said).map(|_| said)
        };
        match File::open(self.path("running")).and_then(read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Running::No,
            Ok(said) if said.starts_with(ENDED) => Running::No,
            Ok(boot) if !boot.is_empty() && boot == boot_id() => Running::Killed,
            _ => Running::SystemStopped,
        }
    }

    /// Says that a process runs.
    ///
    /// # Errors
    /// It cannot be said.
    pub fn begin_running(&self) -> io::Result<()> {
        self.say(&boot_id())
    }

    /// Writes this in the place of what `NAME.running` says.
    fn say(&self, what: &[u8]) -> io::Result<()> {
        let file = own_file().create(true).truncate(false).open(self.path("running"))?;
        file.write_all_at(what, 0)?;
        file.set_len(what.len() as u64)?;
        file.sync_all()?;
        self.sync()
    }

    /// Says that it has come to its end, and everything is on the disk.
    ///
    /// # Errors
    /// It cannot be said; then it is as if it had been killed.
    pub fn end_running(&self) -> io::Result<()> {
        self.say(&[ENDED, &[b'.'; 32]].concat())
    }

    /// Whether there are changes that the other machines may not have been told.
    pub fn has_untold(&self) -> bool {
        // What cannot be looked for may be there.
        self.path("untold").try_exists().unwrap_or(true)
    }

    /// Says that there are; nothing where another process has the files.
    ///
    /// # Errors
    /// It cannot be said.
    pub fn mark_untold(&self) -> io::Result<()> {
        match self.is_held() {
            true => own_file().create(true).truncate(true).open(self.path("untold")).map(drop),
            false => Ok(()),
        }
    }

    /// Says that there are none any more.
    ///
    /// # Errors
    /// It cannot be said.
    pub fn unmark_untold(&self) -> io::Result<()> {
        match self.is_held().then(|| fs::remove_file(self.path("untold"))) {
            Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn is_held(&self) -> bool {
        self.lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner).is_some()
    }

    /// Waits until the disk knows which files there are.
    ///
    /// # Errors
    /// It does not.
    pub fn sync(&self) -> io::Result<()> {
        File::open(&self.directory)?.sync_all()
    }
}

fn own_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    options
}

/// Which start of the system this is; nothing where it does not say.
fn boot_id() -> Vec<u8> {
    fs::read(BOOT_ID).unwrap_or_default()
}
