//! Finds symbolic links below a document root that lead outside it and are not allowed to. Their paths
//! are answered with 404, and `pagewell check` and `pagewell doctor` warn about them.
//!
//! The search follows no links and examines a limited number of entries. Links whose own names are
//! never served are ignored, because allowing their targets would change nothing.

use super::{Below, Withheld, judge_target, unserved_in};
use config::FilesConfig;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Maximum number of directory entries that are examined.
const ENTRIES_MAX: usize = 100_000;
/// Maximum number of directories in the proposed configuration.
const DIRECTORIES_MAX: usize = 4;

/// The links that lead outside the document root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeadingOutside {
    /// The number of links.
    pub count: u64,
    /// One of the links: its path and its target.
    pub example: (PathBuf, PathBuf),
    /// At most four directories that contain all targets, for `site.allow_symlinks`.
    pub directories: Vec<PathBuf>,
}

impl LeadingOutside {
    /// The configuration line that would allow the links.
    pub fn allowing(&self) -> String {
        let named: Vec<String> =
            self.directories.iter().map(|one| format!("\"{}\"", one.display())).collect();
        format!("site.allow_symlinks = [{}]", named.join(", "))
    }
}

/// Finds the links that lead outside the document root; `None` if there are none.
pub fn leading_outside(files: &FilesConfig) -> Option<LeadingOutside> {
    let (mut waiting, mut seen) = (vec![files.root.clone()], 0);
    let (mut count, mut example, mut directories) = (0, None, BTreeSet::new());
    while let Some(dir) = waiting.pop() {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        for entry in entries.take(ENTRIES_MAX - seen) {
            seen += 1;
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => waiting.push(path),
                Ok(kind) if kind.is_symlink() && is_served(files, &path) => {
                    let Some(target) = target_outside(files, &path) else { continue };
                    count += 1;
                    directories.insert(directory_of(&target));
                    example.get_or_insert((path, target));
                }
                _ => {}
            }
        }
    }
    example.map(|example| LeadingOutside { count, example, directories: fewest(directories) })
}

fn is_served(files: &FilesConfig, path: &Path) -> bool {
    let below = path.strip_prefix(&files.root).unwrap_or(path);
    unserved_in(files, below.as_os_str().as_bytes(), 0, Below::Root).is_none()
}

fn target_outside(files: &FilesConfig, link: &Path) -> Option<PathBuf> {
    match judge_target(files, &link.canonicalize().ok()?) {
        Err(Withheld::LinkOutside(target)) => Some(target),
        _ => None,
    }
}

fn directory_of(target: &Path) -> PathBuf {
    match target.parent() {
        Some(parent) if !target.is_dir() => parent.to_owned(),
        _ => target.to_owned(),
    }
}

/// A few directories that contain all of these. If there are too many, the deepest are replaced by
/// their parents.
fn fewest(mut directories: BTreeSet<PathBuf>) -> Vec<PathBuf> {
    loop {
        let all: Vec<PathBuf> = directories.iter().cloned().collect();
        let is_below_other =
            |one: &PathBuf| all.iter().any(|other| other != one && one.starts_with(other));
        directories.retain(|one| !is_below_other(one));
        if directories.len() <= DIRECTORIES_MAX {
            return directories.into_iter().collect();
        }
        let deepest = directories.iter().max_by_key(|one| one.components().count()).cloned();
        let Some((one, parent)) =
            deepest.and_then(|one| Some((one.clone(), one.parent()?.to_owned())))
        else {
            return directories.into_iter().collect();
        };
        // The root of the file system is not proposed, because it would allow everything.
        if parent.parent().is_none() {
            return directories.into_iter().take(DIRECTORIES_MAX).collect();
        }
        directories.remove(&one);
        directories.insert(parent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_directories_contain_all() {
        let few = |all: &[&str]| {
            let found = fewest(all.iter().map(PathBuf::from).collect());
            found.iter().map(|one| one.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(few(&["/a/b", "/a", "/c"]), ["/a", "/c"]);
        let many = ["/s/j/a", "/s/j/b", "/s/j/c", "/s/j/d", "/s/k/e", "/etc/w"];
        assert_eq!(few(&many), ["/etc/w", "/s/j", "/s/k"]);
        assert_eq!(few(&["/a", "/b", "/c", "/d", "/e"]).len(), DIRECTORIES_MAX);
    }
}
