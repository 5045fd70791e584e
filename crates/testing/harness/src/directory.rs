//! A private directory for one server: temporary and removed at the end, or given by the caller and kept.
//!
//! Servers change users, so every user can traverse the directory (mode 0711), but only its owner can list it.
//! Secrets are in files and directories of mode 0600 and 0700 below. The name is short, because the path of a
//! Unix socket may have only 107 bytes.

use crate::users::{self, Account};
use crate::{StartError, StartReason, keeper};
use random_number::random_number;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

/// The maximum length of a Unix socket's path: `sun_path` has 108 bytes, the last of them zero.
const SOCKET_PATH_BYTES: usize = 107;

/// The bytes reserved for the name of a socket in a server's directory.
const SOCKET_NAME_BYTES: usize = 24;

/// A directory that belongs to one server.
#[derive(Debug)]
pub struct PrivateDir {
    path: PathBuf,
    /// Whether it is removed when this is dropped.
    is_temporary: bool,
}

impl PrivateDir {
    /// Creates a directory in the system's temporary directory. It is removed on drop, and also if this process
    /// dies. Its name contains `name`.
    ///
    /// # Errors
    /// `CannotPrepare` if it cannot be created.
    pub fn temporary(name: &str) -> Result<PrivateDir, StartError> {
        Self::temporary_in(&std::env::temp_dir(), name)
    }

    /// Creates a temporary directory below `parent`, for instance `/dev/shm`.
    ///
    /// # Errors
    /// `CannotPrepare` if it cannot be created.
    pub fn temporary_in(parent: &Path, name: &str) -> Result<PrivateDir, StartError> {
        let number = random_number() & 0xffff_ffff;
        let path = parent.join(format!("{}{name}-{number:08x}", keeper::REMOVABLE));
        create(&path).map_err(|error| cannot_make(&path, &error))?;
        keeper::watch_dir(&path);
        Ok(PrivateDir { path, is_temporary: true })
    }

    /// Uses `path`, which is created if it does not exist, and keeps it on drop.
    ///
    /// # Errors
    /// `CannotPrepare` if it cannot be created.
    pub fn kept(path: &Path) -> Result<PrivateDir, StartError> {
        if !path.is_dir() {
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(|error| cannot_make(parent, &error))?;
            }
            create(path).map_err(|error| cannot_make(path, &error))?;
        }
        let path = path.canonicalize().map_err(|error| cannot_make(path, &error))?;
        Ok(PrivateDir { path, is_temporary: false })
    }

    /// Whether it is removed when this is dropped.
    pub(crate) fn is_temporary(&self) -> bool {
        self.is_temporary
    }

    /// The absolute path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a subdirectory (mode 0700) that belongs to `owner`, or to the current user if that is `None`.
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

    /// Writes a file in the directory.
    pub(crate) fn file(&self, name: &str, content: &str) -> Result<PathBuf, StartError> {
        let path = self.path.join(name);
        fs::write(&path, content).map_err(|error| cannot_make(&path, &error))?;
        Ok(path)
    }

    /// Writes the input of a program to an unnamed file, because with a pipe both processes could block.
    pub(crate) fn spooled(&self, input: &str) -> io::Result<File> {
        let number = rustix::thread::gettid().as_raw_nonzero();
        let path = self.path.join(format!("input.{number}"));
        let mut file =
            File::options().create(true).truncate(true).read(true).write(true).open(&path)?;
        fs::remove_file(&path)?;
        file.write_all(input.as_bytes())?;
        file.rewind()?;
        Ok(file)
    }

    /// The path for a Unix socket in the directory.
    pub(crate) fn socket(&self, name: &str) -> Result<PathBuf, StartError> {
        let path = self.path.join(name);
        let length = path.as_os_str().as_bytes().len();
        if length > SOCKET_PATH_BYTES {
            let detail = format!("{} has {length} bytes; set TMPDIR shorter", path.display());
            return Err(StartError::new(name, StartReason::PathTooLong, detail));
        }
        Ok(path)
    }

    /// Changes the owner of the directory, so that servers of that user can create sockets and files in it.
    pub(crate) fn give_to(&self, owner: Option<&Account>) -> Result<(), StartError> {
        give(&self.path, owner).map_err(|error| cannot_make(&self.path, &error))
    }
}

/// Whether servers of other users can enter a directory, and its path is short enough for a Unix socket.
#[must_use]
pub fn suits_servers(path: &Path) -> bool {
    let mode = |dir: &Path| fs::metadata(dir).map_or(0o001, |found| found.permissions().mode());
    let passable = !users::am_root() || path.ancestors().all(|dir| mode(dir) & 0o001 != 0);
    passable && path.as_os_str().as_bytes().len() + SOCKET_NAME_BYTES <= SOCKET_PATH_BYTES
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        if self.is_temporary {
            let _ = fs::remove_dir_all(&self.path);
            keeper::forget_dir(&self.path);
        }
    }
}

/// Makes the socket in a directory accessible to all users, such as that of php-fpm; accounts protect the data.
pub(crate) fn open_to_all(dir: &Path) -> Result<(), StartError> {
    fs::set_permissions(dir, Permissions::from_mode(0o711))
        .map_err(|error| cannot_make(dir, &error))
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
