//! The manual as HTML, below `/manual/`, if it is installed beside the program (`../share/doc/pagewell/html`, as
//! the package and the archive do).
//!
//! Its pages contain no data of the site, so they are served without a token. They run scripts of their own (the
//! search), so their policy takes the origin from them (`sandbox`): they cannot call the control interface.

use super::{ControlError, with_content};
use bytes::Bytes;
use delivery::body::{Content, ResponseBody};
use delivery::static_files::media_type;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

/// The beginning of the paths of the manual.
pub(super) const PATH: &str = "/manual/";
/// The longest file that is served, in bytes. The index of the search is the longest, with about 2 MB.
const FILE_BYTES: u64 = 16 << 20;
const POLICY: &str = "sandbox allow-scripts allow-popups; default-src 'self' 'unsafe-inline' data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Returns the file at a path that begins with [`PATH`].
///
/// # Errors
/// There is no such file, or the manual is not installed.
pub(super) async fn answer(
    path: &str,
    headers: &HeaderMap,
) -> Result<Response<ResponseBody>, ControlError> {
    let file = path.strip_prefix(PATH).and_then(relative).ok_or(ControlError::NotFound)?;
    let media_type =
        HeaderValue::from_str(&media_type(&file)).map_err(|_| ControlError::NotFound)?;
    let read = tokio::task::spawn_blocking(move || {
        let root = root()?;
        trusted_files::read(&root.join(file), FILE_BYTES).ok()
    });
    let content = read.await.ok().flatten().ok_or(ControlError::ManualMissing)?;
    Ok(response(content.into(), media_type, headers))
}

/// Returns the response with a file. A browser may store it, and asks each time whether it has changed.
fn response(
    content: Bytes,
    media_type: HeaderValue,
    headers: &HeaderMap,
) -> Response<ResponseBody> {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    let tag = format!("\"{:016x}\"", hasher.finish());
    let is_known = headers.get(header::IF_NONE_MATCH).is_some_and(|known| {
        known.as_bytes().split(|b| *b == b',').any(|one| one.trim_ascii() == tag.as_bytes())
    });
    let (status, content) =
        if is_known { (StatusCode::NOT_MODIFIED, Bytes::new()) } else { (StatusCode::OK, content) };
    let is_font = media_type.as_bytes().starts_with(b"font/");
    let mut response = with_content(status, media_type, Content::Whole(content).into());
    let fields = response.headers_mut();
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    fields.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    fields.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        fields.insert(header::ETAG, tag);
    }
    if is_font {
        // Fonts are requested for the origin that the policy has taken away.
        fields.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    }
    response
}

/// Returns the directory of the manual that is installed with this program.
fn root() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    Some(program.parent()?.parent()?.join("share/doc/pagewell/html"))
}

/// Returns the file of a path, relative to the manual. Each segment is a plain name, so the path does not lead out of
/// the manual.
fn relative(path: &str) -> Option<PathBuf> {
    let is_name = |segment: &str| {
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
        !segment.is_empty() && !segment.starts_with('.') && segment.bytes().all(is_plain)
    };
    if path.is_empty() {
        return Some("index.html".into());
    }
    (path.len() <= 255 && path.split('/').all(is_name)).then(|| path.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn paths_do_not_lead_out_of_the_manual() {
        assert_eq!(relative(""), Some("index.html".into()));
        assert_eq!(relative("guide/tls.html"), Some("guide/tls.html".into()));
        for path in [
            "..",
            "../x",
            "guide/../../x",
            "/etc/passwd",
            "guide//x",
            ".x",
            "%2e%2e/x",
            "a\\b",
            "x/",
        ] {
            assert_eq!(relative(path), None, "{path}");
        }
        assert_eq!(relative(&"x".repeat(256)), None);
    }

    #[test]
    fn a_file_is_sent_once_and_only_fonts_are_for_other_origins() {
        let page = || HeaderValue::from_static("text/html; charset=utf-8");
        let text = || Bytes::from_static(b"text");
        let first = response(text(), page(), &HeaderMap::new());
        assert_eq!(first.status(), StatusCode::OK);
        assert_eq!(first.headers()[header::CACHE_CONTROL], "no-cache");
        assert!(!first.headers().contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN));
        let mut headers = HeaderMap::new();
        headers.insert(header::IF_NONE_MATCH, first.headers()[header::ETAG].clone());
        let again = response(text(), page(), &headers);
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(again.headers()[header::ETAG], first.headers()[header::ETAG]);
        assert_eq!(response("other".into(), page(), &headers).status(), StatusCode::OK);
        let font = response(text(), HeaderValue::from_static("font/woff2"), &headers);
        assert_eq!(font.headers()[header::ACCESS_CONTROL_ALLOW_ORIGIN], "*");
        assert!(font.headers().contains_key(header::CONTENT_SECURITY_POLICY));
    }

    #[test]
    fn a_file_has_the_type_of_its_ending() {
        assert_eq!(media_type(Path::new("guide/tls.html")), "text/html; charset=utf-8");
        assert_eq!(media_type(Path::new("x")), "application/octet-stream");
    }
}
