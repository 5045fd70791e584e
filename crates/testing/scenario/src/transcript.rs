//! What has happened in a story, in order: written to by the engine and by the origin's threads,
//! read when the story fails.
//!
//! Bounded: of a long story the beginning is left out, of a long line the end.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Lines that are kept.
const LINES_MAX: usize = 200;

/// Bytes of a line that are kept.
const LINE_BYTES: usize = 400;

/// The lines so far; clones share them. The lock guards the lines alone.
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

/// `bytes` as readable text: control characters escaped, at most `max` characters, and what is left
/// out said.
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
