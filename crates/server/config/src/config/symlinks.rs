//! `site.allow_symlinks`: the permitted targets of symbolic links below the document root.
//! Directories are resolved at the start, so that a file's real path can be compared with them.
//! Files that are never served, whatever links to them, are in `routes`.

use super::resolve::{LoadError, wrong};
use super::{Symlinks, raw};

/// Checks and completes `site.allow_symlinks`.
pub(super) fn resolve(written: Option<&raw::AllowSymlinks>) -> Result<Symlinks, LoadError> {
    const KEY: &str = "site.allow_symlinks";
    let directories = match written {
        None | Some(raw::AllowSymlinks::All(false)) => return Ok(Symlinks::InRoot),
        Some(raw::AllowSymlinks::All(true)) => return Ok(Symlinks::Anywhere),
        Some(raw::AllowSymlinks::Into(directories)) => directories,
    };
    let mut real = Vec::with_capacity(directories.len());
    for directory in directories {
        let named = directory.display();
        if !directory.is_absolute() {
            return wrong(KEY, format!("{named}: write the absolute path of a directory"));
        }
        match directory.canonicalize() {
            Ok(found) if found.parent().is_none() => {
                return wrong(KEY, "/ means every directory: write true instead");
            }
            Ok(found) if found.is_dir() => real.push(found),
            Ok(_) => return wrong(KEY, format!("{named} is no directory")),
            Err(error) => return wrong(KEY, format!("{named}: {error}")),
        }
    }
    Ok(Symlinks::Into(real))
}
