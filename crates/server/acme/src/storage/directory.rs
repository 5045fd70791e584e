//! A storage in a directory: one file for each value, mode 0600, in a directory with mode 0700.
//!
//! A value is written to a temporary file, which is flushed to the disk and renamed. A lock is a file that is created
//! exclusively (`O_EXCL`), with the token of its holder and a count that each refresh increases. Another node takes
//! it when its content has not changed for the stale time of that node's own clock, or at once if its holder was a
//! process of this machine that has ended. On one machine, a file lock (`flock`) serialises these operations, so that
//! two nodes cannot take the same stale lock.
//!
//! Refused with the command that helps: a directory or file of another user, or one that others may use. A certificate
//! that others may only read can be used nevertheless after a restart ([`Directory::read_exposed`]). All functions
//! block.

use super::{LockTimes, PLACES, VALUE_BYTES_MAX, ValueKind};
use crate::randomness::random_hex;
use rustix::fs::OFlags;
use std::collections::HashMap;
use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{Error, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use telemetry::clock::Clock;
use tokio::sync::Semaphore;

/// The folder of the locks.
const LOCKS: &str = "locks";
/// The permissions of other users.
const OTHERS: u32 = 0o077;
/// Their permission to write.
const OTHERS_WRITE: u32 = 0o022;

/// A storage in a directory.
pub struct Directory {
    path: PathBuf,
    pub(super) times: LockTimes,
    clock: Clock,
    /// The places for operations, which may hang.
    pub(super) places: Arc<Semaphore>,
    /// The locks of others: their content, and since when it is unchanged.
    watched: Mutex<HashMap<String, (Vec<u8>, Instant)>>,
    #[cfg(test)]
    pub is_full: std::sync::atomic::AtomicBool,
    /// The reads of values, by kind.
    #[cfg(test)]
    pub reads: [std::sync::atomic::AtomicUsize; 5],
    /// The name whose reads hang.
    #[cfg(test)]
    pub hangs: Mutex<Option<String>>,
}

impl Directory {
    /// The storage in this directory, which need not exist yet.
    pub fn new(path: PathBuf, times: LockTimes, clock: Clock) -> Directory {
        Directory {
            path,
            times,
            clock,
            places: Arc::new(Semaphore::new(PLACES)),
            watched: Mutex::default(),
            #[cfg(test)]
            is_full: Default::default(),
            #[cfg(test)]
            reads: Default::default(),
            #[cfg(test)]
            hangs: Mutex::default(),
        }
    }

    pub(crate) fn read(&self, kind: ValueKind, name: &str) -> Result<Option<Vec<u8>>, String> {
        #[cfg(test)]
        self.reads[kind as usize].fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        #[cfg(test)]
        while self.hangs.lock().unwrap().as_deref() == Some(name) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let path = self.file(kind, name);
        match self.prepared().and_then(|()| read(&path)) {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == ErrorKind::FileTooLarge => Ok(Some(Vec::new())),
            Err(error) => Err(said(&path, &error)),
        }
    }

    /// Reads the certificate of a host that others may read, also in a directory that they may enter; `None` if others
    /// may have written it.
    pub(super) fn read_exposed(&self, host: &str) -> Option<Vec<u8>> {
        unwritten(&std::fs::metadata(&self.path).ok()?).ok()?;
        read_if(&self.file(ValueKind::Certificate, host), unwritten).ok()
    }

    pub(crate) fn write(&self, kind: ValueKind, name: &str, value: &[u8]) -> Result<(), String> {
        let path = self.file(kind, name);
        let written = self.prepared().and_then(|()| self.replace(&path, value));
        written.map_err(|error| said(&path, &error))?;
        let version = random_hex()?;
        let path = self.path.join("version");
        self.replace(&path, version.as_bytes()).map_err(|error| said(&path, &error))
    }

    pub(crate) fn remove(&self, kind: ValueKind, name: &str) -> Result<(), String> {
        let path = self.file(kind, name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(said(&path, &error)),
            _ => Ok(()),
        }
    }

    pub(crate) fn version(&self) -> Result<Vec<u8>, String> {
        let path = self.path.join("version");
        match self.prepared().and_then(|()| read(&path)) {
            Ok(version) => Ok(version),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(said(&path, &error)),
        }
    }

    pub(crate) fn lock(&self, name: &str, token: &str) -> Result<bool, String> {
        let path = self.lock_file(name);
        let taken = self.prepared().and_then(|()| {
            let _one = self.one_at_a_time()?;
            match read(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
                Ok(content) if self.is_free(name, &content) => std::fs::remove_file(&path)?,
                Ok(_) => return Ok(false),
            }
            self.watched().remove(name);
            match private(OpenOptions::new().write(true).create_new(true)).open(&path) {
                Ok(mut file) => match file.write_all(&lock_content(token, 0)) {
                    Ok(()) => Ok(true),
                    Err(error) => {
                        // On a full disk, nobody shall wait for a lock without a holder.
                        let _ = std::fs::remove_file(&path);
                        Err(error)
                    }
                },
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
                Err(error) => Err(error),
            }
        });
        taken.map_err(|error| said(&path, &error))
    }

    pub(crate) fn refresh(&self, name: &str, token: &str) -> Result<bool, String> {
        self.if_held(name, token, |path, count| {
            self.replace(path, &lock_content(token, count.wrapping_add(1)))
        })
    }

    pub(crate) fn unlock(&self, name: &str, token: &str) -> Result<bool, String> {
        self.if_held(name, token, |path, _| std::fs::remove_file(path))
    }

    /// Runs an operation if this process has the lock. Returns whether it has.
    fn if_held(
        &self,
        name: &str,
        token: &str,
        what: impl FnOnce(&Path, u64) -> Result<(), Error>,
    ) -> Result<bool, String> {
        let path = self.lock_file(name);
        let held = || {
            let _one = self.one_at_a_time()?;
            let content = match read(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
                content => content?,
            };
            let text = String::from_utf8_lossy(&content);
            let mut words = text.split(' ');
            if words.next() != Some(token) {
                return Ok(false);
            }
            let count = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
            what(&path, count).map(|()| true)
        };
        held().map_err(|error| said(&path, &error))
    }

    /// Whether a lock with this content may be taken.
    fn is_free(&self, name: &str, content: &[u8]) -> bool {
        if is_ended(content) {
            return true;
        }
        let (now, mut watched) = (self.clock.instant(), self.watched());
        match watched.get(name) {
            Some((before, since)) if *before == content => {
                now.saturating_duration_since(*since) >= self.times.stale
            }
            _ => {
                watched.insert(name.to_owned(), (content.to_vec(), now));
                false
            }
        }
    }

    /// Creates the directory if it is missing, and checks it.
    fn prepared(&self) -> Result<(), Error> {
        let create = |path: &Path| DirBuilder::new().recursive(true).mode(0o700).create(path);
        let kinds = [
            ValueKind::Certificate,
            ValueKind::Host,
            ValueKind::Challenge,
            ValueKind::Account,
            ValueKind::Tickets,
        ];
        let folders = kinds.map(|kind| kind.parts().0);
        for folder in folders.into_iter().chain([LOCKS]) {
            let path = self.path.join(folder);
            if !path.is_dir() {
                create(&path)?;
            }
        }
        private_only(&std::fs::metadata(&self.path)?, &self.path, "700")
    }

    /// Replaces a file at once: readers find the old or the new content.
    fn replace(&self, path: &Path, content: &[u8]) -> Result<(), Error> {
        #[cfg(test)]
        if self.is_full.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(Error::from(ErrorKind::StorageFull));
        }
        let folder = path.parent().unwrap_or(&self.path);
        let temporary = folder.join(format!(".{}", random_hex().map_err(Error::other)?));
        let written = private(OpenOptions::new().write(true).create_new(true))
            .open(&temporary)
            .and_then(|mut file| file.write_all(content).and_then(|()| file.sync_all()))
            .and_then(|()| std::fs::rename(&temporary, path));
        if let Err(error) = written {
            let _ = std::fs::remove_file(&temporary);
            return Err(error);
        }
        File::open(folder)?.sync_all()
    }

    /// Waits until no other process of this machine works on locks. Ends when the result is dropped.
    fn one_at_a_time(&self) -> Result<File, Error> {
        let path = self.path.join(LOCKS).join(".one-at-a-time");
        let file =
            private(OpenOptions::new().write(true).create(true).truncate(false)).open(path)?;
        // Without file locks, as on some network file systems, creation is exclusive, still.
        let _ = file.lock();
        Ok(file)
    }

    fn file(&self, kind: ValueKind, name: &str) -> PathBuf {
        let (folder, end) = kind.parts();
        self.path.join(folder).join(format!("{name}.{end}"))
    }

    fn lock_file(&self, name: &str) -> PathBuf {
        self.path.join(LOCKS).join(name)
    }

    fn watched(&self) -> std::sync::MutexGuard<'_, HashMap<String, (Vec<u8>, Instant)>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The content of a lock: the token of its holder, the count of its refreshes, and the holder's process.
fn lock_content(token: &str, count: u64) -> Vec<u8> {
    let (machine, process) = (machine(), std::process::id());
    format!("{token} {count} {machine} {process}").into_bytes()
}

/// The identity of this machine since its start, with its name space of processes (containers have their own).
fn machine() -> String {
    let start = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let space = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{}/{}", start.trim(), space.display())
}

/// Whether the holder of a lock was a process of this machine that has ended.
fn is_ended(content: &[u8]) -> bool {
    let text = String::from_utf8_lossy(content);
    let mut words = text.split(' ').skip(2);
    let (Some(on), Some(process)) = (words.next(), words.next()) else { return false };
    let is_here = on == machine() && on.len() > 32 && process.parse::<u32>().is_ok();
    is_here && !Path::new("/proc").join(process).exists()
}

/// Options for a file that only this user may use.
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(0o600).custom_flags(OFlags::NOFOLLOW.bits() as i32)
}

/// Reads a file that only this user may use.
fn read(path: &Path) -> Result<Vec<u8>, Error> {
    read_if(path, |found| private_only(found, path, "600"))
}

/// Reads a file that passes a check.
fn read_if(
    path: &Path,
    check: impl FnOnce(&Metadata) -> Result<(), Error>,
) -> Result<Vec<u8>, Error> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(Error::other("not a regular file"));
    }
    check(&found)?;
    let mut bytes = Vec::new();
    file.take(VALUE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > VALUE_BYTES_MAX {
        return Err(ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

/// Checks that a file or directory is this user's and nobody else's.
fn private_only(found: &Metadata, path: &Path, mode: &str) -> Result<(), Error> {
    let (own, path) = (rustix::process::geteuid().as_raw(), path.display());
    if found.uid() != own {
        let why = format!("belongs to another user (uid {}): chown -R {own} {path}", found.uid());
        return Err(Error::other(why));
    }
    if found.mode() & OTHERS != 0 {
        return Err(Error::other(format!("others may use it: chmod {mode} {path}")));
    }
    Ok(())
}

/// Checks that nobody but this user may have written a file or directory.
fn unwritten(found: &Metadata) -> Result<(), Error> {
    let is_own = found.uid() == rustix::process::geteuid().as_raw();
    if is_own && found.mode() & OTHERS_WRITE == 0 {
        return Ok(());
    }
    Err(ErrorKind::PermissionDenied.into())
}

fn said(path: &Path, error: &Error) -> String {
    format!("acme.storage: {}: {error}", path.display())
}
