//! Files of the document root: small ones answered from memory, large ones streamed from disk.
//!
//! A file in memory is compared with the disk (modification time, length, inode) when it is asked
//! for and the last look is over a second old, so a changed file is served within a second.
//! Validators are made from the same three; ranges and preconditions are answered as for pages.
//! What is worth it is kept in codings as well, larger files in codings alone (`codings`).
//! A file that was found at its own path is known by it for a second, laid out as a page is: then
//! `hits` sends it without asking the file system (`found`).
//! The memory is bounded; when it is full, the files that were not asked for since the last round
//! go first.

use crate::body::{Content, FileContent, ResponseBody};
use crate::codings::{self, PLAIN_BYTES, Work};
use crate::page::{NewPage, Plain, SharedPage};
use crate::serve;
use crate::site::Site;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_cache::codings::Coding;
use http_cache::{Forms, RequestFacts, StoredResponse, Timestamp};
use std::collections::HashMap;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, Weak};
use tokio::io::AsyncReadExt;

/// Files up to this size are kept in memory.
const SMALL_BYTES: u64 = PLAIN_BYTES as u64;
/// Files up to this size are kept in codings.
const CODED_BYTES: u64 = 4 << 20;
/// How old the last look at the disk may be, in milliseconds.
const LOOK_MS: u64 = 1_000;
/// What a file takes besides its content and path: header lines, and these laid out for each form.
const OVERHEAD_BYTES: usize = 4 << 10;

/// What tells one state of a file from another.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Version {
    modified_ns: i128,
    length: u64,
    inode: u64,
}

impl Version {
    fn of(found: &Metadata) -> Version {
        Version {
            modified_ns: i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec()),
            length: found.len(),
            inode: found.ino(),
        }
    }

    /// A strong validator: nanoseconds, length and inode change with every way to replace a file.
    fn etag(self) -> String {
        format!("\"{:x}-{:x}-{:x}\"", self.modified_ns, self.length, self.inode)
    }
}

/// A file in memory: a small one whole, a larger one in codings only.
struct Kept {
    version: Version,
    stored: StoredResponse,
    /// None for a large one.
    content: Option<Bytes>,
    /// The content in codings, the smallest first, once they are made.
    coded: OnceLock<Coded>,
    looked_ms: AtomicU64,
    asked_for: AtomicBool,
    /// The path in the site at which it was found.
    at: OnceLock<Box<str>>,
    /// When it was found there last, in milliseconds.
    found_ms: AtomicU64,
    /// As plain hits send it: before its codings are made, and with them.
    laid_out: [OnceLock<SharedPage>; 2],
}

/// Content in codings, the smallest first.
struct Coded {
    codings: Vec<Coding>,
    contents: Vec<Bytes>,
}

impl Kept {
    fn codings(&self) -> &[Coding] {
        self.coded.get().map_or(&[], |coded| &coded.codings)
    }

    fn content_in(&self, coding: Coding) -> Option<Bytes> {
        let coded = self.coded.get()?;
        let at = coded.codings.iter().position(|other| *other == coding)?;
        coded.contents.get(at).cloned()
    }

    /// The file as plain hits send it; `None` where there is nothing of it in memory yet.
    fn laid_out(&self) -> Option<&SharedPage> {
        let coded = self.coded.get();
        let place = &self.laid_out[usize::from(coded.is_some())];
        if let Some(page) = place.get() {
            return Some(page);
        }
        let plain = match (&self.content, coded) {
            (Some(content), _) => Plain::Shared(content.clone()),
            (None, Some(_)) => Plain::InCodings(self.version.length as usize),
            (None, None) => return None,
        };
        let coded = coded.map_or(Vec::new(), |coded| {
            coded.codings.iter().copied().zip(coded.contents.iter().cloned()).collect()
        });
        Some(place.get_or_init(|| NewPage::of_file(self.stored.clone(), plain, coded).apart()))
    }

    /// What it costs to keep it at `path`, in bytes.
    fn cost(&self, path: &Path) -> u64 {
        let whole = self.content.as_ref().map_or(0, Bytes::len);
        let coded = self.coded.get().map_or(0, |c| c.contents.iter().map(Bytes::len).sum());
        (whole + coded + 2 * path.as_os_str().len() + OVERHEAD_BYTES) as u64
    }
}

/// The files of a site.
pub struct StaticFiles {
    /// Guards the files in memory; held to look one up or put one in, never while reading a disk or
    /// compressing.
    kept: RwLock<HashMap<PathBuf, Arc<Kept>>>,
    /// Guards where files of `kept` were found; held to look one up or put one in. Taken under `kept`,
    /// never the other way round.
    found: RwLock<HashMap<Box<str>, Weak<Kept>>>,
    bytes: AtomicU64,
    budget_bytes: u64,
}

impl StaticFiles {
    /// No files yet; at most `budget_bytes` of them will be kept.
    pub fn new(budget_bytes: u64) -> StaticFiles {
        StaticFiles {
            kept: RwLock::default(),
            found: RwLock::default(),
            bytes: AtomicU64::new(0),
            budget_bytes,
        }
    }

    /// Answers with the file at `path`, which routing has found.
    ///
    /// # Errors
    /// The file is gone or cannot be read.
    pub async fn answer(
        &self,
        site: &Site,
        path: &Path,
        facts: &RequestFacts<'_>,
    ) -> io::Result<Response<ResponseBody>> {
        let now = site.clock.now();
        let kept = self.in_memory(path, now)?;
        if let Some(small) = &kept
            && let Some(content) = &small.content
        {
            return Ok(in_form(facts, small, || {
                serve::file(facts, &small.stored, Content::Whole(content.clone()))
            }));
        }
        let mut file = tokio::fs::File::open(path).await?;
        let found = file.metadata().await?;
        if !found.is_file() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let version = Version::of(&found);
        if version.length <= SMALL_BYTES {
            let stored = described(site, path, version, now);
            let content = read_small(&mut file, version.length).await?;
            if content.len() as u64 == version.length {
                self.keep(
                    site,
                    path,
                    Kept::new(version, stored.clone(), Some(content.clone()), now),
                );
            }
            return Ok(serve::file(facts, &stored, Content::Whole(content)));
        }
        let large = match kept.filter(|kept| kept.version == version) {
            Some(kept) => kept,
            None => {
                let stored = described(site, path, version, now);
                self.keep(site, path, Kept::new(version, stored, None, now))
            }
        };
        let file = Arc::new(file.into_std().await);
        Ok(in_form(facts, &large, || {
            serve::large_file(facts, &large.stored, version.length, |from, length| {
                Content::File(Box::new(FileContent::new(file, from, length)))
            })
        }))
    }

    /// Notes that the file was just found at this path in the site (not encoded, without a query), where
    /// that is its own: other ways to write it do not count.
    pub fn note_found(&self, root: &Path, at: &str, path: &Path) {
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
        kept.found_ms.store(kept.looked_ms.load(Ordering::Relaxed), Ordering::Relaxed);
        let same = |known: &Weak<Kept>| std::ptr::eq(known.as_ptr(), Arc::as_ptr(&kept));
        let found = self.found.read().unwrap_or_else(PoisonError::into_inner);
        if found.get(at).is_some_and(same) {
            return;
        }
        drop(found);
        // Under `kept`: what leaves memory meanwhile is forgotten after this, not before.
        let all = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        if all.get(path).is_some_and(|now| Arc::ptr_eq(now, &kept)) {
            let mut found = self.found.write().unwrap_or_else(PoisonError::into_inner);
            found.insert(at.into(), Arc::downgrade(&kept));
        }
    }

    /// The file that was found at this path within the last second, as plain hits send it.
    pub fn found(&self, at: &str, now: Timestamp) -> Option<SharedPage> {
        let found = self.found.read().unwrap_or_else(PoisonError::into_inner);
        let kept = found.get(at)?.upgrade()?;
        drop(found);
        if now.0.saturating_sub(kept.found_ms.load(Ordering::Relaxed)) >= LOOK_MS {
            return None;
        }
        if !kept.asked_for.load(Ordering::Relaxed) {
            kept.asked_for.store(true, Ordering::Relaxed);
        }
        kept.laid_out().cloned()
    }

    /// The file from memory, if it is there and still what the disk has.
    fn in_memory(&self, path: &Path, now: Timestamp) -> io::Result<Option<Arc<Kept>>> {
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

    fn get(&self, path: &Path) -> Option<Arc<Kept>> {
        self.kept.read().unwrap_or_else(PoisonError::into_inner).get(path).cloned()
    }

    /// Keeps a file, and has its codings made if it is to be sent in any. A large one that is sent as it
    /// is has nothing to be kept.
    fn keep(&self, site: &Site, path: &Path, kept: Kept) -> Arc<Kept> {
        let kept = Arc::new(kept);
        let codable = kept.stored.forms == Forms::ByCoding && kept.version.length <= CODED_BYTES;
        if kept.content.is_none() && !codable {
            return kept;
        }
        let mut all = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        self.bytes.fetch_add(kept.cost(path), Ordering::Relaxed);
        if let Some(old) = all.insert(path.to_owned(), kept.clone()) {
            self.bytes.fetch_sub(old.cost(path), Ordering::Relaxed);
            self.forget(&old);
        }
        self.make_room(&mut all);
        drop(all);
        if codable {
            codings::note(site, Work::File(path.to_owned()));
        }
        kept
    }

    /// Makes the codings of a file that is kept. It reads the disk and compresses: not for the threads
    /// that serve.
    ///
    /// # Errors
    /// A large file cannot be read (any more).
    pub fn code(&self, site: &Site, path: &Path) -> io::Result<()> {
        let Some(kept) = self.get(path).filter(|kept| kept.coded.get().is_none()) else {
            return Ok(());
        };
        let content = match &kept.content {
            Some(content) => content.clone(),
            None => Bytes::from(std::fs::read(path)?),
        };
        if Version::of(&std::fs::metadata(path)?) != kept.version
            || content.len() as u64 != kept.version.length
        {
            return Ok(());
        }
        let mut made = codings::make_for_file(&site.config.codings, path, &content);
        made.sort_by_key(|(_, content)| content.len());
        let (codings, contents) = made.into_iter().unzip();
        let mut all = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        if all.get(path).is_some_and(|now| Arc::ptr_eq(now, &kept)) {
            let before = kept.cost(path);
            let _ = kept.coded.set(Coded { codings, contents });
            self.bytes.fetch_add(kept.cost(path) - before, Ordering::Relaxed);
            self.make_room(&mut all);
            site.counters.coded.add();
        }
        Ok(())
    }

    /// Its path leads nowhere any more.
    fn forget(&self, gone: &Kept) {
        if let Some(at) = gone.at.get() {
            self.found.write().unwrap_or_else(PoisonError::into_inner).remove(at);
        }
    }

    fn make_room(&self, all: &mut HashMap<PathBuf, Arc<Kept>>) {
        let mut excess = self.bytes.load(Ordering::Relaxed).saturating_sub(self.budget_bytes);
        // Twice at most: the first round takes away the marks of those asked for.
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

impl Kept {
    fn new(
        version: Version,
        stored: StoredResponse,
        content: Option<Bytes>,
        now: Timestamp,
    ) -> Kept {
        Kept {
            version,
            stored,
            content,
            coded: OnceLock::new(),
            looked_ms: AtomicU64::new(now.0),
            asked_for: AtomicBool::new(true),
            at: OnceLock::new(),
            found_ms: AtomicU64::new(0),
            laid_out: [const { OnceLock::new() }; 2],
        }
    }
}

fn in_form(
    facts: &RequestFacts<'_>,
    kept: &Kept,
    plain: impl FnOnce() -> Response<ResponseBody>,
) -> Response<ResponseBody> {
    let content_in = |coding| kept.content_in(coding);
    let forms = (kept.codings(), &content_in as &dyn Fn(Coding) -> Option<Bytes>);
    serve::file_in_form(facts, &kept.stored, kept.version.length, forms, plain)
}

/// What is said of a file.
fn described(site: &Site, path: &Path, version: Version, now: Timestamp) -> StoredResponse {
    let mut stored = StoredResponse::of_file(fields(path, version), version.length, now);
    // Each answer has its own: it is not one from a store (RFC 9110 section 6.6.1).
    stored.headers.remove(header::DATE);
    codings::prepare(site, &mut stored, version.length as usize);
    stored
}

async fn read_small(file: &mut tokio::fs::File, length: u64) -> io::Result<Bytes> {
    let mut content = BytesMut::with_capacity(length as usize);
    while file.read_buf(&mut content).await? > 0 {
        if content.len() as u64 > SMALL_BYTES {
            return Err(io::Error::other("the file grew while it was read"));
        }
    }
    Ok(content.freeze())
}

/// The header lines of a file.
fn fields(path: &Path, version: Version) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let guessed = mime_guess::from_path(path).first_or_octet_stream();
    let media_type = match (guessed.type_().as_str(), guessed.subtype().as_str()) {
        // RFC 9239 section 6 has put the other names out of use.
        (_, "javascript") => "text/javascript; charset=utf-8".to_owned(),
        ("text", _) => format!("{guessed}; charset=utf-8"),
        _ => guessed.to_string(),
    };
    let mut set = |name, value: String| {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    };
    set(header::CONTENT_TYPE, media_type);
    set(header::ETAG, version.etag());
    let modified = Timestamp((version.modified_ns / 1_000_000).try_into().unwrap_or_default());
    set(
        header::LAST_MODIFIED,
        String::from_utf8_lossy(&http_cache::date::format(modified)).into_owned(),
    );
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers
}

/// The answer to a method that a file does not take.
pub fn method_not_allowed() -> Response<ResponseBody> {
    let mut response = serve::error(StatusCode::METHOD_NOT_ALLOWED, "method", None);
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
    response
}
