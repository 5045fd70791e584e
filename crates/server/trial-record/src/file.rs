//! The file of a trial: `NAME.trial`, beside the snapshots of the site's pages. Only the owner may read it.
//!
//! The directory is created if it is missing, as for the pages: without them, nothing else does this.
//! The first line is a JSON object with the secret and the versions that were compared, the second is the record. The
//! file is replaced by a rename, so there is always a complete one. It is not waited for (`fsync`): after a power
//! failure a minute of counts may be missing.

use page_comparison::TrialRecord;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use trusted_files::{Existing, Writers};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The longest file that is read: 1,000 problems with the longest paths, and all versions.
const BYTES_MAX: u64 = 16 << 20;
/// Only the owner may read the file: it names URLs and cookies.
const MODE: u32 = 0o600;
/// Only the owner may list the directory.
const DIRECTORY_MODE: u32 = 0o700;

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

/// Reads the file, if there is one. Returns the hash of its text, if that can be read, and the state in it.
pub(crate) fn read(path: &Path, rules: u64) -> (Option<u64>, io::Result<Option<EarlierTrial>>) {
    match trusted_files::read(path, BYTES_MAX) {
        Ok(text) => (Some(hash(&text)), earlier(&text, rules).map(Some)),
        Err(error) if error.kind() == ErrorKind::NotFound => (None, Ok(None)),
        Err(error) => (None, Err(error)),
    }
}

fn earlier(text: &[u8], rules: u64) -> io::Result<EarlierTrial> {
    let (head, record) = text.split_at(text.iter().position(|byte| *byte == b'\n').unwrap_or(0));
    let head: FileHead = serde_json::from_slice(head)?;
    let record = TrialRecord::read(record, rules).map(|record| (record, head.versions));
    Ok(EarlierTrial { secret: head.secret, record })
}

/// The hash of a text.
pub(crate) fn hash(text: &[u8]) -> u64 {
    xxh3_64_with_seed(text, 0)
}

/// The hash of the file's text; `None` if it cannot be read.
pub(crate) fn hash_at(path: &Path) -> Option<u64> {
    trusted_files::read(path, BYTES_MAX).ok().map(|text| hash(&text))
}

/// The text of the file.
pub(crate) fn text(secret: u64, versions: HashSet<u64>, record: &TrialRecord) -> String {
    let head = FileHead { secret, versions };
    let head = serde_json::to_string(&head).unwrap_or_default();
    format!("{head}\n{}\n", record.written())
}

/// Creates the directory of the file if it is missing.
pub(crate) fn create_directory(path: &Path) -> io::Result<()> {
    let Some(directory) = path.parent() else { return Ok(()) };
    DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(directory)?;
    trusted_files::directory(directory, Writers::Owner)
}

/// Replaces the file.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let new = path.with_extension("trial.new");
    create_directory(path)?;
    let written = trusted_files::create(&new, Existing::Removed, MODE)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        // A part of it would take the last room of a full disk.
        let _ = fs::remove_file(&new);
    }
    written
}
