//! Writes the configuration: complete or not at all, and never over an existing file.
//!
//! The text is written to a new file beside it and renamed, without replacing anything. After an error the
//! new file is removed.

use crate::plan::shell_path;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The mode of the file. It has no password, and the service reads it.
const MODE: u32 = 0o644;

/// Writes `text` to the new file `path`. `shown` is its name for messages.
///
/// # Errors
/// The file exists, or cannot be written: what, where, and what to do.
pub fn write_new(path: &Path, shown: &Path, text: &str) -> Result<(), String> {
    if fs::symlink_metadata(path).is_ok() {
        return Err(exists(shown));
    }
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let beside = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let result = create(&beside, text).and_then(|()| {
        renameat_with(CWD, &beside, CWD, path, RenameFlags::NOREPLACE).map_err(io::Error::from)
    });
    result.map_err(|error| {
        if error.kind() != ErrorKind::AlreadyExists || path.exists() {
            let _ = fs::remove_file(&beside);
        }
        sentence(&error, shown)
    })
}

fn create(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
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
