//! Which file or script a path means, as a well-configured web server for PHP decides it:
//!
//! | the path | answered by |
//! |---|---|
//! | an existing file | the file; a script (`site.scripts`, `.php`) is run, and so is the front controller |
//! | a directory | its `index.php` or `index.html`; without the slash at the end, a redirect to it |
//! | `/script.php/extra` | the script, with `PATH_INFO` |
//! | what is there and never served ([`Withheld`]): a dotfile (not `.well-known`), a hidden name, source (`old.PHP` too), what a link leads to outside the root or to such a name | 404 |
//! | anything else | the front controller, or 404 where there is none |
//!
//! A path is decoded once, as PHP's own `REQUEST_URI` readers do; dot segments are resolved before
//! the file system is asked, and what climbs above the root is refused. Whether a file is there is asked
//! each time; where a script really lies, once in a second (`resolved`). A path with a name in it that is
//! never served is never mapped to a file, whatever appears there meanwhile.

mod links;
mod resolved;

pub use links::{LeadingOutside, leading_outside};
pub use resolved::Resolved;

use crate::config::{FilesConfig, SOURCES, Symlinks};
use crate::percent_encoding::percent_decoded;
use http_cache::Timestamp;
use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs::{Metadata, metadata, symlink_metadata};
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What a path means.
#[derive(Debug, PartialEq, Eq)]
pub enum Route {
    /// A file to be sent as it is.
    Static(PathBuf),
    /// A script to be run.
    Script(Script),
    /// A directory, asked for without the slash at its end: the path with it.
    AddSlash(String),
    /// There is nothing, and no front controller to ask.
    NotFound,
    /// There is something, and it is never served. The visitor's answer is that of `NotFound`.
    Hidden(Withheld),
    /// A path that cannot be read: bad escapes, a NUL, segments that climb above the root.
    Malformed,
}

/// Why something that exists is never served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Withheld {
    /// Its name, or that of a directory above it, is hidden.
    Name,
    /// It is source.
    Source,
    /// A symbolic link leads to this path, in which a name is hidden.
    LinkToHidden(PathBuf),
    /// A symbolic link leads to this path outside the root, and may not.
    LinkOutside(PathBuf),
    /// Where it really lies could not be found out.
    Unresolved,
}

impl Withheld {
    /// Its name, for `pagewell explain` and the log.
    pub fn as_str(&self) -> &'static str {
        match self {
            Withheld::Name => "hidden-name",
            Withheld::Source => "source-hidden",
            Withheld::LinkToHidden(_) => "link-to-hidden",
            Withheld::LinkOutside(_) => "link-outside-root",
            Withheld::Unresolved => "file-failed",
        }
    }
}

/// A script to be run, in the words of CGI (RFC 3875 section 4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// `SCRIPT_FILENAME`: the script's absolute path.
    pub filename: PathBuf,
    /// `SCRIPT_NAME`: its path in the site.
    pub name: String,
    /// `PATH_INFO`: what stood behind it, decoded; empty when nothing did.
    pub path_info: String,
}

/// Finds what `path` (the target's path, still percent-encoded) means below the document root.
pub fn route(files: &FilesConfig, path: &str) -> Route {
    route_in(Root { files, resolved: None }, path)
}

/// The document root, and what was found in it lately.
#[derive(Clone, Copy)]
pub struct Root<'a> {
    /// Where it is, and what is served of it.
    pub files: &'a FilesConfig,
    /// Where scripts lie, and the time; none: each is resolved.
    pub resolved: Option<(&'a Resolved, Timestamp)>,
}

/// The same as [`route`] in a root of which something may be known.
pub fn route_in(root: Root<'_>, path: &str) -> Route {
    let files = root.files;
    let decoded = percent_decoded(path).filter(|path| !path.contains('\0'));
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

/// Resolves `.`, `..` and doubled slashes; `None` for what climbs above the root.
fn resolve_dots(path: &str) -> Option<Cow<'_, str>> {
    let bytes = path.as_bytes();
    if bytes.first() != Some(&b'/') {
        return None;
    }
    // Nearly every path: no segment is empty, and none begins with a dot.
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

/// Where the first name in the path is that is never served, if there is one: hidden, or with a backslash
/// in it, which other software may take for a slash.
fn unserved_name(files: &FilesConfig, clean: &str) -> Option<Range<usize>> {
    unserved_in(files, clean.as_bytes(), 1, Below::Root)
}

/// The directory that a judged path lies below.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Below {
    /// The document root, so that patterns with a slash in front count.
    Root,
    /// Another directory.
    Elsewhere,
}

/// The same from the byte `start` on, where the first name begins.
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

/// Whether this is the directory into which Composer has installed libraries. Laravel publishes files for
/// browsers into a `vendor` of the document root, which has no autoloader.
fn is_library(files: &FilesConfig, name: &[u8]) -> bool {
    name == b"vendor" && file_at(&files.root.join("vendor/autoload.php")).is_some()
}

/// What a path means that has a name in it which is never served. Where that is there, nobody learns more;
/// else what is below it cannot be there either, and the path is the application's: for instance the title
/// of an article. It is asked by the script that stands before the name, or by the front controller.
fn unserved(root: Root<'_>, clean: &str, name: Range<usize>) -> Route {
    if is_there(root.files, &clean[..name.end]) {
        return Route::Hidden(Withheld::Name);
    }
    match script_with_path_info(root, clean, name.start) {
        // PHP makes a path in the root of it as well (`PATH_TRANSLATED`, RFC 3875 section 4.1.6).
        Some(script) if is_there(root.files, &clean[script.name.len()..name.end]) => {
            Route::Hidden(Withheld::Name)
        }
        Some(script) => Route::Script(script),
        None => front_controller(root),
    }
}

/// Whether there is anything of this name below the root, a link that leads nowhere among it. What cannot
/// be found out counts as there.
fn is_there(files: &FilesConfig, clean: &str) -> bool {
    match symlink_metadata(below(&files.root, clean.trim_start_matches('/'))) {
        Ok(_) => true,
        Err(error) => !matches!(
            error.kind(),
            ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename
        ),
    }
}

/// Matches a file name against a pattern in which `*` stands for anything, without regard to case. Each
/// part of each path is matched against each pattern whenever a script is asked for: nothing is allocated.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let star = |byte: &u8| *byte == b'*';
    // Nearly all differ in the first letter or the last.
    let differs = |of_pattern: Option<&u8>, of_name: Option<&u8>| match (of_pattern, of_name) {
        (Some(b'*') | None, _) | (_, None) => false,
        // Letters differ in case by one bit; what else differs by it is compared below.
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

/// The script in `/script.php/extra`, when there is such a file; its name ends before `limit`.
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
            return Some(Script { filename, name: name.into(), path_info: path_info.into() });
        }
    }
    None
}

fn directory(root: Root<'_>, clean: &str, full: &Path, asked: &str) -> Route {
    for index in &root.files.indexes {
        let file = full.join(index);
        let Some(there) = file_at(&file) else { continue };
        if !clean.ends_with('/') {
            // Built from what was asked, so that it stays encoded; one slash in front, so that it
            // is never read as another host's address.
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
        return Route::Script(Script { filename, name: name.into(), path_info: String::new() });
    }
    // A link with another name that leads to a script would show its source.
    match is_never_shown(root.files, &filename) || is_never_shown(root.files, &full) {
        true => Route::Hidden(Withheld::Source),
        false => Route::Static(filename),
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
        }),
        None => Route::NotFound,
    }
}

/// A path below a directory, in one allocation.
fn below(directory: &Path, name: &str) -> PathBuf {
    let mut path = PathBuf::with_capacity(directory.as_os_str().len() + 1 + name.len());
    path.push(directory);
    path.push(name);
    path
}

/// Whether a file is source by its name.
fn is_source(path: &Path) -> bool {
    let is_one = |extension: &OsStr| SOURCES.iter().any(|one| extension.eq_ignore_ascii_case(one));
    path.extension().is_some_and(is_one)
}

/// Whether a file is run, and its text never shown. The case of its name counts, as it does to the responders
/// of other web servers: `old.PHP` was put aside.
fn is_script(files: &FilesConfig, path: &Path) -> bool {
    let is_one = |extension: &OsStr| files.scripts.iter().any(|script| extension == &**script);
    path.extension().is_some_and(is_one)
}

/// Whether a file's text is never shown: a script's, in whichever case its name is written, and other source.
fn is_never_shown(files: &FilesConfig, path: &Path) -> bool {
    let is_one = |extension: &OsStr| {
        files.scripts.iter().any(|script| extension.eq_ignore_ascii_case(script))
    };
    path.extension().is_some_and(is_one) || is_source(path)
}

/// What is said of the file at this path, if there is one.
fn file_at(full: &Path) -> Option<Metadata> {
    metadata(full).ok().filter(Metadata::is_file)
}

/// The real path of what is there, if it may be served from where it lies.
fn inside(root: Root<'_>, full: &Path, there: &Metadata) -> Result<PathBuf, Withheld> {
    // Files have a memory of their own, and there may be many.
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

/// Judges where a symbolic link leads: whether it may lead there, and by the names on the way below the
/// directory that it may lead into.
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

/// The rest of a path behind the directories that it shares with the root.
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
