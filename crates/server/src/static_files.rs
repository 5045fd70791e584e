//! Files of the document root: small ones answered from memory, large ones streamed from disk.
//!
//! A file in memory is compared with the disk (modification time, length, inode) when it is asked
//! for and the last look is over a second old, so a changed file is served within a second.
//! Validators are made from the same three; ranges and preconditions are answered as for pages.
//! The memory is bounded; when it is full, the files that were not asked for since the last round
//! go first.

use crate::body::{CHANNEL_PIECES, Content, ResponseBody};
use crate::serve;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_cache::{RequestFacts, Stored, Timestamp};
use std::collections::HashMap;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio::sync::mpsc;

/// Files up to this size are kept in memory.
const SMALL_BYTES: u64 = 64 << 10;
/// How old the last look at the disk may be, in milliseconds.
const LOOK_MS: u64 = 1_000;
/// What is read of a large file at a time.
const PIECE_BYTES: usize = 64 << 10;

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

/// A small file in memory.
struct Small {
    version: Version,
    stored: Stored,
    content: Bytes,
    looked_ms: AtomicU64,
    asked_for: AtomicBool,
}

/// The files of a site.
pub struct StaticFiles {
    /// Guards the files in memory; held to look one up or put one in, never while reading a disk.
    small: RwLock<HashMap<PathBuf, Arc<Small>>>,
    bytes: AtomicU64,
    budget_bytes: u64,
}

impl StaticFiles {
    /// No files yet; at most `budget_bytes` of them will be kept.
    pub fn new(budget_bytes: u64) -> StaticFiles {
        StaticFiles { small: RwLock::default(), bytes: AtomicU64::new(0), budget_bytes }
    }

    /// Answers with the file at `path`, which routing has found.
    ///
    /// # Errors
    /// The file is gone or cannot be read.
    pub async fn answer(
        &self,
        path: &Path,
        facts: &RequestFacts<'_>,
        now: Timestamp,
    ) -> io::Result<Response<ResponseBody>> {
        if let Some(small) = self.in_memory(path, now)? {
            return Ok(serve::file(facts, &small.stored, Content::Whole(small.content.clone())));
        }
        let mut file = tokio::fs::File::open(path).await?;
        let found = file.metadata().await?;
        if !found.is_file() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let version = Version::of(&found);
        let stored = Stored::of_file(fields(path, version), version.length, now);
        if version.length <= SMALL_BYTES {
            let mut content = BytesMut::with_capacity(version.length as usize);
            while file.read_buf(&mut content).await? > 0 {
                if content.len() as u64 > SMALL_BYTES {
                    return Err(io::Error::other("the file grew while it was read"));
                }
            }
            let content = content.freeze();
            if content.len() as u64 == version.length {
                self.keep(path, version, &stored, &content, now);
            }
            return Ok(serve::file(facts, &stored, Content::Whole(content)));
        }
        Ok(serve::large_file(facts, &stored, version.length, |from, length| {
            stream(file, from, length)
        }))
    }

    /// The file from memory, if it is there and still what the disk has.
    fn in_memory(&self, path: &Path, now: Timestamp) -> io::Result<Option<Arc<Small>>> {
        let held = self.small.read().unwrap_or_else(PoisonError::into_inner).get(path).cloned();
        let Some(small) = held else { return Ok(None) };
        if now.0.saturating_sub(small.looked_ms.load(Ordering::Relaxed)) >= LOOK_MS {
            if Version::of(&std::fs::metadata(path)?) != small.version {
                return Ok(None);
            }
            small.looked_ms.store(now.0, Ordering::Relaxed);
        }
        small.asked_for.store(true, Ordering::Relaxed);
        Ok(Some(small))
    }

    fn keep(
        &self,
        path: &Path,
        version: Version,
        stored: &Stored,
        content: &Bytes,
        now: Timestamp,
    ) {
        let mut all = self.small.write().unwrap_or_else(PoisonError::into_inner);
        let small = Small {
            version,
            stored: stored.clone(),
            content: content.clone(),
            looked_ms: AtomicU64::new(now.0),
            asked_for: AtomicBool::new(true),
        };
        let cost = |path: &Path, length: u64| length + path.as_os_str().len() as u64 + 1_024;
        self.bytes.fetch_add(cost(path, version.length), Ordering::Relaxed);
        if let Some(old) = all.insert(path.to_owned(), Arc::new(small)) {
            self.bytes.fetch_sub(cost(path, old.version.length), Ordering::Relaxed);
        }
        let mut excess = self.bytes.load(Ordering::Relaxed).saturating_sub(self.budget_bytes);
        // Twice at most: the first round takes away the marks of those asked for.
        for _ in 0..2 {
            if excess > 0 {
                all.retain(|path, small| {
                    if excess == 0 || small.asked_for.swap(false, Ordering::Relaxed) {
                        return true;
                    }
                    let freed = cost(path, small.version.length);
                    self.bytes.fetch_sub(freed, Ordering::Relaxed);
                    excess = excess.saturating_sub(freed);
                    false
                });
            }
        }
    }
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

/// Streams a part of a file; a file that turns out shorter breaks the response off.
fn stream(mut file: tokio::fs::File, from: u64, length: u64) -> Content {
    let (sender, pieces) = mpsc::channel(CHANNEL_PIECES);
    tokio::spawn(async move {
        let mut left = length;
        if from > 0 && file.seek(io::SeekFrom::Start(from)).await.is_err() {
            let _ = sender.send(Err(http_cache::Failure::HungUp)).await;
            return;
        }
        while left > 0 {
            let mut piece = BytesMut::with_capacity(PIECE_BYTES);
            let mut part = (&mut file).take(left.min(PIECE_BYTES as u64));
            match part.read_buf(&mut piece).await {
                Ok(count) if count > 0 => left -= count as u64,
                _ => {
                    let _ = sender.send(Err(http_cache::Failure::HungUp)).await;
                    return;
                }
            }
            if sender.send(Ok(piece.freeze())).await.is_err() {
                return;
            }
        }
    });
    Content::Channel { pieces, length: Some(length) }
}

/// The answer to a method that a file does not take.
pub fn method_not_allowed() -> Response<ResponseBody> {
    let mut response = serve::error(StatusCode::METHOD_NOT_ALLOWED, "method", None);
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
    response
}
