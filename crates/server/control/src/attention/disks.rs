//! Disks that are nearly full: that of the machine's logs, and those of the snapshots.
//!
//! The crate `doctor` judges them, as for `pagewell doctor`.

use super::Problem;
use delivery::site::Site;
use doctor::{DiskSpace, Facts, examine};
use std::path::Path;
use std::sync::Arc;

/// The directory of the machine's logs.
const LOGS: &str = "/var/log";

/// The disk of the machine's logs; `None` if its free space is unknown.
#[must_use]
pub fn disk_of_logs() -> Option<DiskSpace> {
    disk_of(Path::new(LOGS), None)
}

/// The disk of a directory into which the next snapshot writes pages of so many bytes, if it is one of snapshots.
/// `None` if its free space is unknown.
fn disk_of(directory: &Path, snapshot: Option<u64>) -> Option<DiskSpace> {
    let found = rustix::fs::statvfs(directory).ok()?;
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    Some(DiskSpace { directory: directory.display().to_string(), free, snapshot })
}

pub(super) fn problems(default_site: &Arc<Site>) -> Vec<Problem> {
    let of_snapshots = default_site.all_sites().filter_map(|site| {
        let config = &site.snapshots.as_ref()?.config;
        let bytes = site.store.stats().bytes.used() as u64;
        disk_of(&config.directory, Some(bytes.min(config.bytes_max)))
    });
    of_snapshots.chain(disk_of_logs()).filter_map(problem).collect()
}

fn problem(disk: DiskSpace) -> Option<Problem> {
    let subject = disk.directory.clone();
    let finding = examine(&Facts { disks: vec![disk], ..Facts::default() }).pop()?;
    Some(Problem::of_finding(finding, subject))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_without_room_for_the_next_snapshot_is_named() {
        let directory = std::env::temp_dir();
        let disk = disk_of(&directory, Some(0)).expect("a disk");
        assert!(disk.free > 0 && problem(disk).is_none());
        // More than any disk has.
        let disk = disk_of(&directory, Some(u64::MAX)).expect("a disk");
        let found = problem(disk).expect("it is full");
        let shown = directory.display().to_string();
        assert_eq!((found.name, &found.subject), ("disk-full", &shown));
        assert!(found.what.contains("snapshot does not fit") && found.what.contains("is free"));
        assert!(found.remedy.starts_with(&format!("df -h {shown} ")), "{}", found.remedy);
        assert_eq!(disk_of(Path::new("/no/such"), None), None);
    }
}
