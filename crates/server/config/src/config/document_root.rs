//! The document root: the configured directory, or one of a few directories below it.
//!
//! `init` looks for the root of a site in the same directories ([`DOCUMENT_ROOTS`]).

use super::symlinks;
use std::path::{Path, PathBuf};

/// The directories below that of a site which may be its document root, in the order in which they are tried.
pub const DOCUMENT_ROOTS: [&str; 5] = ["public", "web", "htdocs", "pub", "html"];

/// Returns the document root: the configured directory, or if there is none the working directory.
///
/// # Errors
/// A sentence that names the directories, or says that the option is not set.
pub(super) fn root_of(configured: Option<&Path>, indexes: &[String]) -> Result<PathBuf, String> {
    if let Some(dir) = configured {
        return find_root(dir, indexes);
    }
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    find_root(&here, indexes).map_err(|why| {
        format!(
            "is not set, and the working directory is no site ({why}): set it to the directory of the site, \
             such as root = \"/var/www/site\" in [site], or set site.origin to the address of an HTTP server"
        )
    })
}

/// Returns the document root for `dir`. It is `dir` itself if it has one of these files (an index,
/// the front controller), else the first of [`DOCUMENT_ROOTS`] that has one.
///
/// # Errors
/// A sentence with the files and directories that were tried.
fn find_root(dir: &Path, indexes: &[String]) -> Result<PathBuf, String> {
    let mut unknown = None;
    for candidate in [""].iter().chain(&DOCUMENT_ROOTS).map(|below| dir.join(below)) {
        match has_index(&candidate, indexes) {
            Ok(false) => {}
            Ok(true) => {
                let real = candidate.canonicalize();
                return real.map_err(|e| format!("{}: {e}", candidate.display()));
            }
            Err(why) => unknown = unknown.or(Some(why)),
        }
    }
    match (unknown, dir.is_dir()) {
        (Some(why), _) => Err(why),
        (None, false) => Err(symlinks::no_directory(dir)),
        (None, true) => {
            let [others @ .., last] = DOCUMENT_ROOTS;
            Err(format!(
                "no {} in {}, nor in its {} or {last}",
                indexes.join(" or "),
                dir.display(),
                others.join(", ")
            ))
        }
    }
}

/// Whether a directory has one of these files.
///
/// # Errors
/// The result is unknown, because the directory may not be searched.
fn has_index(dir: &Path, indexes: &[String]) -> Result<bool, String> {
    for index in indexes.iter().map(|name| dir.join(name)) {
        match index.metadata() {
            Ok(found) if found.is_file() => return Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                return Err(format!(
                    "{} cannot be looked into: {error}: let the user of Pagewell enter it and the directories above \
                     it (a group, or chmod o+x)",
                    dir.display()
                ));
            }
            _ => {}
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_root_is_the_directory_or_the_first_below_it_with_an_index() {
        let site = std::env::temp_dir().join(format!("pagewell-root-{}", std::process::id()));
        fs::create_dir_all(&site).expect("a directory");
        let site = site.canonicalize().expect("it is there");
        let indexes = ["index.php".to_owned(), "index.html".to_owned()];
        let why = find_root(&site, &indexes).expect_err("it is empty");
        let tried = "no index.php or index.html in ";
        let below = ", nor in its public, web, htdocs, pub or html";
        assert!(why.starts_with(tried) && why.ends_with(below), "{why}");
        for below in DOCUMENT_ROOTS.iter().rev().chain(&[""]) {
            let root = site.join(below);
            fs::create_dir_all(&root).expect("a directory");
            fs::write(root.join("index.html"), "").expect("a file");
            assert_eq!(find_root(&site, &indexes), Ok(root), "{below}");
        }
        fs::remove_dir_all(&site).expect("it is removed");
    }
}
