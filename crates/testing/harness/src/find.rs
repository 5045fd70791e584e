//! Finds programs: on the path, in system directories that an ordinary user's path lacks, and the `pagewell`
//! binary that was built beside the running test.
//!
//! Nothing is installed or executed here; a missing program is an error with its name.

use crate::{StartError, StartReason};
use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const SYSTEM: [&str; 4] = ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/lib/postgresql"];

/// Finds the first of `names` that is installed.
///
/// # Errors
/// `NotInstalled`, with the names.
pub fn program(names: &[&str]) -> Result<PathBuf, StartError> {
    let places = places();
    let found = names.iter().find_map(|name| {
        places.iter().map(|place| place.join(name)).find(|path| is_executable(path))
    });
    found.ok_or_else(|| not_installed(names.first().copied().unwrap_or("program")))
}

/// Finds php-fpm under the names that distributions use, the newest version first.
pub(crate) fn php_fpm() -> Result<PathBuf, StartError> {
    let mut found: Vec<(Vec<u32>, PathBuf)> = Vec::new();
    for place in places() {
        let Ok(entries) = fs::read_dir(&place) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Some(version) = name.strip_prefix("php-fpm").and_then(version)
                && is_executable(&entry.path())
            {
                found.push((version, entry.path()));
            }
        }
    }
    found.sort();
    found.pop().map(|(_, path)| path).ok_or_else(|| not_installed("php-fpm"))
}

/// Finds the `pagewell` binary: the environment variable `PAGEWELL_BIN`, or the binary in the build directory
/// of the running program (a test in `target/debug/deps`, a task in `target/debug`).
///
/// Cargo builds it for the tests of its own package, and for `cargo test --workspace`.
///
/// # Errors
/// `NotInstalled`, with the command that builds it.
pub fn binary() -> Result<PathBuf, StartError> {
    if let Some(path) = env::var_os("PAGEWELL_BIN").map(PathBuf::from) {
        return if is_executable(&path) {
            Ok(path)
        } else {
            let detail = format!("PAGEWELL_BIN names {}, which cannot be run", path.display());
            Err(StartError::new("pagewell", StartReason::NotInstalled, detail))
        };
    }
    let exe = env::current_exe()
        .map_err(|error| StartError::new("pagewell", StartReason::NotInstalled, error))?;
    exe.ancestors()
        .skip(1)
        .take(2)
        .map(|dir| dir.join("pagewell"))
        .find(|p| is_executable(p))
        .ok_or_else(|| {
            let detail = format!("no pagewell beside {}: cargo build -p pagewell", exe.display());
            StartError::new("pagewell", StartReason::NotInstalled, detail)
        })
}

fn places() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = env::split_paths(&path).filter(|p| p.is_absolute()).collect();
    places.extend(SYSTEM.iter().map(PathBuf::from));
    places
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// The version in the rest of a program's name: nothing, `8.2`, `82`, `-8.2`.
fn version(rest: &str) -> Option<Vec<u32>> {
    let rest = rest.strip_prefix('-').unwrap_or(rest);
    if rest.is_empty() {
        return Some(Vec::new());
    }
    rest.split('.').map(|part| part.parse().ok()).collect()
}

fn not_installed(name: &str) -> StartError {
    let detail = "not on the path; scripts/setup installs what is missing";
    StartError::new(name, StartReason::NotInstalled, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_php_sorts_after_older() {
        assert!(version("8.10") > version("8.2"));
        assert!(version("8.2") > version(""));
        assert_eq!(version("-wrapper"), None);
    }

    #[test]
    fn finds_a_shell_and_names_missing_programs() {
        assert!(program(&["no-such-shell", "sh"]).is_ok());
        let error = program(&["no-such-program"]).expect_err("does not exist");
        assert_eq!(error.reason, StartReason::NotInstalled);
        assert_eq!(error.program, "no-such-program");
    }
}
