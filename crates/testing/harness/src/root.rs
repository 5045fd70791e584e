//! Where the repository is, where its builds go, and the building of the binary.
//!
//! Tasks can be called from any directory: everything is found from the place this crate was
//! compiled in.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How the binary is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// As the tests build it.
    Dev,
    /// As it is shipped.
    Release,
}

/// The root of the repository.
pub fn repository() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(3).unwrap_or(here).to_owned()
}

/// The directory for build results: `target`, or the one that cargo is configured to use.
pub fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| repository().join("target"), |path| repository().join(path))
}

/// Builds `pagewell` unless it is up to date, and returns where it is. A binary that the
/// environment names (`PAGEWELL_BIN`) is taken as it is. Standard error says that a release is built.
///
/// # Errors
/// What cargo's failure means for the caller; cargo itself has said the rest.
pub fn pagewell(profile: Profile) -> Result<PathBuf, String> {
    match profile {
        Profile::Dev => build("debug", &[]),
        Profile::Release => {
            if env::var_os("PAGEWELL_BIN").is_none() {
                eprintln!("Building the release of pagewell: minutes, unless it is up to date");
            }
            build("release", &["--release"])
        }
    }
}

/// The same as the tests have it: its clock can be set, and its lease check left out.
///
/// # Errors
/// As above.
pub fn tested() -> Result<PathBuf, String> {
    // With xtask, as `make demo` does: what is selected together has the same features of libraries.
    build("debug", &["--package", "xtask", "--features", "pagewell/settable-clock"])
}

fn build(directory: &str, arguments: &[&str]) -> Result<PathBuf, String> {
    if env::var_os("PAGEWELL_BIN").is_some() {
        return crate::binary().map_err(|error| error.to_string());
    }
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(repository()).args(["build", "--quiet", "--package", "pagewell"]);
    command.args(arguments);
    let status = command.status().map_err(|error| format!("cargo cannot be run: {error}"))?;
    if !status.success() {
        return Err("pagewell does not build".to_owned());
    }
    Ok(target().join(directory).join("pagewell"))
}
