//! Why the last reload of the configuration or of its files failed, for the findings (`control::attention`).
//!
//! A reload that succeeds has read the files, too, so it removes both texts. So does reading the files while the
//! configuration file says again what is in effect: then nothing is left to reload. Files that are read by themselves,
//! such as those of passwords, keep their errors themselves.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The failures of the last reload, and of the last time that changed files were read. A lock guards only the texts.
#[derive(Debug, Default)]
pub struct FailedReload(Mutex<Failures>);

#[derive(Debug, Default)]
struct Failures {
    reload: Option<String>,
    files: Option<String>,
}

impl FailedReload {
    /// Records the result of a reload. One that succeeds has read the files, too.
    pub fn note(&self, failure: Option<String>) {
        let mut failures = self.failures();
        if failure.is_none() {
            failures.files = None;
        }
        failures.reload = failure;
    }

    /// Records the result of reading changed files.
    pub fn note_files(&self, failure: Option<String>) {
        self.failures().files = failure;
    }

    /// The reason why the last reload failed.
    pub fn of_reload(&self) -> Option<String> {
        self.failures().reload.clone()
    }

    /// The reason why changed files could not be read.
    pub fn of_files(&self) -> Option<String> {
        self.failures().files.clone()
    }

    fn failures(&self) -> MutexGuard<'_, Failures> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
