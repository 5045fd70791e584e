//! The report of a failed scenario, which is complete enough to understand the failure.
//!
//! It contains the file, the line and its text, the expectation, the actual result, and everything that
//! happened before. The format is for a terminal in which `file:line:` is a link.

use std::fmt;

/// A scenario that has failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The path of the scenario.
    pub file: String,
    /// The line that failed, counted from 1; 0 if the failure belongs to no line.
    pub line: usize,
    /// The text of that line.
    pub text: String,
    /// The differences: one pair of expected and actual values for each.
    pub wrong: Vec<Mismatch>,
    /// The events until the failure, one per line.
    pub transcript: Vec<String>,
}

/// A difference between expectation and result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The value that was expected.
    pub expected: String,
    /// The value that was received.
    pub got: String,
}

impl Mismatch {
    pub(crate) fn new(expected: impl Into<String>, got: impl Into<String>) -> Mismatch {
        Mismatch { expected: expected.into(), got: got.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => writeln!(f, "{}", self.file)?,
            line => writeln!(f, "{}:{line}: {}", self.file, self.text.trim())?,
        }
        for wrong in &self.wrong {
            writeln!(f, "  expected  {}", wrong.expected)?;
            writeln!(f, "  got       {}", wrong.got)?;
        }
        if !self.transcript.is_empty() {
            writeln!(f, "  the story so far:")?;
        }
        for line in &self.transcript {
            writeln!(f, "    {line}")?;
        }
        Ok(())
    }
}
