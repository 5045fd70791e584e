//! `site.internal_files`: the directories whose files are sent if the application names them.
//! Directories are resolved at the start, so that a file's real path can be compared with them.
//! Which file a response names is in `forward::sendfile`.

use super::InternalDirectory;
use super::resolve::{LoadError, wrong};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Checks and completes `site.internal_files`, for this document root. The longest path is first.
pub(super) fn resolve(
    written: &BTreeMap<String, PathBuf>,
    root: &Path,
) -> Result<Vec<InternalDirectory>, LoadError> {
    const KEY: &str = "site.internal_files";
    let mut all = Vec::with_capacity(written.len());
    for (prefix, directory) in written {
        let is_plain = prefix.split('/').all(|segment| !matches!(segment, "." | ".."));
        if !(prefix.starts_with('/') && prefix.ends_with('/') && is_plain) || prefix.contains("//")
        {
            return wrong(KEY, format!("{prefix:?}: write a path such as \"/protected/\""));
        }
        let named = directory.display();
        if !directory.is_absolute() {
            return wrong(KEY, format!("{named}: write the absolute path of a directory"));
        }
        match directory.canonicalize() {
            Ok(found) if found.parent().is_none() => {
                return wrong(KEY, "/ has all files of the machine: name a directory");
            }
            Ok(found) if root.starts_with(&found) => {
                let why = "has the document root in it, whose files would be sent to nobody else";
                return wrong(KEY, format!("{named} {why}"));
            }
            Ok(directory) if directory.is_dir() => {
                all.push(InternalDirectory { prefix: prefix.clone(), directory });
            }
            Ok(_) => return wrong(KEY, format!("{named} is no directory")),
            Err(error) => return wrong(KEY, format!("{named}: {error}")),
        }
    }
    all.sort_by_key(|one| std::cmp::Reverse(one.prefix.len()));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_named_by_a_path_with_slashes() {
        let read = |prefix: &str, directory: &str| {
            let written = [(prefix.to_owned(), PathBuf::from(directory))].into();
            resolve(&written, Path::new("/usr/share")).map_err(|error| error.0)
        };
        assert_eq!(read("/p/", "/tmp/").unwrap()[0].prefix, "/p/");
        for (prefix, directory, part) in [
            ("p/", "/tmp", "write a path"),
            ("/p", "/tmp", "write a path"),
            ("/p/../", "/tmp", "write a path"),
            ("//", "/tmp", "write a path"),
            ("/p/", "tmp", "absolute"),
            ("/p/", "/", "all files"),
            ("/p/", "/usr", "document root"),
            ("/p/", "/no-such", "/no-such"),
            ("/p/", "/etc/passwd", "no directory"),
        ] {
            let said = read(prefix, directory).unwrap_err();
            assert!(said.contains(part), "{prefix} {directory}: {said}");
        }
    }
}
