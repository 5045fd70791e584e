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
    // With xtask: what is selected together has the same features of libraries.
    build("debug", &["--package", "xtask", "--features", "pagewell/settable-clock"])
}

/// A command of cargo, in the repository. It does not get the variables by which `cargo run` names the crate of this
/// program: with them, cargo compiles libraries again whose build scripts read such variables of their own (ring).
#[must_use]
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let is_of_crate =
        |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(is_of_crate) {
            command.env_remove(name);
        }
    }
    command.current_dir(repository());
    command
}

fn build(directory: &str, arguments: &[&str]) -> Result<PathBuf, String> {
    if env::var_os("PAGEWELL_BIN").is_some() {
        return crate::binary().map_err(|error| error.to_string());
    }
    let mut command = cargo();
    command.args(["build", "--quiet", "--package", "pagewell"]).args(arguments);
    let status = command.status().map_err(|error| format!("cargo cannot be run: {error}"))?;
    if !status.success() {
        return Err("pagewell does not build".to_owned());
    }
    Ok(target().join(directory).join("pagewell"))
}

#[cfg(test)]
mod tests {
    use super::cargo;

    #[test]
    fn cargo_is_called_without_the_names_of_this_crate() {
        let command = cargo();
        for name in ["CARGO_PKG_NAME", "CARGO_MANIFEST_DIR"] {
            assert!(std::env::var_os(name).is_some(), "a test has {name}");
            assert!(command.get_envs().any(|(removed, value)| removed == name && value.is_none()));
        }
    }
}
