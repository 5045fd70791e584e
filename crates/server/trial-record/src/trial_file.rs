//! The text of a trial's file.
//!
//! The first line is a JSON object with the secret and the versions that were compared, the second is the record. The
//! secret is used again also if the rules of the site have changed.

use page_comparison::TrialRecord;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::io;

/// The longest file that is read: 1,000 problems with the longest paths, and all versions.
pub(crate) const BYTES_MAX: u64 = 16 << 20;

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

/// Reads the text of an earlier process, for a trial of these rules.
///
/// # Errors
/// It is no such text.
pub(crate) fn earlier(text: &[u8], rules: u64) -> io::Result<EarlierTrial> {
    let (head, record) = text.split_at(text.iter().position(|byte| *byte == b'\n').unwrap_or(0));
    let head: FileHead = serde_json::from_slice(head)?;
    let record = TrialRecord::read(record, rules).map(|record| (record, head.versions));
    Ok(EarlierTrial { secret: head.secret, record })
}

/// The text of the file.
pub(crate) fn text(secret: u64, versions: HashSet<u64>, record: &TrialRecord) -> String {
    let head = FileHead { secret, versions };
    let head = serde_json::to_string(&head).unwrap_or_default();
    format!("{head}\n{}\n", record.written())
}
