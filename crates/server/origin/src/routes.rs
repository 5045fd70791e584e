//! Maps a URL path to a file or script, by the rules of a well-configured web server for PHP:
//!
//! | the path | answered by |
//! |---|---|
//! | an existing file | the file; a script (`site.scripts`, `.php`) or the front controller is executed |
//! | a directory | its `index.php` or `index.html`; without a trailing slash, a redirect that adds one |
//! | `/script.php/extra` | the script, with `PATH_INFO` |
//! | an existing file that is never served ([`Withheld`]): a dotfile (except `.well-known`), a hidden name, source code (also `old.PHP`), the target of a link that leaves the root or has such a name | 404 |
//! | anything else | the front controller, or 404 without one |
//!
//! A path is decoded once, as PHP's readers of `REQUEST_URI` do. Dot segments are resolved before the
//! file system is accessed, and a path that leaves the root is rejected. The existence of a file is
//! checked for each request; the real path of a script once per second (`resolved`). A path that
//! contains a name which is never served is never mapped to a file, even if a file appears there later.

mod links;
mod path_cache;

pub use links::{LeadingOutside, leading_outside};
pub use path_cache::PathCache;

use config::{FilesConfig, SOURCES, Symlinks};
use http_cache::Timestamp;
use http_fields::percent::decode_strictly;
use reasons::Reason;
use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs::{Metadata, metadata, symlink_metadata};
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The result of mapping a path.
#[derive(Debug, PartialEq, Eq)]
pub enum Route {
    /// A file to be sent unchanged.
    Static(PathBuf),
    /// A script to be executed.
    Script(Script),
    /// A directory that was requested without a trailing slash. Contains the path with one.
    AddSlash(String),
    /// No such file, and no front controller.
    NotFound,
    /// A file that exists but is never served. The client gets the same response as for `NotFound`.
    Hidden(Withheld),
    /// An invalid path: bad percent-encoding, a NUL, or segments that leave the root.
    Malformed,
}

/// Why an existing file is never served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Withheld {
    /// The name of the file, or of a directory in its path, is hidden.
    Name,
    /// The file is source code.
    Source,
    /// A symbolic link leads to this path, which contains a hidden name.
    LinkToHidden(PathBuf),
    /// A symbolic link leads to this path outside the root, which is not allowed.
    LinkOutside(PathBuf),
    /// The real path could not be determined.
    Unresolved,
    /// It is a script that a rule or `site.entry_points` does not let run. Decided by the caller of [`route_in`].
    Script,
}

impl Withheld {
    /// The reason, for `pagewell explain`.
    pub fn reason(&self) -> Reason {
        match self {
            Withheld::Name => Reason::HiddenName,
            Withheld::Source => Reason::SourceHidden,
            Withheld::LinkToHidden(_) => Reason::LinkToHidden,
            Withheld::LinkOutside(_) => Reason::LinkOutsideRoot,
            Withheld::Unresolved => Reason::FileFailed,
            Withheld::Script => Reason::ScriptRefused,
        }
    }
}

/// A script to be executed, in CGI terms (RFC 3875 section 4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// `SCRIPT_FILENAME`: the absolute path of the script.
    pub filename: PathBuf,
    /// `SCRIPT_NAME`: the URL path of the script.
    pub name: String,
    /// `PATH_INFO`: the decoded rest of the path after the script; empty if there is none.
    pub path_info: String,
    /// `QUERY_STRING`, if a rewrite has changed it; otherwise it is that of the request.
    pub query: Option<String>,
}

/// Maps `path` (the path of the request target, percent-encoded) to a file below the document root.
pub fn route(files: &FilesConfig, path: &str) -> Route {
    route_in(Root { files, resolved: None }, path)
}

/// The document root, and the cached real paths of its scripts.
#[derive(Clone, Copy)]
pub struct Root<'a> {
    /// The configuration of the document root.
    pub files: &'a FilesConfig,
    /// The cached real paths, and the current time. `None` to resolve each script.
    pub resolved: Option<(&'a PathCache, Timestamp)>,
}

/// Like [`route`], with a cache of real paths.
pub fn route_in(root: Root<'_>, path: &str) -> Route {
    let files = root.files;
    let decoded = decode_strictly(path).filter(|path| !path.contains('\0'));
    let Some(decoded) = decoded else { return Route::Malformed };
    let Some(clean) = resolve_dots(&decoded) else { return Route::Malformed };
    if let Some(name) = unserved_name(files, &clean) {
        return unserved(root, &clean, name);
    }
    if let Some(script) = script_with_path_info(root, &clean, clean.len()) {
        return Route::Script(script);
    }
    let full = below(&files.root, clean.trim_start_matches('/'));
    match metadata(&full) {
        Ok(found) if found.is_dir() => directory(root, &clean, &full, path),
        Ok(found) if found.is_file() && !clean.ends_with('/') => {
            existing_file(root, &clean, full, &found)
        }
        _ => front_controller(root),
    }
}

/// Whether a path (percent-encoded) names a file or directory below the document root, or a script before the rest of
/// it. A path that is never served counts as one.
pub fn names_file(root: Root<'_>, path: &str) -> bool {
    let decoded = decode_strictly(path).filter(|path| !path.contains('\0'));
    let Some(clean) = decoded.as_deref().and_then(resolve_dots) else { return true };
    unserved_name(root.files, &clean).is_some()
        || metadata(below(&root.files.root, clean.trim_start_matches('/'))).is_ok()
        || script_with_path_info(root, &clean, clean.len()).is_some()
}

/// Resolves `.`, `..` and repeated slashes. `None` if the path leaves the root.
fn resolve_dots(path: &str) -> Option<Cow<'_, str>> {
    let bytes = path.as_bytes();
    if bytes.first() != Some(&b'/') {
        return None;
    }
    // The common case: no segment is empty or begins with a dot.
    if bytes.windows(2).all(|two| two[0] != b'/' || !matches!(two[1], b'/' | b'.')) {
        return Some(Cow::Borrowed(path));
    }
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()?),
            other => segments.push(other),
        }
    }
    let is_directory = ["/", "/.", "/.."].iter().any(|end| path.ends_with(end));
    let slash = if is_directory && !segments.is_empty() { "/" } else { "" };
    Some(Cow::Owned(format!("/{}{slash}", segments.join("/"))))
}

/// The range of the first name in the path that is never served: a hidden name, or one with a
/// backslash. Other software may interpret a backslash as a slash.
fn unserved_name(files: &FilesConfig, clean: &str) -> Option<Range<usize>> {
    unserved_in(files, clean.as_bytes(), 1, Below::Root)
}

/// The directory that the examined path is relative to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Below {
    /// The document root, where patterns with a leading slash apply.
    Root,
    /// A directory other than the document root.
    Elsewhere,
}

/// Like [`unserved_name`], beginning at the byte `start`, where a name begins.
fn unserved_in(
    files: &FilesConfig,
    path: &[u8],
    mut start: usize,
    below: Below,
) -> Option<Range<usize>> {
    let has_backslash = path.contains(&b'\\');
    let mut is_first = below == Below::Root;
    for name in path.get(start..)?.split(|byte| *byte == b'/') {
        let is_dotted = name.first() == Some(&b'.') && !(is_first && name == b".well-known");
        let is_unserved = is_dotted
            || has_backslash && name.contains(&b'\\')
            || !name.is_empty() && files.hidden.iter().any(|one| matches(one.as_bytes(), name))
            || is_first && is_hidden_in_root(files, name);
        if is_unserved {
            return Some(start..start + name.len());
        }
        start += name.len() + 1;
        is_first = false;
    }
    None
}

/// Whether a name directly below the document root is hidden there.
fn is_hidden_in_root(files: &FilesConfig, name: &[u8]) -> bool {
    let in_root = |pattern: &String| {
        pattern.strip_prefix('/').is_some_and(|pattern| matches(pattern.as_bytes(), name))
    };
    files.hidden.iter().any(in_root) || files.hides_libraries && is_library(files, name)
}

/// Whether this directory contains libraries that Composer has installed. Laravel publishes browser
/// assets in a `vendor` directory of the document root, but that has no autoloader.
fn is_library(files: &FilesConfig, name: &[u8]) -> bool {
    name == b"vendor" && file_at(&files.root.join("vendor/autoload.php")).is_some()
}

/// Maps a path that contains a name which is never served. If a file of that name exists, the result is
/// [`Route::Hidden`]. If not, the path belongs to the application, for example the title of an article.
/// Then the script before the name gets it, or the front controller.
fn unserved(root: Root<'_>, clean: &str, name: Range<usize>) -> Route {
    if is_there(root.files, &clean[..name.end]) {
        return Route::Hidden(Withheld::Name);
    }
    match script_with_path_info(root, clean, name.start) {
        // PHP also maps `PATH_INFO` to a path in the root (`PATH_TRANSLATED`, RFC 3875 section 4.1.6).
        Some(script) if is_there(root.files, &clean[script.name.len()..name.end]) => {
            Route::Hidden(Withheld::Name)
        }
        Some(script) => Route::Script(script),
        None => front_controller(root),
    }
}

/// Whether a file of this name exists below the root, including dangling links. An error other than
/// "not found" counts as existing.
fn is_there(files: &FilesConfig, clean: &str) -> bool {
    match symlink_metadata(below(&files.root, clean.trim_start_matches('/'))) {
        Ok(_) => true,
        Err(error) => !matches!(
            error.kind(),
            ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename
        ),
    }
}

/// Matches a file name against a pattern, in which `*` stands for any text, ignoring case. Called for
/// each part of each path and each pattern, so it does not allocate memory.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let star = |byte: &u8| *byte == b'*';
    // The common case: the first or the last characters differ.
    let differs = |of_pattern: Option<&u8>, of_name: Option<&u8>| match (of_pattern, of_name) {
        (Some(b'*') | None, _) | (_, None) => false,
        // Upper and lower case letters differ in one bit. Other characters that differ only in that bit
        // are compared below.
        (Some(one), Some(other)) => (one ^ other) & !0x20 != 0,
    };
    if differs(pattern.first(), name.first()) || differs(pattern.last(), name.last()) {
        return false;
    }
    let (Some(first), Some(last)) = (pattern.iter().position(star), pattern.iter().rposition(star))
    else {
        return pattern.eq_ignore_ascii_case(name);
    };
    let (begin, end) = (&pattern[..first], &pattern[last + 1..]);
    let Some(between) = name.len().checked_sub(begin.len() + end.len()) else { return false };
    let (name_begin, rest) = name.split_at(begin.len());
    let (mut rest, name_end) = rest.split_at(between);
    if !name_begin.eq_ignore_ascii_case(begin) || !name_end.eq_ignore_ascii_case(end) {
        return false;
    }
    for part in pattern[first..last].split(star).filter(|part| !part.is_empty()) {
        match rest.windows(part.len()).position(|at| at.eq_ignore_ascii_case(part)) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

/// The script in a path such as `/script.php/extra`, if that file exists. The script's name ends before
/// the byte `limit`.
fn script_with_path_info(root: Root<'_>, clean: &str, limit: usize) -> Option<Script> {
    if !clean.as_bytes()[..limit].contains(&b'.') {
        return None;
    }
    for (end, _) in clean[..limit].match_indices('/').skip(1) {
        let (name, path_info) = clean.split_at(end);
        if !is_script(root.files, Path::new(name)) {
            continue;
        }
        let full = below(&root.files.root, name.trim_start_matches('/'));
        if let Some(there) = file_at(&full) {
            let filename = inside(root, &full, &there).ok()?;
            let (name, path_info) = (name.into(), path_info.into());
            return Some(Script { filename, name, path_info, query: None });
        }
    }
    None
}

fn directory(root: Root<'_>, clean: &str, full: &Path, asked: &str) -> Route {
    for index in &root.files.indexes {
        let file = full.join(index);
        let Some(there) = file_at(&file) else { continue };
        if !clean.ends_with('/') {
            // Built from the requested path, which is percent-encoded. It begins with a single slash,
            // because two would make it a URL of another host.
            return Route::AddSlash(format!("/{}/", asked.trim_matches('/')));
        }
        return existing_file(root, &format!("{clean}{index}"), file, &there);
    }
    front_controller(root)
}

fn existing_file(root: Root<'_>, name: &str, full: PathBuf, there: &Metadata) -> Route {
    let filename = match inside(root, &full, there) {
        Ok(filename) => filename,
        Err(withheld) => return Route::Hidden(withheld),
    };
    let is_own =
        || full.strip_prefix(&root.files.root) == Ok(Path::new(&root.files.front_controller));
    if is_script(root.files, &full) || is_own() {
        let (name, path_info) = (name.into(), String::new());
        return Route::Script(Script { filename, name, path_info, query: None });
    }
    // A link with another extension that leads to a script would reveal its source.
    if is_never_shown(root.files, &filename) || is_never_shown(root.files, &full) {
        Route::Hidden(Withheld::Source)
    } else {
        Route::Static(filename)
    }
}

fn front_controller(root: Root<'_>) -> Route {
    let files = root.files;
    let full = below(&files.root, &files.front_controller);
    match file_at(&full).and_then(|there| inside(root, &full, &there).ok()) {
        Some(filename) => Route::Script(Script {
            filename,
            name: ["/", &files.front_controller].concat(),
            path_info: String::new(),
            query: None,
        }),
        None => Route::NotFound,
    }
}

/// Joins a directory and a name with one allocation.
fn below(directory: &Path, name: &str) -> PathBuf {
    let mut path = PathBuf::with_capacity(directory.as_os_str().len() + 1 + name.len());
    path.push(directory);
    path.push(name);
    path
}

/// Whether the file's extension is one of [`SOURCES`].
fn is_source(path: &Path) -> bool {
    let is_one = |extension: &OsStr| SOURCES.iter().any(|one| extension.eq_ignore_ascii_case(one));
    path.extension().is_some_and(is_one)
}

/// Whether a file is executed. The extension is case-sensitive, as in other web servers: `old.PHP` is a
/// backup, not a script.
fn is_script(files: &FilesConfig, path: &Path) -> bool {
    let is_one = |extension: &OsStr| files.scripts.iter().any(|script| extension == &**script);
    path.extension().is_some_and(is_one)
}

/// Whether a file's content is never sent: a script with its extension in any case, or other source
/// code.
fn is_never_shown(files: &FilesConfig, path: &Path) -> bool {
    let is_one = |extension: &OsStr| {
        files.scripts.iter().any(|script| extension.eq_ignore_ascii_case(script))
    };
    path.extension().is_some_and(is_one) || is_source(path)
}

/// The metadata of the file at this path, if it is a regular file.
fn file_at(full: &Path) -> Option<Metadata> {
    metadata(full).ok().filter(Metadata::is_file)
}

/// The real path of an existing file, if it may be served from there.
fn inside(root: Root<'_>, full: &Path, there: &Metadata) -> Result<PathBuf, Withheld> {
    // Only scripts, because static files have a cache of their own, and there may be many.
    let known = root.resolved.filter(|_| is_script(root.files, full));
    if let Some((resolved, now)) = known
        && let Some(real) = resolved.get(full, there, now)
    {
        return Ok(real);
    }
    let real = full.canonicalize().map_err(|_| Withheld::Unresolved)?;
    if real != full {
        judge_target(root.files, &real)?;
    }
    if let Some((resolved, now)) = known {
        resolved.note(full, there, &real, now);
    }
    Ok(real)
}

/// Checks the target of a symbolic link: whether links may lead there, and whether its path below the
/// allowed directory has a hidden name.
fn judge_target(files: &FilesConfig, real: &Path) -> Result<(), Withheld> {
    let (names, below) = match (real.strip_prefix(&files.root), &files.symlinks) {
        (Ok(names), _) => (Some(names), Below::Root),
        (Err(_), Symlinks::InRoot) => (None, Below::Elsewhere),
        (Err(_), Symlinks::Into(directories)) => {
            let mut found = directories.iter().filter_map(|one| real.strip_prefix(one).ok());
            (found.next(), Below::Elsewhere)
        }
        (Err(_), Symlinks::Anywhere) => (Some(apart(real, &files.root)), Below::Elsewhere),
    };
    let names = names.ok_or_else(|| Withheld::LinkOutside(real.to_owned()))?;
    match unserved_in(files, names.as_os_str().as_bytes(), 0, below) {
        Some(_) => Err(Withheld::LinkToHidden(real.to_owned())),
        None => Ok(()),
    }
}

/// The part of a path after the directories that it has in common with the root.
fn apart<'p>(path: &'p Path, root: &Path) -> &'p Path {
    let (mut left, mut of_root) = (path.components(), root.components());
    loop {
        let here = left.as_path();
        match (left.next(), of_root.next()) {
            (Some(one), Some(other)) if one == other => {}
            _ => return here,
        }
    }
}

#[cfg(test)]
mod tests;
