//! A small disk: a file system in memory, which only root can mount.
//!
//! It has no space but its own, so a test can fill it without harm. It is unmounted on drop, also while a process has
//! files there. Not here: limits for the files of one process.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A file system in memory, which is unmounted on drop.
pub struct MountedTmpfs(PathBuf);

impl MountedTmpfs {
    /// Mounts one of this size, such as `1m`, at a directory. `None` if this process may not.
    pub fn of(at: &Path, size: &str) -> Option<MountedTmpfs> {
        let size = format!("size={size}");
        let mut mount = Command::new("mount");
        let mounted = mount.args(["-t", "tmpfs", "-o", &size, "none"]).arg(at).output().ok()?;
        mounted.status.success().then(|| MountedTmpfs(at.to_owned()))
    }
}

impl Drop for MountedTmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").args(["-l"]).arg(&self.0).status();
    }
}
