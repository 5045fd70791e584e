//! `site.allow_symlinks`: the permitted targets of symbolic links below the document root.
//! Directories are resolved at the start, so that a file's real path can be compared with them.
//! Files that are never served, whatever links to them, are in `routes`.

use super::resolve::{LoadError, wrong};
use super::{Symlinks, raw};
use std::path::Path;

/// The sentence for a path that is no directory: it does not exist, or a symbolic link leads nowhere or in a circle.
pub(super) fn no_directory(path: &Path) -> String {
    let path_shown = path.display();
    match (path.symlink_metadata(), path.metadata()) {
        (Ok(_), Err(error)) => format!("{path_shown} leads to no directory: {error}"),
        _ => format!("there is no directory {path_shown}"),
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_leads_nowhere_is_told_from_a_missing_directory() {
        let dir = std::env::temp_dir().join(format!("pagewell-links-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory");
        let link = dir.join("loop");
        std::os::unix::fs::symlink("loop", &link).expect("a link");
        let (circle, missing) = (no_directory(&link), no_directory(&dir.join("x")));
        std::fs::remove_dir_all(&dir).expect("it is removed");
        assert!(circle.contains("loop leads to no directory: Too many levels"), "{circle}");
        assert!(missing.starts_with("there is no directory "), "{missing}");
    }
}
