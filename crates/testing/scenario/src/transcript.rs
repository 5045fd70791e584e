//! The events of a scenario, in order: the engine and the origin's threads write them, and the report of a
//! failure contains them.
//!
//! Bounded: of a long scenario the beginning is dropped, of a long line the end.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// The maximum number of lines.
const LINES_MAX: usize = 200;

/// The maximum length of a line in bytes.
const LINE_BYTES: usize = 400;

/// The lines so far; clones share them. The lock protects only the lines.
#[derive(Clone, Default)]
pub(crate) struct Transcript(Arc<Mutex<VecDeque<String>>>);

impl Transcript {
    /// Adds a line.
    pub(crate) fn add(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(shorten(line.into_bytes().as_slice(), LINE_BYTES));
    }

    /// All lines.
    pub(crate) fn lines(&self) -> Vec<String> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().cloned().collect()
    }
}

/// `bytes` as readable text: control characters are escaped, and at most `max` characters are shown, with a
/// note about the rest.
pub(crate) fn shorten(bytes: &[u8], max: usize) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(max)]);
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\r' => shown.push_str("\\r"),
            '\n' => shown.push_str("\\n"),
            c if c.is_control() => shown.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => shown.push(c),
        }
    }
    match bytes.len() {
        length if length > max => format!("{shown}… ({length} bytes)"),
        _ => shown,
    }
}
