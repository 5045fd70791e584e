//! Writes the configuration: complete or not at all, and never over an existing file.
//!
//! The text is written to a new file beside it and renamed, without replacing anything. File systems that cannot do that
//! (NFS, older ZFS) get a second name for the file instead. After an error the new file is removed.

use crate::plan::shell_path;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The mode of the file. It has no password, and the service reads it.
const MODE: u32 = 0o644;
/// Maximum number of names that are tried for the new file. A process that was killed leaves its file.
const NAMES_MAX: usize = 100;

/// Writes `text` to the new file `path`. `shown` is its name for messages.
///
/// # Errors
/// The file exists, or cannot be written: what, where, and what to do.
pub fn write_new(path: &Path, shown: &Path, text: &str) -> Result<(), String> {
    if fs::symlink_metadata(path).is_ok() {
        return Err(exists(shown));
    }
    let beside = create_beside(path, text).map_err(|error| sentence(&error, shown))?;
    rename_new(&beside, path).map_err(|error| {
        let _ = fs::remove_file(&beside);
        sentence(&error, shown)
    })
}

/// Creates a file with this text beside `path`. After an error there is none.
fn create_beside(path: &Path, text: &str) -> io::Result<PathBuf> {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    for attempt in 0..NAMES_MAX {
        let beside = path.with_file_name(format!(".{name}.{}.{attempt}", std::process::id()));
        let opened = OpenOptions::new().write(true).create_new(true).mode(MODE).open(&beside);
        let mut file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
        };
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        if written.is_err() {
            let _ = fs::remove_file(&beside);
        }
        return written.map(|()| beside);
    }
    Err(io::Error::other(format!("remove the files .{name}.* beside it, which were left there")))
}

/// Renames a file, if there is none of the new name.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => link_new(from, to),
        renamed => renamed.map_err(io::Error::from),
    }
}

/// Does the same in two steps: the second name, which replaces nothing, and the end of the first.
fn link_new(from: &Path, to: &Path) -> io::Result<()> {
    fs::hard_link(from, to)?;
    let _ = fs::remove_file(from);
    Ok(())
}

fn exists(path: &Path) -> String {
    let (shown, other) = (path.display(), shell_path(&path.with_extension("new.toml")));
    format!("{shown} exists, and is not overwritten: choose another file, such as --output {other}")
}

fn sentence(error: &io::Error, path: &Path) -> String {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (shown, quoted) = (path.display(), shell_path(dir));
    let why = match error.kind() {
        ErrorKind::AlreadyExists => return exists(path),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            format!("the disk is full; `df -h {quoted}` shows it: free some space, or choose --output on another disk")
        }
        ErrorKind::PermissionDenied => {
            "this user may not write there; run the command with sudo, or choose --output in a directory of yours".into()
        }
        ErrorKind::ReadOnlyFilesystem => {
            format!("the file system of {quoted} is read-only; `findmnt -T {quoted}` shows it: choose --output on another one")
        }
        ErrorKind::NotFound => format!("there is no directory {}; create it: sudo mkdir -p {quoted}", dir.display()),
        _ => format!("{error}; choose another file by --output"),
    };
    format!("{shown} was not written: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_rename_that_replaces_nothing_a_second_name_replaces_nothing() {
        let dir = std::env::temp_dir().join(format!("pw-init-write-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory");
        let [from, to] = [".new", "pagewell.toml"].map(|name| dir.join(name));
        fs::write(&from, "new").expect("a file");
        link_new(&from, &to).expect("it is new");
        assert!(!from.exists());
        fs::write(&from, "newer").expect("a file");
        let error = link_new(&from, &to).expect_err("it exists");
        let text = fs::read_to_string(&to).expect("the first file");
        fs::remove_dir_all(&dir).expect("the directory of the test");
        assert_eq!((error.kind(), text.as_str()), (ErrorKind::AlreadyExists, "new"));
    }

    #[test]
    fn a_failure_names_its_remedy() {
        let path = Path::new("/etc/pagewell/pagewell.toml");
        for (errno, part) in [
            (rustix::io::Errno::NOSPC, "df -h /etc/pagewell"),
            (rustix::io::Errno::ROFS, "findmnt -T /etc/pagewell"),
            (rustix::io::Errno::ACCESS, "sudo"),
            (rustix::io::Errno::NOENT, "mkdir -p /etc/pagewell"),
            (rustix::io::Errno::EXIST, "--output /etc/pagewell/pagewell.new.toml"),
        ] {
            let said = sentence(&errno.into(), path);
            assert!(
                said.contains(part) && said.starts_with("/etc/pagewell/pagewell.toml"),
                "{said}"
            );
        }
    }
}
