//! Files that are part of the configuration as used, and are read again when they change: redirect files, error pages.
//!
//! Not here: their names in the configuration (`config`), when they are looked at (`pagewell::periodic`), and what a
//! change does (`control::reload`).

mod error_pages;
mod redirect_files;

pub use error_pages::{ErrorPage, ErrorPages};
pub use redirect_files::RedirectFiles;

use std::fs::{Metadata, metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file as it was when it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedFile {
    path: PathBuf,
    look: FileLook,
}

/// The signs of a changed file: device, inode, size, and the time of its last change.
pub type FileLook = Option<(u64, u64, u64, i64, i64)>;

impl WatchedFile {
    /// A file that is read, with its metadata from before.
    pub fn of(path: PathBuf, found: &Metadata) -> WatchedFile {
        WatchedFile { path, look: look_of(found) }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file as it is now; `None` if it has not changed.
    pub fn changed(&self) -> Option<(&PathBuf, FileLook)> {
        let now = metadata(&self.path).ok().as_ref().and_then(look_of);
        (now != self.look).then_some((&self.path, now))
    }
}

fn look_of(found: &Metadata) -> FileLook {
    Some((found.dev(), found.ino(), found.size(), found.ctime(), found.ctime_nsec()))
}
