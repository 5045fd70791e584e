//! The cached files of the document root, and their compressed forms. It does not answer requests:
//! `static_files` does.
//!
//! A file in memory is compared with the disk (time of the last change, length, inode) if the last comparison
//! is more than a second old. A file that was requested by its own path is remembered by that path for
//! a second; during that time the hit path sends it without accessing the file system
//! ([`FileCache::found`]). The memory is limited: if it is full, files that were not requested since the
//! last clean-up are removed first.
//!
//! Locks: `kept`, then `found`; each to look up or add one file, never during disk access or
//! compression.

use crate::coding_queue::PLAIN_BYTES;
use crate::real_file;
use bytes::Bytes;
use http::HeaderMap;
use http_cache::codings::Coding;
use http_cache::{Forms, StoredResponse, Timestamp};
use site_state::SiteState;
use std::collections::HashMap;
use std::fs::Metadata;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, Weak};
use stored_pages::content_encoding::make_for_file;
use stored_pages::page::{IdentityContent, NewPage, SharedPage};

/// Files up to this size in bytes are cached in memory.
pub(crate) const SMALL_BYTES: u64 = PLAIN_BYTES as u64;

/// Files up to this size in bytes are cached in compressed forms.
const CODED_BYTES: u64 = 4 << 20;

/// Maximum age of the last comparison with the disk, in milliseconds.
const LOOK_MS: u64 = 1_000;

/// Memory per file in addition to content and path, in bytes: header fields, and prepared responses.
const OVERHEAD_BYTES: usize = 4 << 10;

/// Identifies one state of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) modified_ns: i128,
    /// The time of the last change of content or metadata (`ctime`). Programs cannot set it.
    changed_ns: i128,
    pub(crate) length: u64,
    inode: u64,
}

impl Version {
    pub(crate) fn of(found: &Metadata) -> Version {
        let nanoseconds =
            |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        Version {
            modified_ns: nanoseconds(found.mtime(), found.mtime_nsec()),
            changed_ns: nanoseconds(found.ctime(), found.ctime_nsec()),
            length: found.len(),
            inode: found.ino(),
        }
    }

    /// A strong validator: every way to replace a file changes the time of the last change in
    /// nanoseconds. The modification time does not suffice: deployments set it, often to the same time
    /// for every file, and a new file can get the inode of the old one.
    pub(crate) fn etag(self) -> String {
        format!("\"{:x}-{:x}-{:x}\"", self.changed_ns, self.length, self.inode)
    }
}

/// A cached file: complete if it is small, else only in compressed forms.
pub(crate) struct CachedFile {
    pub(crate) version: Version,
    pub(crate) stored: StoredResponse,
    /// The uncompressed content; `None` for a large file.
    pub(crate) content: Option<Bytes>,
    /// The compressed forms, once they have been made, the smallest first.
    coded: OnceLock<FileForms>,
    looked_ms: AtomicU64,
    asked_for: AtomicBool,
    /// The URL path by which it was found.
    at: OnceLock<Box<str>>,
    /// When it was last found there, in milliseconds.
    found_ms: AtomicU64,
    /// The number of the configuration under which it was last found there (`SiteState::reading`); 0: of none.
    found_under: AtomicU64,
    /// The hash of the rules for response fields under which plain hits are laid out, and the fields, if they differ
    /// from those of `stored`.
    shown: OnceLock<(u64, Option<HeaderMap>)>,
    /// The prepared responses for plain hits: without and with compressed forms.
    laid_out: [OnceLock<SharedPage>; 2],
}

/// The compressed forms of a file, the smallest first.
struct FileForms {
    codings: Vec<Coding>,
    contents: Vec<Bytes>,
}

impl CachedFile {
    pub(crate) fn codings(&self) -> &[Coding] {
        self.coded.get().map_or(&[], |coded| &coded.codings)
    }

    pub(crate) fn content_in(&self, coding: Coding) -> Option<Bytes> {
        let coded = self.coded.get()?;
        let at = coded.codings.iter().position(|other| *other == coding)?;
        coded.contents.get(at).cloned()
    }

    /// The prepared response for plain hits; `None` if no content is in memory yet.
    fn laid_out(&self) -> Option<&SharedPage> {
        let coded = self.coded.get();
        let place = &self.laid_out[usize::from(coded.is_some())];
        if let Some(page) = place.get() {
            return Some(page);
        }
        let plain = match (&self.content, coded) {
            (Some(content), _) => IdentityContent::Shared(content.clone()),
            (None, Some(_)) => IdentityContent::InCodings(self.version.length as usize),
            (None, None) => return None,
        };
        let coded = coded.map_or(Vec::new(), |coded| {
            coded.codings.iter().copied().zip(coded.contents.iter().cloned()).collect()
        });
        let shown = || {
            let mut stored = self.stored.clone();
            if let Some((_, Some(fields))) = self.shown.get() {
                stored.headers.clone_from(fields);
            }
            stored
        };
        Some(place.get_or_init(|| NewPage::of_file(shown(), plain, coded).apart()))
    }

    /// The memory that the file uses if it is cached under `path`, in bytes.
    fn cost(&self, path: &Path) -> u64 {
        let whole = self.content.as_ref().map_or(0, Bytes::len);
        let coded = self.coded.get().map_or(0, |c| c.contents.iter().map(Bytes::len).sum());
        (whole + coded + 2 * path.as_os_str().len() + OVERHEAD_BYTES) as u64
    }
}

impl CachedFile {
    pub(crate) fn new(
        version: Version,
        stored: StoredResponse,
        content: Option<Bytes>,
        now: Timestamp,
    ) -> CachedFile {
        CachedFile {
            version,
            stored,
            content,
            coded: OnceLock::new(),
            looked_ms: AtomicU64::new(now.0),
            asked_for: AtomicBool::new(true),
            at: OnceLock::new(),
            found_ms: AtomicU64::new(0),
            found_under: AtomicU64::new(0),
            shown: OnceLock::new(),
            laid_out: [const { OnceLock::new() }; 2],
        }
    }
}

/// The hash of the rules for response fields, and what returns the fields of plain hits for those of a file.
pub type LaidFields<'a> = (u64, &'a dyn Fn(&HeaderMap) -> Option<HeaderMap>);

/// The cached files of a site.
pub struct FileCache {
    /// The cached files by path. Locked to look up or add one file, never during disk access or
    /// compression.
    kept: RwLock<HashMap<PathBuf, Arc<CachedFile>>>,
    /// The files of `kept` by URL path. Locked to look up or add one file. May be locked while `kept`
    /// is, but not the other way round.
    found: RwLock<HashMap<Box<str>, Weak<CachedFile>>>,
    bytes: AtomicU64,
    budget_bytes: u64,
}

impl FileCache {
    /// An empty cache for at most `budget_bytes` of files.
    pub fn new(budget_bytes: u64) -> FileCache {
        FileCache {
            kept: RwLock::default(),
            found: RwLock::default(),
            bytes: AtomicU64::new(0),
            budget_bytes,
        }
    }

    /// Records that the file was just found by this URL path (as it was sent, without the query), under the configuration
    /// with this number. Ignored unless it is the file's own path, as opposed to an encoded or equivalent one. `laid` has
    /// the hash of the rules for response fields, and returns the fields of plain hits if they differ from those of the
    /// file.
    pub fn note_found(
        &self,
        root: &Path,
        (at, configuration): (&str, u64),
        path: &Path,
        laid: LaidFields<'_>,
    ) {
        let below = path.strip_prefix(root).ok().and_then(Path::to_str);
        let is_own = |below: &str| {
            let at = at.strip_prefix('/');
            at == Some(below) || at.is_some() && at == below.strip_suffix("index.html")
        };
        let Some(kept) = below.filter(|below| is_own(below)).and_then(|_| self.get(path)) else {
            return;
        };
        if **kept.at.get_or_init(|| at.into()) != *at {
            return;
        }
        let (print, fields) = laid;
        if kept.shown.get_or_init(|| (print, fields(&kept.stored.headers))).0 != print {
            // It was laid out under other rules: the next request reads it again.
            self.remove(path, &kept);
            return;
        }
        kept.found_under.store(configuration, Ordering::Relaxed);
        kept.found_ms.store(kept.looked_ms.load(Ordering::Relaxed), Ordering::Relaxed);
        let same = |known: &Weak<CachedFile>| std::ptr::eq(known.as_ptr(), Arc::as_ptr(&kept));
        let found = self.found.read().unwrap_or_else(PoisonError::into_inner);
        if found.get(at).is_some_and(same) {
            return;
        }
        drop(found);
        // While `kept` is locked, so that a file that is removed concurrently is removed from `found`
        // afterwards, not before.
        let all = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        if all.get(path).is_some_and(|now| Arc::ptr_eq(now, &kept)) {
            let mut found = self.found.write().unwrap_or_else(PoisonError::into_inner);
            found.insert(at.into(), Arc::downgrade(&kept));
        }
    }

    /// The prepared response for the file that was found by this URL path (as it was sent) within the last second, under
    /// the configuration with this number: by another one, a rule may answer, or change the fields.
    pub fn found(&self, at: &str, configuration: u64, now: Timestamp) -> Option<SharedPage> {
        let found = self.found.read().unwrap_or_else(PoisonError::into_inner);
        let kept = found.get(at)?.upgrade()?;
        drop(found);
        if now.0.saturating_sub(kept.found_ms.load(Ordering::Relaxed)) >= LOOK_MS {
            return None;
        }
        if kept.found_under.load(Ordering::Relaxed) != configuration {
            return None;
        }
        if !kept.asked_for.load(Ordering::Relaxed) {
            kept.asked_for.store(true, Ordering::Relaxed);
        }
        kept.laid_out().cloned()
    }

    /// The cached file, if it is cached and unchanged on the disk.
    pub(crate) fn in_memory(
        &self,
        path: &Path,
        now: Timestamp,
    ) -> io::Result<Option<Arc<CachedFile>>> {
        let Some(kept) = self.get(path) else { return Ok(None) };
        if now.0.saturating_sub(kept.looked_ms.load(Ordering::Relaxed)) >= LOOK_MS {
            if Version::of(&std::fs::metadata(path)?) != kept.version {
                return Ok(None);
            }
            kept.looked_ms.store(now.0, Ordering::Relaxed);
        }
        kept.asked_for.store(true, Ordering::Relaxed);
        Ok(Some(kept))
    }

    fn get(&self, path: &Path) -> Option<Arc<CachedFile>> {
        self.kept.read().unwrap_or_else(PoisonError::into_inner).get(path).cloned()
    }

    /// Caches a file. Returns whether it is to be compressed. A large file that is not compressible is
    /// not cached.
    pub(crate) fn insert(&self, path: &Path, kept: CachedFile) -> (Arc<CachedFile>, bool) {
        let kept = Arc::new(kept);
        let codable = kept.stored.forms == Forms::ByCoding && kept.version.length <= CODED_BYTES;
        if kept.content.is_none() && !codable {
            return (kept, false);
        }
        let mut all = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        self.bytes.fetch_add(kept.cost(path), Ordering::Relaxed);
        if let Some(old) = all.insert(path.to_owned(), kept.clone()) {
            self.bytes.fetch_sub(old.cost(path), Ordering::Relaxed);
            self.forget(&old);
        }
        self.make_room(&mut all);
        drop(all);
        (kept, codable)
    }

    /// Makes the compressed forms of a cached file. Reads the disk and compresses, so do not call it in
    /// a worker thread.
    ///
    /// # Errors
    /// A large file cannot be read, for example because it was removed.
    pub fn code(&self, site: &SiteState, path: &Path) -> io::Result<()> {
        let Some(kept) = self.get(path).filter(|kept| kept.coded.get().is_none()) else {
            return Ok(());
        };
        let content = match &kept.content {
            Some(content) => content.clone(),
            None => {
                let mut content = Vec::new();
                let bytes_max = kept.version.length + 1;
                real_file::open(path)?.take(bytes_max).read_to_end(&mut content)?;
                Bytes::from(content)
            }
        };
        if Version::of(&std::fs::metadata(path)?) != kept.version
            || content.len() as u64 != kept.version.length
        {
            return Ok(());
        }
        let mut made = make_for_file(&site.config.codings, path, &content);
        made.sort_by_key(|(_, content)| content.len());
        let (codings, contents) = made.into_iter().unzip();
        let mut all = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        if all.get(path).is_some_and(|now| Arc::ptr_eq(now, &kept)) {
            let before = kept.cost(path);
            let _ = kept.coded.set(FileForms { codings, contents });
            self.bytes.fetch_add(kept.cost(path) - before, Ordering::Relaxed);
            self.make_room(&mut all);
            site.counters.coded.add();
        }
        Ok(())
    }

    /// Removes a cached file, if it is still this one.
    fn remove(&self, path: &Path, kept: &Arc<CachedFile>) {
        let mut all = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        if all.get(path).is_some_and(|now| Arc::ptr_eq(now, kept)) {
            all.remove(path);
            self.bytes.fetch_sub(kept.cost(path), Ordering::Relaxed);
            self.forget(kept);
        }
    }

    /// Removes a file that is no longer cached from `found`.
    fn forget(&self, gone: &CachedFile) {
        if let Some(at) = gone.at.get() {
            self.found.write().unwrap_or_else(PoisonError::into_inner).remove(at);
        }
    }

    fn make_room(&self, all: &mut HashMap<PathBuf, Arc<CachedFile>>) {
        let mut excess = self.bytes.load(Ordering::Relaxed).saturating_sub(self.budget_bytes);
        // At most twice: the first pass clears the marks of requested files.
        for _ in 0..2 {
            if excess > 0 {
                all.retain(|path, kept| {
                    if excess == 0 || kept.asked_for.swap(false, Ordering::Relaxed) {
                        return true;
                    }
                    self.forget(kept);
                    let freed = kept.cost(path);
                    self.bytes.fetch_sub(freed, Ordering::Relaxed);
                    excess = excess.saturating_sub(freed);
                    false
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_for_a_second_under_the_configuration_that_led_to_it() {
        let (root, path) = (Path::new("/srv"), Path::new("/srv/a.txt"));
        let version = Version::of(&std::fs::metadata("/").expect("a directory"));
        let stored = StoredResponse::of_file(HeaderMap::new(), 1, Timestamp(0));
        let content = Some(Bytes::from_static(b"x"));
        let files = FileCache::new(1 << 20);
        files.insert(path, CachedFile::new(version, stored, content, Timestamp(5_000)));
        let note = |at: &str, configuration: u64| {
            files.note_found(root, (at, configuration), path, (0, &|_| None));
        };
        let found = |configuration: u64, ms: u64| {
            files.found("/a.txt", configuration, Timestamp(ms)).is_some()
        };
        note("/%61.txt", 1);
        assert!(!found(1, 5_000), "the path as it was sent is not the file's own");
        note("/a.txt", 1);
        assert!(found(1, 5_999) && !found(1, 6_000));
        assert!(!found(2, 5_999), "under other rules it is looked for again");
        note("/a.txt", 2);
        assert!(found(2, 5_999) && !found(1, 5_999));
    }
}
