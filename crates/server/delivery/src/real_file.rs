//! Opens a file by its real path, without following a link: neither the last name nor a directory on the way may be
//! one.
//!
//! Which file is sent is decided by its real path (`origin::routes`, `forward::sendfile`). If a user of the machine
//! puts a link at that path or above it in the meantime, the open fails, so that no file outside of the permitted
//! directories is read. Each directory is opened relative to the one above it; no name is resolved twice.

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

/// Opens the file at this absolute path to read it. Does not wait for the writer of a FIFO.
///
/// # Errors
/// `NotFound` if there is no file, or a link on the way; otherwise the error of the system.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let on_the_way = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let last =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let mut names = path.components().peekable();
    let mut directory: Option<OwnedFd> = None;
    while let Some(name) = names.next() {
        let is_last = names.peek().is_none();
        let name = match (name, &directory) {
            (Component::RootDir, None) => Path::new("/"),
            (Component::Normal(name), Some(_)) => Path::new(name),
            _ => return Err(ErrorKind::NotFound.into()),
        };
        let flags = if is_last { last } else { on_the_way };
        let opened = match &directory {
            Some(above) => openat(above, name, flags, Mode::empty()),
            None => openat(CWD, name, flags, Mode::empty()),
        };
        let opened = opened.map_err(|error| match error {
            Errno::LOOP | Errno::NOTDIR => ErrorKind::NotFound.into(),
            error => io::Error::from(error),
        })?;
        if is_last {
            return Ok(File::from(opened));
        }
        directory = Some(opened);
    }
    Err(ErrorKind::NotFound.into())
}

#[cfg(test)]
mod tests {
    use super::open;
    use std::fs;
    use std::io::{ErrorKind, Read};
    use std::os::unix::fs::symlink;

    #[test]
    fn no_link_is_followed() {
        let place = std::env::temp_dir().join(format!("real-file-{}", std::process::id()));
        fs::create_dir_all(place.join("open/below")).unwrap();
        fs::create_dir_all(place.join("secret")).unwrap();
        let place = place.canonicalize().unwrap();
        fs::write(place.join("open/below/a"), "right").unwrap();
        fs::write(place.join("secret/a"), "secret").unwrap();
        let read = |path: &str| {
            let mut text = String::new();
            open(&place.join(path))?.read_to_string(&mut text)?;
            std::io::Result::Ok(text)
        };
        let is_missing = |path: &str| read(path).unwrap_err().kind() == ErrorKind::NotFound;
        assert_eq!(read("open/below/a").unwrap(), "right");
        assert!(is_missing("open/below/b") && is_missing("open/below/a/b"));
        assert!(open("open/below/a".as_ref()).is_err(), "the path is relative");
        // After the decision, the file is replaced by a link, then the directory.
        fs::remove_file(place.join("open/below/a")).unwrap();
        symlink(place.join("secret/a"), place.join("open/below/a")).unwrap();
        assert!(is_missing("open/below/a"));
        fs::remove_dir_all(place.join("open/below")).unwrap();
        symlink(place.join("secret"), place.join("open/below")).unwrap();
        assert!(is_missing("open/below/a"));
        fs::remove_dir_all(place).unwrap();
    }
}
