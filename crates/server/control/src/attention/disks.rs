//! Disks that are nearly full: that of the machine's logs, those of the snapshots, and those of the records of trials
//! and audits and of the access log, which a site without snapshots writes as well.
//!
//! The crate `doctor` judges them, as for `pagewell doctor`. A file system without a size, such as `/proc`, is none.

use super::Problem;
use config::AccessLogTo;
use delivery::site::Site;
use doctor::{DiskSpace, Facts, WrittenFiles, examine};
use std::path::Path;
use std::sync::Arc;

/// The directory of the machine's logs.
const LOGS: &str = "/var/log";

/// The disk of the machine's logs; `None` if its free space is unknown.
#[must_use]
pub fn disk_of_logs() -> Option<DiskSpace> {
    disk_of(Path::new(LOGS), WrittenFiles::MachineLogs)
}

/// The bytes on the disk of a directory that are free for the users of the machine. `None` if that is unknown.
#[must_use]
pub fn free_space(directory: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(directory).ok().filter(|found| found.f_blocks > 0)?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

/// The disk of a directory to which these files are written. `None` if its free space is unknown.
fn disk_of(directory: &Path, files: WrittenFiles) -> Option<DiskSpace> {
    let free = free_space(directory)?;
    Some(DiskSpace { directory: directory.display().to_string(), free, files })
}

pub(super) fn problems(default_site: &Arc<Site>) -> Vec<Problem> {
    let of_sites = default_site.all_sites().filter_map(|site| kept(site));
    let disks = of_sites.chain(of_access_log(default_site)).chain(disk_of_logs());
    disks.filter_map(problem).collect()
}

/// The disk of the files of a site that survive a restart.
fn kept(site: &Site) -> Option<DiskSpace> {
    let Some(snapshots) = &site.snapshots else {
        return disk_of(site.config.kept_directory()?, WrittenFiles::Records);
    };
    let bytes = (site.store.stats().bytes.used() as u64).min(snapshots.config.bytes_max);
    disk_of(&snapshots.config.directory, WrittenFiles::Snapshots(bytes))
}

fn of_access_log(default_site: &Site) -> Option<DiskSpace> {
    let AccessLogTo::File(path) = &default_site.config.access_log.as_ref()?.to else {
        return None;
    };
    disk_of(path.parent()?, WrittenFiles::AccessLog)
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
    fn a_full_disk_of_records_or_of_the_access_log_is_named() {
        let of = |files, free| problem(DiskSpace { directory: "/x".into(), free, files });
        for (files, word) in [
            (WrittenFiles::Records, "a trial or an audit"),
            (WrittenFiles::AccessLog, "access log"),
        ] {
            let found = of(files, 0).expect("it is full");
            assert_eq!((found.name, &*found.subject), ("disk-full", "/x"));
            assert!(found.what.contains(word) && found.what.contains("is free"), "{}", found.what);
            assert!(found.remedy.starts_with("df -h /x "), "{}", found.remedy);
            // A small disk is not a full one.
            assert_eq!(of(files, 20_000_000), None);
        }
        let none = disk_of(Path::new("/proc/self"), WrittenFiles::AccessLog);
        assert_eq!(none, None, "it has no size, as for /proc/self/fd/1");
    }

    #[test]
    fn a_disk_without_room_for_the_next_snapshot_is_named() {
        let directory = std::env::temp_dir();
        let disk = disk_of(&directory, WrittenFiles::Snapshots(0)).expect("a disk");
        assert!(disk.free > 0 && problem(disk).is_none());
        // More than any disk has.
        let disk = disk_of(&directory, WrittenFiles::Snapshots(u64::MAX)).expect("a disk");
        let found = problem(disk).expect("it is full");
        let shown = directory.display().to_string();
        assert_eq!((found.name, &found.subject), ("disk-full", &shown));
        assert!(found.what.contains("snapshot does not fit") && found.what.contains("is free"));
        assert!(found.remedy.starts_with(&format!("df -h {shown} ")), "{}", found.remedy);
        assert_eq!(disk_of(Path::new("/no/such"), WrittenFiles::MachineLogs), None);
    }
}
