//! The file of a trial: `NAME.trial`, beside the snapshots of the site's pages. Only the owner may read it.
//!
//! The first line is a JSON object with the secret and the versions that were compared, the second is the record. The
//! file is replaced by a rename, so there is always a complete one. It is not waited for (`fsync`): after a power
//! failure a minute of counts may be missing.

use page_comparison::TrialRecord;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use trusted_files::Existing;

/// The longest file that is read: 1,000 problems with the longest paths, and all versions.
const BYTES_MAX: u64 = 16 << 20;
/// Only the owner may read the file: it names URLs and cookies.
const MODE: u32 = 0o600;

/// The part of the file that is kept when the rules of the site change.
#[derive(Serialize, Deserialize)]
struct FileHead {
    secret: u64,
    versions: HashSet<u64>,
}

/// The state of an earlier process.
pub(crate) struct EarlierTrial {
    pub(crate) secret: u64,
    /// The record with its versions; none if it is of other rules.
    pub(crate) record: Option<(TrialRecord, HashSet<u64>)>,
}

/// Reads the file, if there is one.
pub(crate) fn read(path: &Path, rules: u64) -> io::Result<Option<EarlierTrial>> {
    let text = match trusted_files::read(path, BYTES_MAX) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text?,
    };
    let (head, record) = text.split_at(text.iter().position(|byte| *byte == b'\n').unwrap_or(0));
    let head: FileHead = serde_json::from_slice(head)?;
    let record = TrialRecord::read(record, rules).map(|record| (record, head.versions));
    Ok(Some(EarlierTrial { secret: head.secret, record }))
}

/// The text of the file.
pub(crate) fn text(secret: u64, versions: HashSet<u64>, record: &TrialRecord) -> String {
    let head = FileHead { secret, versions };
    let head = serde_json::to_string(&head).unwrap_or_default();
    format!("{head}\n{}\n", record.written())
}

/// Replaces the file.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let new = path.with_extension("trial.new");
    let written = trusted_files::create(&new, Existing::Removed, MODE)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        // A part of it would take the last room of a full disk.
        let _ = fs::remove_file(&new);
    }
    written
}
