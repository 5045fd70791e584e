//! Response fields by which an application makes the web server send a file: `X-Accel-Redirect` (nginx), `X-Sendfile`
//! (Apache, lighttpd) and their relatives.
//!
//! A file below one of `site.internal_files` is sent (`exchange::internal_files`). The directories are closed to
//! requests ([`is_internal`]). Without such a directory, the fields are only removed, because they contain local paths
//! (`http_cache::Policy::internal_fields`). Either way the response is not stored. If a web server in front of Pagewell
//! sends the file, `dialects.pass_on` forwards the field.
//!
//! Invariant: no file outside of these directories is sent, whatever the field says and wherever links lead, except
//! where `site.allow_symlinks` lets links lead.

use bytes::Bytes;
use config::{FilesConfig, Symlinks};
use delivery::body::{Content, ResponseBody};
use delivery::site::Site;
use event_log::Seldom;
use http::{HeaderMap, Response, StatusCode, header};
use http_cache::SENDFILE_FIELDS;
use http_cache::fields::is_there;
use http_fields::percent::decode_strictly;
use origin::{OriginBody, OriginResponse};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How much content of such a response is read before its connection is closed. Usually there is none.
const CONTENT_BYTES_MAX: usize = 1 << 20;

/// The file that a response names, for the client: an extension of the response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamedFile {
    /// The real path of a file that may be sent.
    Found(PathBuf),
    /// The path is that of a directory of the site, and no such file may be sent.
    Missing,
}

/// The name of the field by which a response requests a file, if it has one.
pub fn field_of(headers: &HeaderMap) -> Option<&'static str> {
    SENDFILE_FIELDS.into_iter().find(|name| is_there(headers, name))
}

/// Whether a file is in one of the directories whose files are sent only if the application names them.
pub(crate) fn is_internal(site: &Site, path: &Path) -> bool {
    let Some((files, _)) = site.files.as_deref() else { return false };
    files.internal.iter().any(|one| path.starts_with(&one.directory))
}

/// The file that a response names, if its path is one of the site's directories.
pub(crate) fn named_file(
    site: &Site,
    status: StatusCode,
    headers: &HeaderMap,
) -> Option<NamedFile> {
    let (files, _) = site.files.as_deref()?;
    if files.internal.is_empty() || !status.is_success() {
        return None;
    }
    let field = field_of(headers).filter(|field| is_removed(site, field))?;
    let value = str::from_utf8(headers.get(field)?.as_bytes()).ok()?.trim();
    match field {
        "x-accel-redirect" => by_url(files, value),
        "x-sendfile" | "x-lighttpd-send-file" => by_path(files, value),
        _ => None,
    }
}

/// The file of an URL path such as `/protected/a%20b.zip`. The longest of the site's paths counts.
fn by_url(files: &FilesConfig, value: &str) -> Option<NamedFile> {
    let path = decode_strictly(value.split(['?', '#']).next()?)?;
    let one = files.internal.iter().find(|one| path.starts_with(&one.prefix))?;
    let below = path[one.prefix.len()..].trim_start_matches('/');
    Some(below_directory(files, &one.directory, below))
}

/// The file of a path in the file system, as it is or percent-encoded.
fn by_path(files: &FilesConfig, value: &str) -> Option<NamedFile> {
    let found = |path: &str| {
        let path = Path::new(path);
        // The path may lead through a link to the directory, so its real path is compared.
        let above = path.ancestors().skip(1).find_map(|above| above.canonicalize().ok())?;
        let one = files.internal.iter().find(|one| above.starts_with(&one.directory))?;
        match path.canonicalize() {
            Ok(real) => Some(allowed(files, &one.directory, real)),
            Err(_) => Some(NamedFile::Missing),
        }
    };
    if !value.starts_with('/') || value.split('/').any(|segment| segment == "..") {
        return None;
    }
    match found(value) {
        Some(NamedFile::Found(path)) => Some(NamedFile::Found(path)),
        other => decode_strictly(value)
            .filter(|decoded| **decoded != *value && !decoded.split('/').any(|part| part == ".."))
            .and_then(|decoded| found(&decoded))
            .or(other),
    }
}

fn below_directory(files: &FilesConfig, directory: &Path, below: &str) -> NamedFile {
    if below.contains('\0') || below.split('/').any(|segment| matches!(segment, "." | "..")) {
        return NamedFile::Missing;
    }
    match directory.join(below).canonicalize() {
        Ok(real) => allowed(files, directory, real),
        Err(_) => NamedFile::Missing,
    }
}

/// The file with this real path, if it is a regular one, and in the directory or where links may lead.
fn allowed(files: &FilesConfig, directory: &Path, real: PathBuf) -> NamedFile {
    let is_inside = real.starts_with(directory)
        || match &files.symlinks {
            Symlinks::InRoot => false,
            Symlinks::Into(directories) => directories.iter().any(|one| real.starts_with(one)),
            Symlinks::Anywhere => true,
        };
    if is_inside && real.is_file() { NamedFile::Found(real) } else { NamedFile::Missing }
}

/// Whether the field is removed from responses: `dialects.pass_on` does not name it.
fn is_removed(site: &Site, field: &str) -> bool {
    site.config.policy.internal_fields.iter().any(|internal| internal == field)
}

/// The response that stands for a named file until the file is sent. The rest of the content is read, so that the
/// script is not cancelled before its end.
pub(crate) fn announced(
    mut headers: HeaderMap,
    body: OriginBody,
    file: NamedFile,
) -> Response<ResponseBody> {
    tokio::spawn(read_to_end(body));
    // They describe the content of the response, and not that of the file.
    for name in [
        header::ACCEPT_RANGES,
        header::CONTENT_ENCODING,
        header::CONTENT_LENGTH,
        header::CONTENT_RANGE,
        header::ETAG,
        header::LAST_MODIFIED,
        header::TRAILER,
    ] {
        headers.remove(name);
    }
    let mut response = Response::new(ResponseBody::from(Content::Empty));
    *response.headers_mut() = headers;
    response.extensions_mut().insert(file);
    response
}

async fn read_to_end(mut body: OriginBody) {
    let mut left = CONTENT_BYTES_MAX;
    while let Some(Ok(piece)) = body.next().await {
        let piece: Bytes = piece;
        let Some(less) = left.checked_sub(piece.len()) else { return };
        left = less;
    }
}

/// Counts a response whose field is only removed, and logs it at most once in ten seconds.
pub(crate) fn note(site: &Site, response: &OriginResponse, url: impl FnOnce() -> String) {
    static LOGGED: Seldom = Seldom::once_in(Duration::from_secs(10));
    let Some(field) = field_of(&response.headers) else { return };
    if !is_removed(site, field) || named_file(site, response.status, &response.headers).is_some() {
        return;
    }
    site.counters.sendfiles_removed.add();
    if LOGGED.is_due(site.clock.monotonic()) {
        tracing::warn!(event = "sendfile-removed", url = url(), field);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::InternalDirectory;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// A directory with files, and one outside of it; removed at the end.
    struct Place(PathBuf, FilesConfig);

    impl Place {
        fn new(name: &str) -> Place {
            let place =
                std::env::temp_dir().join(format!("sendfile-{name}-{}", std::process::id()));
            fs::create_dir_all(place.join("private/sub")).unwrap();
            fs::create_dir_all(place.join("public")).unwrap();
            let place = place.canonicalize().unwrap();
            for file in ["private/a b.zip", "private/sub/c%20d", "public/secret"] {
                fs::write(place.join(file), "x").unwrap();
            }
            symlink(place.join("public/secret"), place.join("private/link")).unwrap();
            symlink(place.join("private"), place.join("alias")).unwrap();
            let internal = |prefix: &str, directory: &str| InternalDirectory {
                prefix: prefix.into(),
                directory: place.join(directory),
            };
            let files = FilesConfig {
                root: place.join("public"),
                front_controller: "index.php".into(),
                hidden: Vec::new(),
                hides_libraries: false,
                scripts: vec!["php".into()],
                indexes: Vec::new(),
                symlinks: Symlinks::InRoot,
                internal: vec![internal("/p/sub/", "private/sub"), internal("/p/", "private")],
            };
            Place(place, files)
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_url_leads_to_a_file_in_its_directory_or_to_none() {
        let Place(place, files) = &Place::new("url");
        let found = |below: &str| Some(NamedFile::Found(place.join("private").join(below)));
        for (value, right) in [
            ("/p/a%20b.zip", found("a b.zip")),
            ("/p/a b.zip", found("a b.zip")),
            ("/p//a%20b.zip?x=1", found("a b.zip")),
            ("/p/sub/c%2520d", found("sub/c%20d")),
            ("/other/a", None),
            ("/p", None),
            ("p/a%20b.zip", None),
            ("/p/%zz", None),
        ] {
            assert_eq!(by_url(files, value), right, "{value}");
        }
        for value in [
            "/p/",
            "/p/sub",
            "/p/no-such",
            "/p/link",
            "/p/../public/secret",
            "/p/%2e%2e/public/secret",
            "/p/sub/..%2f..%2f..%2fpublic/secret",
            "/p/sub//etc/passwd",
            "/p//etc/passwd",
            "/p/a%20b.zip%00",
            "/p/..",
        ] {
            assert_eq!(by_url(files, value), Some(NamedFile::Missing), "{value}");
        }
        let mut open = files.clone();
        open.symlinks = Symlinks::Into(vec![place.join("public")]);
        let secret = Some(NamedFile::Found(place.join("public/secret")));
        assert_eq!(by_url(&open, "/p/link"), secret);
    }

    #[test]
    fn a_path_leads_to_a_file_in_a_directory_or_to_none() {
        let Place(place, files) = &Place::new("path");
        let value = |below: &str| format!("{}/{below}", place.display());
        let found = |below: &str| Some(NamedFile::Found(place.join("private").join(below)));
        for (below, right) in [
            ("private/a b.zip", found("a b.zip")),
            ("private/a%20b.zip", found("a b.zip")),
            ("private/sub/c%20d", found("sub/c%20d")),
            ("alias/a b.zip", found("a b.zip")),
            ("private/no-such", Some(NamedFile::Missing)),
            ("private/no/such", Some(NamedFile::Missing)),
            ("private/link", Some(NamedFile::Missing)),
            ("private/../public/secret", None),
            ("private/%2e%2e/public/secret", Some(NamedFile::Missing)),
            ("public/secret", None),
        ] {
            assert_eq!(by_path(files, &value(below)), right, "{below}");
        }
        assert_eq!(by_path(files, "private/a b.zip"), None);
        assert_eq!(by_path(files, "/etc/passwd"), None);
    }
}
