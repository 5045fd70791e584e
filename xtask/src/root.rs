//! Where the repository is, and where its builds go.
//!
//! Tasks can be called from any directory: everything is found from the place this crate was
//! compiled in.

use std::env;
use std::path::{Path, PathBuf};

/// The root of the repository.
pub fn repository() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// The directory for what is built: `target`, or where cargo has been told to put it.
pub fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| repository().join("target"), |path| repository().join(path))
}
