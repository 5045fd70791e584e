//! Files that are part of the configuration as used, and are read again when they change: redirect files, error pages.
//!
//! Not here: their names in the configuration (`config`), when they are looked at (`pagewell::periodic`), and what a
//! change does (`control::reload`).

mod error_pages;
mod redirect_files;

pub use error_pages::{ErrorPage, ErrorPages};
pub use redirect_files::{RedirectFiles, RedirectPlaces};

use rustix::fs::OFlags;
use std::fs::{File, Metadata, OpenOptions, metadata};
use std::io::{Error, Result};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use trusted_files::FileStamp;

/// A file as it was when Pagewell last read it or tried to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedFile {
    path: PathBuf,
    /// `None`: the system did not let it be read.
    look: Option<FileStamp>,
}

impl WatchedFile {
    /// A file that is read, with its metadata from before.
    pub fn of(path: PathBuf, found: &Metadata) -> WatchedFile {
        WatchedFile { path, look: Some(FileStamp::of(found)) }
    }

    /// A file that was tried in vain. If the system did not let it be read, it is tried again as soon as that may have
    /// ended; else after its next change.
    fn failed(path: PathBuf, failure: &ReadFailure) -> WatchedFile {
        WatchedFile { path, look: failure.look }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The same file as it is now.
    #[must_use]
    pub fn as_now(&self) -> WatchedFile {
        WatchedFile { path: self.path.clone(), look: FileStamp::at(&self.path) }
    }

    /// Whether the file has changed since it was last read or tried, or can be read again. Blocks while the disk does.
    pub fn is_changed(&self) -> bool {
        let found = metadata(&self.path).ok();
        match self.look {
            Some(_) => found.as_ref().map(FileStamp::of) != self.look,
            // The metadata may be the same as before, if the file was away for a moment.
            None => found.is_some_and(|found| !found.is_file() || open(&self.path).is_ok()),
        }
    }
}

/// Why a file could not be used.
struct ReadFailure {
    why: String,
    /// The file as it was tried; `None`: the system did not let it be read.
    look: Option<FileStamp>,
}

impl ReadFailure {
    /// A file that could be opened, and whose content cannot be used.
    fn of_content(why: String, found: &Metadata) -> ReadFailure {
        ReadFailure { why, look: Some(FileStamp::of(found)) }
    }

    /// A file that could not be opened or read.
    fn of_access(error: &Error, path: &Path) -> ReadFailure {
        // A refusal for its owner or its mode (`trusted_files`) ends with a change of the file.
        let is_of_system = error.raw_os_error().is_some();
        let look = if is_of_system { None } else { FileStamp::at(path) };
        ReadFailure { why: error.to_string(), look }
    }
}

/// A file that cannot be used as it is now. Its content from before counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusableFile {
    /// The path of the file.
    pub path: PathBuf,
    /// The reason, in a sentence without the path.
    pub why: String,
}

/// Opens a file without waiting for a writer, as a FIFO would.
fn open(path: &Path) -> Result<File> {
    let flags = OFlags::NONBLOCK.bits() as i32;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A directory with a file in it, which can be away for a moment without a change of the file.
    struct Mount(PathBuf);

    impl Mount {
        fn new(name: &str) -> Mount {
            let name = format!("pagewell-mount-{name}-{}", std::process::id());
            let mount = Mount(std::env::temp_dir().join(name));
            fs::create_dir_all(&mount.0).expect("a directory");
            fs::write(mount.file(), "/a\t/b\n").expect("written");
            mount
        }

        fn file(&self) -> PathBuf {
            self.0.join("a.tsv")
        }

        fn away(&self) -> PathBuf {
            self.0.with_extension("away")
        }

        fn leave(&self) {
            fs::rename(&self.0, self.away()).expect("moved");
        }

        fn come_back(&self) {
            fs::rename(self.away(), &self.0).expect("moved");
        }
    }

    impl Drop for Mount {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).expect("removed");
        }
    }

    #[test]
    fn a_file_that_was_away_is_read_once_it_is_back() {
        let mount = Mount::new("away");
        let path = mount.file();
        let file = WatchedFile::of(path.clone(), &metadata(&path).expect("a file"));
        assert!(!file.is_changed());
        mount.leave();
        assert!(file.is_changed());
        let error = fs::File::open(&path).expect_err("away");
        let tried = WatchedFile::failed(path.clone(), &ReadFailure::of_access(&error, &path));
        assert!(!tried.is_changed(), "it is tried once");
        mount.come_back();
        assert!(!file.is_changed(), "its metadata tell nothing");
        assert!(tried.is_changed(), "until it is back");
    }

    #[test]
    fn a_refused_file_is_tried_again_after_a_change_only() {
        let mount = Mount::new("refused");
        let path = mount.file();
        let found = metadata(&path).expect("a file");
        let refusal = Error::new(std::io::ErrorKind::PermissionDenied, "others may write it");
        for failure in [
            ReadFailure::of_content("line 1".into(), &found),
            ReadFailure::of_access(&refusal, &path),
        ] {
            let tried = WatchedFile::failed(path.clone(), &failure);
            assert!(!tried.is_changed(), "{}", failure.why);
        }
        let refused = ReadFailure::of_access(&refusal, &path);
        let tried = WatchedFile::failed(path.clone(), &refused);
        fs::write(&path, "/a\t/c/d\n").expect("written");
        assert!(tried.is_changed());
        let now = tried.as_now();
        assert!(!now.is_changed());
        mount.leave();
        assert!(now.is_changed() && !now.as_now().is_changed());
        mount.come_back();
        assert!(!now.is_changed());
    }

    #[test]
    fn files_that_were_away_are_usable_again() {
        let mount = Mount::new("usable");
        let form = site_rules::KeyForm::read(&site_rules::raw::Keys::default()).expect("defaults");
        let names = [mount.file().display().to_string()];
        let (map, files) = RedirectFiles::read(&names, &form, None).expect("fine");
        let written = [("404".to_owned(), PathBuf::from("a.tsv"))].into();
        let root = mount.0.canonicalize().expect("a directory");
        let read_pages = |before: Option<&ErrorPages>| {
            ErrorPages::read(&written, Some(&root), &|_| false, before).expect("fine")
        };
        let pages = read_pages(None);
        mount.leave();
        let before = Some((Some(&map), &files));
        let (map, files) = RedirectFiles::read(&names, &form, before).expect("from before");
        let pages = read_pages(Some(&pages));
        assert_eq!((map.len(), files.unusable.len(), pages.unusable().len()), (1, 1, 1));
        let are_changed = |files: &RedirectFiles, pages: &ErrorPages| {
            let all: Vec<_> = files.watched().chain(pages.watched()).collect();
            all.iter().map(WatchedFile::is_changed).collect::<Vec<_>>()
        };
        assert_eq!(are_changed(&files, &pages), [false, false]);
        mount.come_back();
        assert_eq!(are_changed(&files, &pages), [true, true]);
        let before = Some((Some(&map), &files));
        let (map, files) = RedirectFiles::read(&names, &form, before).expect("fine");
        let pages = read_pages(Some(&pages));
        assert_eq!((map.len(), files.unusable.len(), pages.unusable().len()), (1, 0, 0));
        assert_eq!(are_changed(&files, &pages), [false, false]);
    }
}
