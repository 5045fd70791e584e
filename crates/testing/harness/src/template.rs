//! A data directory that is created once per process and copied for each server, because its creation takes
//! seconds.
//!
//! The first caller creates it, and concurrent callers wait. It is removed with the process. Copies have the
//! owner of the original and are identical to it, including the identifier of the server.

use crate::users::Account;
use crate::{PrivateDir, StartError, StartReason};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// A data directory to copy.
pub(crate) struct Template {
    name: &'static str,
    made: OnceLock<Result<PrivateDir, StartError>>,
}

impl Template {
    pub(crate) const fn new(name: &'static str) -> Template {
        Template { name, made: OnceLock::new() }
    }

    /// Fills the empty directory `to`. `make` creates the original in a directory, and receives another
    /// directory for its logs.
    ///
    /// # Errors
    /// The reason why the original could not be created, reported for each call, or `CannotPrepare` if it
    /// cannot be copied.
    pub(crate) fn copy(
        &self,
        to: &Path,
        account: Option<&Account>,
        make: impl FnOnce(&Path, &PrivateDir) -> Result<(), StartError>,
    ) -> Result<(), StartError> {
        let made = self.made.get_or_init(|| {
            let dir = PrivateDir::temporary(self.name)?;
            make(&dir.part("data", account)?, &dir)?;
            Ok(dir)
        });
        let from = made.as_ref().map_err(Clone::clone)?.path().join("data/.");
        let wrong = |why: &str| StartError::new(self.name, StartReason::CannotPrepare, why.trim());
        let mut copy = Command::new("cp");
        // Most of a log that was laid out is holes.
        copy.args(["-a", "--reflink=auto", "--sparse=always", "--"])
            .arg(from)
            .arg(to)
            .stdin(Stdio::null());
        let done = copy.output().map_err(|error| wrong(&error.to_string()))?;
        if done.status.success() {
            Ok(())
        } else {
            Err(wrong(&String::from_utf8_lossy(&done.stderr)))
        }
    }
}
