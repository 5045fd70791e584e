//! Answers requests with files of the document root: small ones from memory (`file_cache`), large ones
//! streamed from the disk.
//!
//! A changed file is served within a second of its change. Validators are computed from modification
//! time, length and inode. Range and conditional requests are answered as for pages.

use crate::body::{Content, FileContent, ResponseBody};
use crate::coding_queue::Work;
use crate::codings;
use crate::file_cache::{CachedFile, FileCache, SMALL_BYTES, Version};
use crate::real_file;
use crate::serve;
use crate::site::Site;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_cache::codings::Coding;
use http_cache::{Answer, RequestFacts, StoredResponse, Timestamp};
use reasons::Reason;
use std::io;
use std::path::Path;
use std::sync::Arc;
use tokio::io::AsyncReadExt;

/// Answers a request with the file at the real path `path`, which routing has found.
///
/// # Errors
/// The file has been removed or cannot be read.
pub async fn answer(
    files: &FileCache,
    site: &Site,
    path: &Path,
    facts: &RequestFacts<'_>,
) -> io::Result<Response<ResponseBody>> {
    let now = site.clock.now();
    let kept = files.in_memory(path, now)?;
    if let Some(small) = &kept
        && let Some(content) = &small.content
    {
        return Ok(in_form(facts, small, |answer| {
            serve::file(facts, &small.stored, answer, content.clone())
        }));
    }
    let real = path.to_owned();
    let opened = tokio::task::spawn_blocking(move || real_file::open(&real)).await;
    let mut file = tokio::fs::File::from_std(opened.map_err(io::Error::other)??);
    let found = file.metadata().await?;
    if !found.is_file() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let version = Version::of(&found);
    if version.length <= SMALL_BYTES {
        let stored = described(site, path, version, now);
        let content = read_small(&mut file, version.length).await?;
        if content.len() as u64 == version.length {
            let small = CachedFile::new(version, stored.clone(), Some(content.clone()), now);
            insert(files, site, path, small);
        }
        let answer = http_cache::answer(facts, &stored, Some(content.len() as u64));
        return Ok(serve::file(facts, &stored, answer, content));
    }
    let large = match kept.filter(|kept| kept.version == version) {
        Some(kept) => kept,
        None => {
            let stored = described(site, path, version, now);
            insert(files, site, path, CachedFile::new(version, stored, None, now))
        }
    };
    let file = Arc::new(file.into_std().await);
    Ok(in_form(facts, &large, |answer| {
        serve::large_file(facts, &large.stored, answer, version.length, |from, length| {
            Content::File(Box::new(FileContent::new(file, from, length)))
        })
    }))
}

/// Caches a file, and queues it for compression if it is to be compressed.
fn insert(files: &FileCache, site: &Site, path: &Path, file: CachedFile) -> Arc<CachedFile> {
    let (cached, is_codable) = files.insert(path, file);
    if is_codable {
        codings::note(site, Work::File(path.to_owned()));
    }
    cached
}

fn in_form(
    facts: &RequestFacts<'_>,
    kept: &CachedFile,
    plain: impl FnOnce(Answer) -> Response<ResponseBody>,
) -> Response<ResponseBody> {
    let content_in = |coding| kept.content_in(coding);
    let forms = (kept.codings(), &content_in as &dyn Fn(Coding) -> Option<Bytes>);
    serve::file_in_form(facts, &kept.stored, kept.version.length, forms, plain)
}

/// The header fields and caching state of a file.
fn described(site: &Site, path: &Path, version: Version, now: Timestamp) -> StoredResponse {
    let mut stored = StoredResponse::of_file(fields(path, version), version.length, now);
    // Each response gets its own date, because it does not come from a cache (RFC 9110 section 6.6.1).
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

/// Returns the media type of a file by the ending of its name.
pub fn media_type(path: &Path) -> String {
    let guessed = mime_guess::from_path(path).first_or_octet_stream();
    match (guessed.type_().as_str(), guessed.subtype().as_str()) {
        // RFC 9239 section 6 has deprecated the other names.
        (_, "javascript") => "text/javascript; charset=utf-8".to_owned(),
        ("text", _) => format!("{guessed}; charset=utf-8"),
        _ => guessed.to_string(),
    }
}

/// The header fields of a file.
fn fields(path: &Path, version: Version) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut set = |name, value: String| {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    };
    set(header::CONTENT_TYPE, media_type(path));
    set(header::ETAG, version.etag());
    let modified = Timestamp((version.modified_ns / 1_000_000).try_into().unwrap_or_default());
    set(
        header::LAST_MODIFIED,
        String::from_utf8_lossy(&http_cache::date::format(modified)).into_owned(),
    );
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers
}

/// The response to a method that files do not support.
pub fn method_not_allowed() -> Response<ResponseBody> {
    let mut response = serve::error(StatusCode::METHOD_NOT_ALLOWED, Reason::Method, None);
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
    response
}
