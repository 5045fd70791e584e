//! `[error_pages]`: files below the document root that replace the content of Pagewell's own errors.
//!
//! The files are read when the configuration is, and again when they change. Responses of the application keep their
//! content, as with nginx.
//!
//! Bounds: 1 MiB for each file; one for each status and class.

use super::WatchedFile;
use http::StatusCode;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The maximum size of a file in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
const KEY: &str = "error_pages";

/// The pages for errors, by status or class.
#[derive(Clone, Debug, Default)]
pub struct ErrorPages(Vec<(u16, Arc<ErrorPage>)>);

/// A page for errors.
#[derive(Debug)]
pub struct ErrorPage {
    /// The file, whose name tells the media type.
    pub path: PathBuf,
    /// The content of the file.
    pub content: Box<[u8]>,
    watched: WatchedFile,
}

impl ErrorPages {
    /// Checks `[error_pages]`, and reads the files from below the document root. A file whose name has the extension
    /// of a script is refused.
    ///
    /// # Errors
    /// A sentence that names the key.
    pub fn read(
        written: &BTreeMap<String, PathBuf>,
        root: Option<&Path>,
        is_script: &dyn Fn(&OsStr) -> bool,
    ) -> Result<ErrorPages, String> {
        if written.is_empty() {
            return Ok(ErrorPages::default());
        }
        let Some(root) = root else {
            return Err(format!("{KEY}: needs site.root: the files are below it"));
        };
        let read = |(word, path): (&String, &PathBuf)| {
            let wrong = |why: String| format!("{KEY}.{word}: {why}");
            let Some(code) = status(word) else {
                return Err(wrong("write a status such as 404, or \"4xx\" or \"5xx\"".into()));
            };
            let page = read(root, path, is_script);
            let page = page.map_err(|why| wrong(format!("{}: {why}", path.display())))?;
            Ok((code, Arc::new(page)))
        };
        written.iter().map(read).collect::<Result<_, _>>().map(ErrorPages)
    }

    /// The page for a status: its own, or that of its class.
    pub fn of(&self, status: StatusCode) -> Option<&Arc<ErrorPage>> {
        let of = |code: u16| self.0.iter().find(|(known, _)| *known == code).map(|(_, page)| page);
        of(status.as_u16()).or_else(|| of(status.as_u16() / 100))
    }

    /// The files, which are read again when they change.
    pub fn watched(&self) -> impl Iterator<Item = WatchedFile> {
        self.0.iter().map(|(_, page)| page.watched.clone())
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

fn read(root: &Path, path: &Path, is_script: &dyn Fn(&OsStr) -> bool) -> Result<ErrorPage, String> {
    let below = path.strip_prefix("/").unwrap_or(path);
    if !below.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err("write the path of a file below the document root".into());
    }
    let path = root.join(below);
    let real = path.canonicalize().map_err(|error| error.to_string())?;
    if !real.starts_with(root) {
        return Err("the link leads outside of the document root".into());
    }
    if real.extension().is_some_and(is_script) {
        return Err("a script cannot be an error page: it would have to run".into());
    }
    let mut file = std::fs::File::open(&real).map_err(|error| error.to_string())?;
    let found = file.metadata().map_err(|error| error.to_string())?;
    if !found.is_file() {
        return Err("it is not a file".into());
    }
    let mut content = Vec::new();
    let read = file.by_ref().take(FILE_BYTES_MAX + 1).read_to_end(&mut content);
    read.map_err(|error| error.to_string())?;
    if content.len() as u64 > FILE_BYTES_MAX {
        return Err("1 MiB at most".into());
    }
    let watched = WatchedFile::of(path.clone(), &found);
    Ok(ErrorPage { path, content: content.into(), watched })
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
        let is_script = |extension: &OsStr| extension == "php";
        let read = |pages: &[(&str, &str)]| {
            let written =
                pages.iter().map(|(code, path)| ((*code).into(), (*path).into())).collect();
            ErrorPages::read(&written, Some(&real), &is_script)
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
        ] {
            let error = read(&[(code, path)]).expect_err(path);
            assert!(error.contains(part), "{path}: {error}");
        }
        std::fs::remove_dir_all(&root).expect("removed");
        let written = BTreeMap::from([("404".into(), "x".into())]);
        let error = ErrorPages::read(&written, None, &is_script).expect_err("no root");
        assert!(error.contains("needs site.root"), "{error}");
    }
}
