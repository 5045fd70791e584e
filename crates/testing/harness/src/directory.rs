//! A private directory for one server: temporary and removed in the end, or given and kept.
//!
//! Servers change users, so the directory can be passed through by everybody (mode 0711) while
//! nobody but its owner can list it; what is secret lies in files and directories of mode 0600 and
//! 0700 below. Its name is short, because the path of a Unix socket may have 107 bytes only.

use crate::users::{self, Account};
use crate::{StartError, StartReason, keeper};
use std::fs::{self, DirBuilder};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

/// The longest path of a Unix socket: `sun_path` has 108 bytes, the last of them zero.
const SOCKET_PATH_BYTES: usize = 107;

/// Room for the name of a socket in the directory of a server.
const SOCKET_NAME_BYTES: usize = 24;

/// A directory that belongs to one server.
#[derive(Debug)]
pub struct PrivateDir {
    path: PathBuf,
    fate: Fate,
}

/// What becomes of the directory when it is dropped.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Removed,
    Kept,
}

impl PrivateDir {
    /// Makes a new directory in the system's place for temporary files; it is removed on drop, and
    /// also when this process dies. `name` is part of its name.
    ///
    /// # Errors
    /// `CannotPrepare` when it cannot be made.
    pub fn temporary(name: &str) -> Result<PrivateDir, StartError> {
        Self::temporary_in(&std::env::temp_dir(), name)
    }

    /// The same below `parent`, for instance `/dev/shm`.
    ///
    /// # Errors
    /// `CannotPrepare` when it cannot be made.
    pub fn temporary_in(parent: &Path, name: &str) -> Result<PrivateDir, StartError> {
        let number = RandomState::new().build_hasher().finish() & 0xffff_ffff;
        let path = parent.join(format!("{}{name}-{number:08x}", keeper::REMOVABLE));
        create(&path).map_err(|error| cannot_make(&path, &error))?;
        keeper::watch_dir(&path);
        Ok(PrivateDir { path, fate: Fate::Removed })
    }

    /// Uses `path`, made if it does not exist, and leaves it in place.
    ///
    /// # Errors
    /// `CannotPrepare` when it cannot be made.
    pub fn kept(path: &Path) -> Result<PrivateDir, StartError> {
        if !path.is_dir() {
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(|error| cannot_make(parent, &error))?;
            }
            create(path).map_err(|error| cannot_make(path, &error))?;
        }
        let path = path.canonicalize().map_err(|error| cannot_make(path, &error))?;
        Ok(PrivateDir { path, fate: Fate::Kept })
    }

    /// Where it is; always absolute.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A directory in it (mode 0700) that belongs to `owner`, or to this user if that is `None`.
    pub(crate) fn part(&self, name: &str, owner: Option<&Account>) -> Result<PathBuf, StartError> {
        let path = self.path.join(name);
        let make = || {
            if !path.is_dir() {
                DirBuilder::new().mode(0o700).create(&path)?;
            }
            give(&path, owner)
        };
        make().map_err(|error| cannot_make(&path, &error))?;
        Ok(path)
    }

    /// Writes a file in it.
    pub(crate) fn file(&self, name: &str, content: &str) -> Result<PathBuf, StartError> {
        let path = self.path.join(name);
        fs::write(&path, content).map_err(|error| cannot_make(&path, &error))?;
        Ok(path)
    }

    /// The path for a Unix socket in it.
    pub(crate) fn socket(&self, name: &str) -> Result<PathBuf, StartError> {
        let path = self.path.join(name);
        let length = path.as_os_str().as_bytes().len();
        if length > SOCKET_PATH_BYTES {
            let detail = format!("{} has {length} bytes; set TMPDIR shorter", path.display());
            return Err(StartError::new(name, StartReason::PathTooLong, detail));
        }
        Ok(path)
    }

    /// Gives the directory itself to `owner`, who then can make sockets and files in it.
    pub(crate) fn give_to(&self, owner: Option<&Account>) -> Result<(), StartError> {
        give(&self.path, owner).map_err(|error| cannot_make(&self.path, &error))
    }
}

/// Whether servers that run as other users can come to a directory and make a Unix socket below it.
#[must_use]
pub fn suits_servers(path: &Path) -> bool {
    let mode = |dir: &Path| fs::metadata(dir).map_or(0o001, |found| found.permissions().mode());
    let passable = !users::am_root() || path.ancestors().all(|dir| mode(dir) & 0o001 != 0);
    passable && path.as_os_str().as_bytes().len() + SOCKET_NAME_BYTES <= SOCKET_PATH_BYTES
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        if self.fate == Fate::Removed {
            let _ = fs::remove_dir_all(&self.path);
            keeper::forget_dir(&self.path);
        }
    }
}

fn create(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o711).create(path)
}

fn give(path: &Path, owner: Option<&Account>) -> io::Result<()> {
    owner.map_or(Ok(()), |owner| chown(path, Some(owner.uid), Some(owner.gid)))
}

fn cannot_make(path: &Path, error: &io::Error) -> StartError {
    StartError::new("directory", StartReason::CannotPrepare, format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_directory_goes_and_a_kept_one_stays() {
        let outer = PrivateDir::temporary("outer").expect("can be made");
        let kept = outer.path().join("kept");
        drop(PrivateDir::kept(&kept).expect("can be made"));
        assert!(kept.is_dir());
        let path = outer.path().to_owned();
        drop(outer);
        assert!(!path.exists());
    }

    #[test]
    fn a_socket_path_that_the_system_would_cut_is_refused() {
        let dir = PrivateDir::temporary("long").expect("can be made");
        let error = dir.socket(&"s".repeat(120)).expect_err("too long");
        assert_eq!(error.reason, StartReason::PathTooLong);
        assert!(suits_servers(dir.path()));
        assert!(!suits_servers(&dir.path().join("s".repeat(80))));
    }
}
