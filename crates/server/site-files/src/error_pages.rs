//! `[error_pages]`: files below the document root that replace the content of Pagewell's own errors.
//!
//! The files are read when the configuration is, and again when they change. Responses of the application keep their
//! content, as with nginx.
//!
//! Bounds: 1 MiB for each file; one for each status and class.

use super::{ReadFailure, UnusableFile, WatchedFile};
use http::StatusCode;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::io::{Error, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The maximum size of a file in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
const KEY: &str = "error_pages";

/// The pages for errors, by status or class.
#[derive(Clone, Debug, Default)]
pub struct ErrorPages {
    pages: Vec<(u16, Arc<ErrorPage>)>,
    /// The files as they were when they were read, or when that was tried.
    watched: Vec<WatchedFile>,
    unusable: Vec<UnusableFile>,
}

/// A page for errors.
#[derive(Debug)]
pub struct ErrorPage {
    /// The file, whose name tells the media type.
    pub path: PathBuf,
    /// The content of the file.
    pub content: Box<[u8]>,
}

impl ErrorPages {
    /// Checks `[error_pages]`, and reads the files from below the document root. A file whose name has the extension
    /// of a script is refused. With the pages from `before`, a file that cannot be used is no error: its content from
    /// then counts.
    ///
    /// # Errors
    /// A sentence that names the key.
    pub fn read(
        written: &BTreeMap<String, PathBuf>,
        root: Option<&Path>,
        is_script: &dyn Fn(&OsStr) -> bool,
        before: Option<&ErrorPages>,
    ) -> Result<ErrorPages, String> {
        let mut all = ErrorPages::default();
        if written.is_empty() {
            return Ok(all);
        }
        let Some(root) = root else {
            return Err(format!("{KEY}: needs site.root: the files are below it"));
        };
        for (word, path) in written {
            let wrong = |why: String| format!("{KEY}.{word}: {why}");
            let Some(code) = status(word) else {
                return Err(wrong("write a status such as 404, or \"4xx\" or \"5xx\"".into()));
            };
            let page = match (read(root, path, is_script), before.and_then(|all| all.at(code))) {
                (Ok((page, found)), _) => {
                    all.watched.push(WatchedFile::of(page.path.clone(), &found));
                    Arc::new(page)
                }
                (Err(failure), Some(page)) => {
                    let path = page.path.clone();
                    all.watched.push(WatchedFile::failed(path.clone(), &failure));
                    let why = failure.why;
                    if !all.unusable.iter().any(|file| file.path == path) {
                        all.unusable.push(UnusableFile { path, why });
                    }
                    page.clone()
                }
                (Err(failure), None) => {
                    return Err(wrong(format!("{}: {}", path.display(), failure.why)));
                }
            };
            all.pages.push((code, page));
        }
        Ok(all)
    }

    /// The page for a status: its own, or that of its class.
    pub fn of(&self, status: StatusCode) -> Option<&Arc<ErrorPage>> {
        self.at(status.as_u16()).or_else(|| self.at(status.as_u16() / 100))
    }

    /// The page for a status, or for a class by its first digit.
    fn at(&self, code: u16) -> Option<&Arc<ErrorPage>> {
        self.pages.iter().find(|(known, _)| *known == code).map(|(_, page)| page)
    }

    /// The files that cannot be used now: their content from before counts.
    pub fn unusable(&self) -> &[UnusableFile] {
        &self.unusable
    }

    /// The files, which are read again when they change.
    pub fn watched(&self) -> impl Iterator<Item = WatchedFile> {
        self.watched.iter().cloned()
    }
}

/// A status, or the first digit of a class.
fn status(word: &str) -> Option<u16> {
    match word {
        "4xx" => Some(4),
        "5xx" => Some(5),
        _ => word.parse().ok().filter(|code| (400..=599).contains(code)),
    }
}

/// Reads a file below the document root, and returns it with its metadata from before.
fn read(
    root: &Path,
    path: &Path,
    is_script: &dyn Fn(&OsStr) -> bool,
) -> Result<(ErrorPage, Metadata), ReadFailure> {
    let below = path.strip_prefix("/").unwrap_or(path);
    let path = root.join(below);
    let refused = |why: &str| ReadFailure::of_access(&Error::other(why.to_owned()), &path);
    if !below.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(refused("write the path of a file below the document root"));
    }
    let unread = |error: Error| ReadFailure::of_access(&error, &path);
    let real = path.canonicalize().map_err(|error| {
        let failure = unread(error);
        ReadFailure { why: format!("{} below {}", failure.why, root.display()), ..failure }
    })?;
    if !real.starts_with(root) {
        return Err(refused("the link leads outside of the document root"));
    }
    if real.extension().is_some_and(is_script) {
        return Err(refused("a script cannot be an error page: it would have to run"));
    }
    let mut file = super::open(&real).map_err(unread)?;
    let found = file.metadata().map_err(unread)?;
    if !found.is_file() {
        return Err(refused("it is not a file"));
    }
    let mut content = Vec::new();
    file.by_ref().take(FILE_BYTES_MAX + 1).read_to_end(&mut content).map_err(unread)?;
    if content.len() as u64 > FILE_BYTES_MAX {
        return Err(ReadFailure::of_content("1 MiB at most".into(), &found));
    }
    Ok((ErrorPage { path, content: content.into() }, found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_read_from_below_the_root() {
        let root = std::env::temp_dir().join(format!("pagewell-errors-{}", std::process::id()));
        std::fs::create_dir_all(root.join("errors")).expect("a directory");
        for (name, text) in
            [("index.php", "<?php"), ("404.html", "four"), ("errors/5.html", "five")]
        {
            std::fs::write(root.join(name), text).expect("written");
        }
        let real = root.canonicalize().expect("a directory");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, root.join("fifo"), fifo, mode, 0).expect("a FIFO");
        let is_script = |extension: &OsStr| extension == "php";
        let read = |pages: &[(&str, &str)]| {
            let written =
                pages.iter().map(|(code, path)| ((*code).into(), (*path).into())).collect();
            ErrorPages::read(&written, Some(&real), &is_script, None)
        };
        let pages = read(&[("404", "404.html"), ("5xx", "/errors/5.html")]).expect("fine");
        let of = |code: u16| {
            let status = StatusCode::from_u16(code).expect("a status");
            pages.of(status).map(|page| page.content.to_vec())
        };
        assert_eq!(of(404), Some(b"four".to_vec()));
        assert_eq!((of(403), of(503)), (None, Some(b"five".to_vec())));
        assert_eq!(pages.watched().count(), 2);
        for (code, path, part) in [
            ("200", "404.html", "write a status"),
            ("3xx", "404.html", "write a status"),
            ("404", "none.html", "error_pages.404: none.html: No such file"),
            ("404", "../etc/passwd", "below the document root"),
            ("404", "index.php", "a script cannot"),
            ("404", "errors", "not a file"),
            ("404", "fifo", "not a file"),
        ] {
            let error = read(&[(code, path)]).expect_err(path);
            assert!(error.contains(part), "{path}: {error}");
        }
        // A file that breaks later keeps its page, and stops no other.
        std::fs::remove_file(root.join("404.html")).expect("removed");
        std::fs::write(root.join("errors/5.html"), "new").expect("written");
        let names = [("404", "404.html"), ("5xx", "errors/5.html")];
        let written = names.map(|(code, path)| (code.to_owned(), PathBuf::from(path))).into();
        let after = ErrorPages::read(&written, Some(&real), &is_script, Some(&pages));
        let after = after.expect("the page from before");
        let content = |code: u16| {
            let status = StatusCode::from_u16(code).expect("a status");
            after.of(status).map(|page| page.content.to_vec())
        };
        assert_eq!((content(404), content(503)), (Some(b"four".to_vec()), Some(b"new".to_vec())));
        assert_eq!(after.unusable().len(), 1);
        assert_eq!(after.unusable()[0].path, real.join("404.html"));
        std::fs::remove_dir_all(&root).expect("removed");
        let written = BTreeMap::from([("404".into(), "x".into())]);
        let error = ErrorPages::read(&written, None, &is_script, None).expect_err("no root");
        assert!(error.contains("needs site.root"), "{error}");
    }
}
