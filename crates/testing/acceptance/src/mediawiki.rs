//! A document root for Debian's MediaWiki, which a test can write to.
//!
//! The package is in `/usr/share`, and is shared by all tests. MediaWiki finds its settings beside the script that
//! runs, so each wiki needs scripts of its own. Not here: the wiki's settings, database, uploads and cache.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

const PACKAGE: &str = "/usr/share/mediawiki";
/// The directories that are the package's own.
const LINKED: [&str; 7] =
    ["includes", "languages", "vendor", "resources", "maintenance", "skins", "extensions-core"];

/// Lays out the document root of a wiki: copies of the package's scripts, and links to its large directories.
///
/// # Panics
/// The package is not installed, or the directory cannot be written.
pub fn lay_out(root: &Path) {
    let package = Path::new(PACKAGE);
    let is_installed = package.join("index.php").is_file();
    assert!(is_installed, "scripts/setup test installs the package mediawiki");
    fs::create_dir_all(root).expect("a directory");
    for entry in fs::read_dir(package).expect("the package").flatten() {
        let name = entry.file_name();
        let is_program = name.to_string_lossy().ends_with(".php") && entry.path().is_file();
        if is_program && name != "LocalSettings.php" {
            fs::copy(entry.path(), root.join(name)).expect("copied");
        }
    }
    for name in LINKED {
        symlink(package.join(name), root.join(name)).expect("a link");
    }
    symlink("extensions-core", root.join("extensions")).expect("a link");
}
