//! The private directory of Pagewell's own php-fpm: created, locked, and removed. Directories that a
//! killed process has left behind are removed, too.
//!
//! The directory is locked, and the lock ends with the process in any case. The process id in its name
//! is not sufficient, because processes in another PID namespace (a container that shares `/run`) are
//! invisible.
//!
//! | the process that creates | the process that cleans up | result |
//! |---|---|---|
//! | creates, locks | tries to lock | the lock is held: the directory stays |
//! | creates | locks, removes | the first cannot lock or open it, and creates another |
//! | creates, opens | locks, removes, unlocks | the first locks a removed directory, detects this, and creates another |

use rustix::fs::{FlockOperation, flock};
use std::fs::{DirBuilder, File, Permissions, metadata, read_dir, remove_dir_all, set_permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Maximum number of names that are tried in one parent directory.
const ATTEMPTS: u32 = 100;

/// The users that may open files in the directory whose names they know. No other user can list or change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectoryEntry {
    /// Only Pagewell's user.
    Owner,
    /// Every user, for PHP workers that run as another one.
    Everyone,
}

/// A locked directory of Pagewell's user. It is removed with its content when this is dropped.
pub struct PrivateDirectory {
    path: PathBuf,
    entry: DirectoryEntry,
    /// The open directory, which holds the lock.
    lock: File,
}

impl PrivateDirectory {
    /// Creates a directory in the usual place, and removes those that no process holds any more.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn make(entry: DirectoryEntry) -> Result<PrivateDirectory, String> {
        let base = ["/run/pagewell", "/run"].iter().map(PathBuf::from);
        let mut last = String::new();
        for base in base.chain([std::env::temp_dir()]) {
            sweep(&base);
            match PrivateDirectory::make_in(&base, entry) {
                Ok(held) => return Ok(held),
                Err(error) => last = format!("{}: {error}", base.display()),
            }
        }
        Err(format!("no private directory could be made for php-fpm's socket: {last}"))
    }

    fn make_in(base: &Path, entry: DirectoryEntry) -> io::Result<PrivateDirectory> {
        for attempt in 0..ATTEMPTS {
            let path = base.join(format!("pagewell-{}-{attempt}", std::process::id()));
            match create(&path, entry) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            }
            if let Some(lock) = locked(&path) {
                return Ok(PrivateDirectory { path, entry, lock });
            }
        }
        Err(io::Error::new(ErrorKind::AlreadyExists, "all names are taken"))
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates the directory again at the same path, after it was removed.
    ///
    /// # Errors
    /// Another file exists there, or the directory cannot be created: a sentence for the operator.
    pub fn make_again(&mut self) -> Result<(), String> {
        let made = create(&self.path, self.entry);
        made.map_err(|error| format!("{}: {error}", self.path.display()))?;
        let lock = locked(&self.path);
        self.lock = lock.ok_or_else(|| format!("{} is somebody else's", self.path.display()))?;
        Ok(())
    }

    /// Whether the directory still exists; a clean-up job might have removed it.
    pub fn is_there(&self) -> bool {
        is_at(&self.lock, &self.path)
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        if self.is_there() {
            let _ = remove_dir_all(&self.path);
        }
    }
}

fn create(path: &Path, entry: DirectoryEntry) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)?;
    match entry {
        DirectoryEntry::Owner => Ok(()),
        DirectoryEntry::Everyone => set_permissions(path, Permissions::from_mode(0o711)),
    }
}

/// Locks a directory. `None` if another process holds the lock, or the directory no longer exists.
fn locked(path: &Path) -> Option<File> {
    let lock = File::open(path).ok()?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive).ok()?;
    is_at(&lock, path).then_some(lock)
}

/// Whether the open file is the one at this path.
fn is_at(open: &File, path: &Path) -> bool {
    let identity = |found: std::fs::Metadata| (found.dev(), found.ino());
    match (open.metadata(), metadata(path)) {
        (Ok(open), Ok(there)) => identity(open) == identity(there),
        _ => false,
    }
}

/// Removes the directories that no process holds, because their process was killed. Those of a running
/// process are left alone, because old versions of Pagewell did not lock them.
fn sweep(base: &Path) {
    for entry in read_dir(base).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix("pagewell-"));
        let Some((pid, attempt)) = rest.and_then(|rest| rest.split_once('-')) else { continue };
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let is_ours = is_number(pid)
            && is_number(attempt)
            && entry.metadata().is_ok_and(|found| {
                found.is_dir() && found.uid() == rustix::process::geteuid().as_raw()
            });
        if !is_ours || Path::new("/proc").join(pid).exists() {
            continue;
        }
        if let Some(_lock) = locked(&entry.path()) {
            let _ = remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    /// No process has this id (`/proc/sys/kernel/pid_max` is at most 2^22).
    const NOBODY: &str = "pagewell-99999999-0";

    fn place(name: &str) -> PathBuf {
        let place = std::env::temp_dir().join(format!("held-{name}-{}", std::process::id()));
        std::fs::create_dir(&place).unwrap();
        place
    }

    #[test]
    fn a_directory_in_use_is_not_swept_and_is_removed_when_released() {
        let base = place("lock");
        let held = PrivateDirectory::make_in(&base, DirectoryEntry::Owner).unwrap();
        // As seen from another PID namespace: held by an invisible process.
        let seen = base.join(NOBODY);
        std::fs::rename(held.path(), &seen).unwrap();
        sweep(&base);
        assert!(seen.exists());
        assert!(!held.is_there());
        std::fs::rename(&seen, held.path()).unwrap();
        assert!(held.is_there());
        let path = held.path().to_owned();
        drop(held);
        assert!(!path.exists());
        remove_dir_all(base).unwrap();
    }

    #[test]
    fn only_unused_directories_are_removed() {
        let base = place("sweep");
        let mine = format!("pagewell-{}-0", std::process::id());
        for name in [NOBODY, "pagewell-x-0", "pagewell-99999999-", &mine] {
            std::fs::create_dir_all(base.join(name).join("below")).unwrap();
        }
        sweep(&base);
        let mut left: Vec<_> =
            read_dir(&base).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        let mut wanted = ["pagewell-99999999-", "pagewell-x-0", &mine].map(OsString::from);
        wanted.sort();
        assert_eq!(left, wanted);
        remove_dir_all(base).unwrap();
    }

    #[test]
    fn a_name_that_is_taken_is_passed_over() {
        let base = place("taken");
        let (one, other) = (
            PrivateDirectory::make_in(&base, DirectoryEntry::Owner).unwrap(),
            PrivateDirectory::make_in(&base, DirectoryEntry::Owner).unwrap(),
        );
        assert_ne!(one.path(), other.path());
        drop((one, other));
        remove_dir_all(base).unwrap();
    }
}
