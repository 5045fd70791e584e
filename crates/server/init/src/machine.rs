//! The files of the machine that is examined, as text: bounded in size and number, and below a root
//! directory, so that tests examine a small tree in a temporary directory.
//!
//! Nothing is executed, and nothing but regular files is opened for reading: no device, no FIFO. Files of
//! a site may be written by its user, and root runs this program. So a symbolic link to a file of a site, or in the
//! path to it, is followed only to what the link's own owner has, or if it belongs to root
//! ([`ExaminedMachine::site_text`]).

use rule_conditions::fits_name;
use rustix::fs::OFlags;
use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

/// Maximum length of a file that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Maximum number of names of a directory that are looked at.
const NAMES_MAX: usize = 10_000;
/// Maximum number of symbolic links that follow each other.
const LINKS_MAX: usize = 16;

/// A machine, seen through its files.
#[derive(Debug, Clone)]
pub struct ExaminedMachine {
    root: PathBuf,
}

/// A file that exists and could not be read, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableFile {
    /// The path on the machine.
    pub path: PathBuf,
    /// The reason, as the end of a sentence.
    pub reason: String,
}

impl fmt::Display for UnreadableFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.path.display(), self.reason)
    }
}

impl ExaminedMachine {
    /// The machine whose root directory is `root`: `/`, or a tree of a test.
    #[must_use]
    pub fn new(root: PathBuf) -> ExaminedMachine {
        ExaminedMachine { root }
    }

    /// The path to open for a path on the machine.
    #[must_use]
    pub fn real(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Information on a file or directory; links are followed.
    ///
    /// # Errors
    /// The error of the system.
    pub fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        fs::metadata(self.real(path))
    }

    /// Whether there is such a directory.
    #[must_use]
    pub fn is_dir(&self, path: &Path) -> bool {
        self.metadata(path).is_ok_and(|found| found.is_dir())
    }

    /// Whether there is such a file.
    #[must_use]
    pub fn is_file(&self, path: &Path) -> bool {
        self.metadata(path).is_ok_and(|found| found.is_file())
    }

    /// The sorted names in a directory; none if it cannot be read.
    #[must_use]
    pub fn names(&self, dir: &Path) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.real(dir)) else { return Vec::new() };
        let names = entries.take(NAMES_MAX).flatten();
        let mut names: Vec<_> =
            names.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// The files that a pattern matches, sorted. A `*` in a component stands for any text.
    #[must_use]
    pub fn matching(&self, pattern: &str) -> Vec<PathBuf> {
        let mut found = vec![PathBuf::from("/")];
        for part in pattern.split('/').filter(|part| !part.is_empty()) {
            found = found.iter().flat_map(|dir| self.children(dir, part)).take(NAMES_MAX).collect();
        }
        found.retain(|path| self.is_file(path));
        found
    }

    fn children(&self, dir: &Path, part: &str) -> Vec<PathBuf> {
        if !part.contains('*') {
            return vec![dir.join(part)];
        }
        let names = self.names(dir).into_iter();
        names
            .filter(|name| fits_name(part.as_bytes(), name.as_bytes()))
            .map(|name| dir.join(name))
            .collect()
    }

    /// The target of a symbolic link, such as those in `/proc/PID/fd`.
    #[must_use]
    pub fn link_target(&self, path: &Path) -> Option<String> {
        fs::read_link(self.real(path)).ok()?.into_os_string().into_string().ok()
    }

    /// The path to which a path leads, if its last component is a symbolic link, and so on, without `.` and `..`.
    /// Directories are not resolved.
    #[must_use]
    pub fn followed(&self, path: &Path) -> PathBuf {
        let mut found = path.to_owned();
        for _ in 0..LINKS_MAX {
            let Some(target) = self.link_target(&found) else { break };
            found = without_dots(&found.with_file_name(target));
        }
        found
    }

    /// The text of a file of the system; `None` if there is no such file.
    ///
    /// # Errors
    /// It exists and cannot be read.
    pub fn text(&self, path: &Path) -> Result<Option<String>, UnreadableFile> {
        self.read(path, OFlags::empty())
    }

    /// The text of a file of the system; `None` also if it cannot be read.
    #[must_use]
    pub fn text_or_none(&self, path: impl AsRef<Path>) -> Option<String> {
        self.text(path.as_ref()).ok().flatten()
    }

    /// The text of a file of a site; `None` if there is no such file. Bytes that are not UTF-8 are replaced.
    ///
    /// # Errors
    /// It exists and cannot be read, or it or a directory above it is a link to what another user owns.
    pub fn site_text(&self, path: &Path) -> Result<Option<String>, UnreadableFile> {
        match path.ancestors().find(|part| self.is_foreign_link(part)) {
            Some(link) => {
                let reason = if link == path {
                    "is a link to the file of another user, and was not read".into()
                } else {
                    let link = link.display();
                    format!(
                        "is behind {link}, a link to a directory of another user, and was not read"
                    )
                };
                Err(UnreadableFile { path: path.to_owned(), reason })
            }
            None => self.read(path, OFlags::empty()),
        }
    }

    /// Whether a path is a symbolic link of a user, not of root, to a file or directory of another user.
    fn is_foreign_link(&self, path: &Path) -> bool {
        let Ok(link) = fs::symlink_metadata(self.real(path)) else { return false };
        let is_foreign = |target: Metadata| target.uid() != link.uid();
        link.is_symlink() && link.uid() != 0 && self.metadata(path).is_ok_and(is_foreign)
    }

    fn read(&self, path: &Path, flags: OFlags) -> Result<Option<String>, UnreadableFile> {
        let failed = |reason: String| UnreadableFile { path: path.to_owned(), reason };
        let flags = (flags | OFlags::NONBLOCK).bits() as i32;
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(self.real(path));
        let file = match opened {
            Ok(file) => file,
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(failed(reason(&error))),
        };
        if file.metadata().map_or(true, |found| !found.is_file()) {
            return Err(failed("is not a regular file".into()));
        }
        bounded(file).map(Some).map_err(failed)
    }
}

/// An absolute path without `.` and `..`. Symbolic links are not resolved.
pub(crate) fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

/// The error of the system as the end of a sentence.
fn reason(error: &io::Error) -> String {
    match error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
        Some(rustix::io::Errno::LOOP) => "is a loop of symbolic links".into(),
        Some(rustix::io::Errno::ACCESS) => "may not be read by this user; run it with sudo".into(),
        _ => format!("cannot be read ({error})"),
    }
}

fn bounded(file: File) -> Result<String, String> {
    let mut bytes = Vec::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| reason(&error))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("is longer than {} MiB, and was not read", FILE_BYTES_MAX >> 20));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
