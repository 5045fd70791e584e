//! Caches the real paths of scripts for one second.
//!
//! To resolve a script's symbolic links, and check that it may be served, takes a system call per path
//! component. A cached result is used while the file at the path has the same device and inode. So if a
//! deployment switches a link or replaces a file, the next request uses the new one. Missing files, and
//! files that may not be served, are not cached. If a parent directory is moved and replaced by a link
//! to it, the inode stays the same; the limit of one second covers this case.
//!
//! Bounded: if there are more than [`SCRIPTS_MAX`] scripts, all entries are discarded.

use http_cache::Timestamp;
use std::collections::HashMap;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

/// Maximum age of an entry, in milliseconds.
const FOUND_MS: u64 = 1_000;
/// Maximum number of scripts; sufficient for an application with one script per component.
const SCRIPTS_MAX: usize = 256;

/// The cached real paths of scripts.
#[derive(Default)]
pub struct PathCache {
    /// The entries by requested path. Locked to look up or add one entry.
    found: RwLock<HashMap<Box<[u8]>, ResolvedPath>>,
}

struct ResolvedPath {
    real: PathBuf,
    device: u64,
    inode: u64,
    found_ms: u64,
}

impl PathCache {
    /// The real path of the script at `full`, whose metadata is `there`. `None` unless it was resolved
    /// within the last second and is the same file.
    pub fn get(&self, full: &Path, there: &Metadata, now: Timestamp) -> Option<PathBuf> {
        let all = self.found.read().unwrap_or_else(PoisonError::into_inner);
        let found = all.get(full.as_os_str().as_bytes())?;
        let is_same = found.inode == there.ino() && found.device == there.dev();
        let is_young = now.0.saturating_sub(found.found_ms) < FOUND_MS;
        (is_same && is_young).then(|| found.real.clone())
    }

    /// Records that the script at `full`, with the metadata `there`, has the real path `real` and may
    /// be served. `now` must have been read before the path was resolved.
    pub fn note(&self, full: &Path, there: &Metadata, real: &Path, now: Timestamp) {
        let found = ResolvedPath {
            real: real.to_owned(),
            device: there.dev(),
            inode: there.ino(),
            found_ms: now.0,
        };
        let mut all = self.found.write().unwrap_or_else(PoisonError::into_inner);
        let full = full.as_os_str().as_bytes();
        if all.len() >= SCRIPTS_MAX && !all.contains_key(full) {
            all.clear();
        }
        all.insert(full.into(), found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_resolved_path_is_used_for_a_second_and_for_the_same_file() {
        let dir = std::env::temp_dir().join(format!("pagewell-resolved-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let (one, other) = (dir.join("one.php"), dir.join("other.php"));
        fs::write(&one, "1").unwrap();
        fs::write(&other, "2").unwrap();
        let there = |path: &Path| fs::metadata(path).unwrap();
        let resolved = PathCache::default();
        let get = |full: &Path, at| resolved.get(full, &there(full), Timestamp(at));
        resolved.note(&one, &there(&one), Path::new("/real"), Timestamp(5_000));
        assert_eq!(get(&one, 5_999), Some(PathBuf::from("/real")));
        assert_eq!(get(&one, 6_000), None);
        assert_eq!(get(&other, 5_000), None);
        fs::rename(&other, &one).unwrap();
        assert_eq!(get(&one, 5_000), None);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn there_are_never_too_many() {
        let resolved = PathCache::default();
        let there = fs::metadata("/").unwrap();
        for n in 0..=SCRIPTS_MAX {
            let full = PathBuf::from(format!("/{n}.php"));
            resolved.note(&full, &there, &full, Timestamp(0));
            assert!(resolved.found.read().unwrap().len() <= SCRIPTS_MAX);
        }
        let last = PathBuf::from(format!("/{SCRIPTS_MAX}.php"));
        assert_eq!(resolved.get(&last, &there, Timestamp(0)), Some(last.clone()));
    }
}
