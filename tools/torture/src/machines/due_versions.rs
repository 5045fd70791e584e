//! The versions of the cells: a file for each, whose number goes up, and the versions that every machine has to show in the
//! end.
//!
//! Scripts and writers commit under the same lock, by putting a new file in the old one's place, so a reader
//! gets a whole number. The version that is *due* is the newest one of a cell that the machines certainly publish
//! sooner or later; `site` has the acknowledged versions, which have to be shown at once. Both only grow.

use crate::site::{Page, Site};
use crate::stamp::Versions;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// A version of a cell.
pub type Version = (usize, u64);

/// The true version of each cell.
pub struct DueVersions {
    /// The pages, and what was acknowledged.
    pub site: Arc<Site>,
    directory: PathBuf,
    owed: Vec<AtomicU64>,
}

impl DueVersions {
    /// In a new directory; every cell has version 0.
    ///
    /// # Errors
    /// Those of the system.
    pub fn new(site: Arc<Site>, directory: &Path) -> io::Result<DueVersions> {
        fs::create_dir(directory)?;
        // Scripts run as somebody else.
        fs::set_permissions(directory, Permissions::from_mode(0o777))?;
        let cells = site.items + site.pages.len();
        for cell in 0..cells {
            fs::write(directory.join(cell.to_string()), "0")?;
            let lock = directory.join(format!("{cell}.lock"));
            fs::write(&lock, "")?;
            fs::set_permissions(&lock, Permissions::from_mode(0o666))?;
        }
        let owed = (0..cells).map(|_| AtomicU64::new(0)).collect();
        Ok(DueVersions { site, directory: directory.to_owned(), owed })
    }

    /// Changes cells; from now on scripts read the versions that are returned.
    ///
    /// # Errors
    /// Those of the system.
    pub fn commit(&self, cells: &[usize]) -> io::Result<Vec<Version>> {
        let one = |cell: &usize| {
            let at = self.directory.join(cell.to_string());
            let lock = File::options().write(true).open(at.with_extension("lock"))?;
            lock.lock()?;
            let text = fs::read_to_string(&at)?;
            let version = text.parse::<u64>().map_err(io::Error::other)? + 1;
            let new = at.with_extension("new");
            fs::write(&new, version.to_string())?;
            fs::rename(&new, &at)?;
            Ok((*cell, version))
        };
        cells.iter().map(one).collect()
    }

    /// In the end every machine shows this, or what is newer.
    pub fn owe(&self, versions: &[Version]) {
        for (cell, version) in versions {
            self.owed[*cell].fetch_max(*version, SeqCst);
        }
    }

    /// The versions that a page has to be made from in the end, at least.
    pub fn wanted(&self, page: &Page) -> Versions {
        let mut wanted = self.site.acknowledged(page);
        for (version, cell) in wanted.iter_mut().zip(page.reads) {
            *version = (*version).max(self.owed[cell].load(SeqCst));
        }
        wanted
    }
}

/// Reads the field `X-Committed: 3:17 60:2` as cells and versions.
pub fn committed(field: &str) -> Option<Vec<Version>> {
    let version = |pair: &str| {
        let (cell, version) = pair.split_once(':')?;
        Some((cell.parse().ok()?, version.parse().ok()?))
    };
    field.split(' ').map(version).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publication::Strength;
    use harness::PrivateDir;

    #[test]
    fn commits_count_up_and_pending_versions_are_expected() {
        let dir = PrivateDir::temporary("truth").expect("a directory");
        let site = Arc::new(Site::new(1, 10, 10));
        let due = DueVersions::new(site.clone(), &dir.path().join("truth")).expect("files");
        let page = &site.pages[0];
        let [first, .., own] = page.reads;
        assert_eq!(due.commit(&[own, first]).expect("a commit"), [(own, 1), (first, 1)]);
        assert_eq!(due.commit(&[own]).expect("a commit"), [(own, 2)]);
        assert_eq!(due.wanted(page), [0; 5]);
        due.owe(&[(own, 2), (own, 1)]);
        site.acknowledge(first, 1, Strength::Hard, 0);
        assert_eq!(due.wanted(page), [1, 0, 0, 0, 2]);
        assert_eq!(committed("3:17 60:2"), Some(vec![(3, 17), (60, 2)]));
        assert_eq!(committed("3"), None);
    }
}
