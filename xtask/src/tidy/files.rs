//! The files of the repository that the rules look at, read once.
//!
//! Everything that is text and ours: build products, what git ignores by name (`target`, `vendor`,
//! `var`) and hidden directories other than `.ci` and `.cargo` are passed over. Paths are relative
//! to the root and sorted, so that findings come in the same order everywhere.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const SKIPPED: [&str; 4] = ["target", "vendor", "var", "node_modules"];
const HIDDEN_BUT_OURS: [&str; 2] = [".ci", ".cargo"];
const TEXT: [&str; 16] = [
    "rs", "php", "md", "toml", "scn", "sql", "css", "js", "html", "json", "sh", "yml", "yaml",
    "conf", "service", "socket",
];
const TEXT_BY_NAME: [&str; 29] = [
    "Containerfile",
    "Makefile",
    "README.Debian",
    "bootstrap",
    "cache-tests",
    "check-compose",
    "check-deployments",
    "commit-msg",
    "compat",
    "debian-root",
    "h2spec",
    "logrotate",
    "package-test",
    "package-test-compose",
    "package-test-guides",
    "package-test-steps",
    "package-test-words",
    "phase",
    "phpunit",
    "postinst",
    "postrm",
    "prerm",
    "run",
    "rustup-server",
    "setup",
    "sign-release",
    "terminal-svg",
    "use-hooks",
    "lintian-overrides",
];

/// A file of the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Its path from the root, with `/`.
    pub path: String,
    /// The whole text of the file.
    pub text: String,
}

impl SourceFile {
    /// The end of its name, without the dot.
    pub fn extension(&self) -> &str {
        self.path.rsplit_once('.').map_or("", |(_, extension)| extension)
    }

    /// Whether the whole file is a test.
    pub fn is_test(&self) -> bool {
        let path = &self.path;
        path.contains("/tests/")
            || path.starts_with("tests/")
            || path.ends_with("/tests.rs")
            || path.ends_with("_tests.rs")
    }
}

/// Reads them all.
///
/// # Errors
/// Those of the system.
pub fn read(root: &Path) -> io::Result<Vec<SourceFile>> {
    let mut paths = Vec::new();
    walk(root, &mut paths)?;
    let mut files = Vec::new();
    for path in paths {
        let relative = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        // A file that is not UTF-8 is no text of this repository.
        if let Ok(text) = fs::read_to_string(&path) {
            files.push(SourceFile { path: relative, text });
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn walk(dir: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type()?;
        if kind.is_dir() && enters(&name) {
            walk(&entry.path(), found)?;
        } else if kind.is_file() && is_text(&name) {
            found.push(entry.path());
        }
    }
    Ok(())
}

fn enters(name: &str) -> bool {
    HIDDEN_BUT_OURS.contains(&name) || !(name.starts_with('.') || SKIPPED.contains(&name))
}

fn is_text(name: &str) -> bool {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    TEXT_BY_NAME.contains(&name) || TEXT.contains(&extension)
}

/// A file with this text, for tests.
#[cfg(test)]
pub fn file(path: &str, text: &str) -> SourceFile {
    SourceFile { path: path.into(), text: text.into() }
}
