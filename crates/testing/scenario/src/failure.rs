//! Why a story failed, told so that nothing else has to be looked up.
//!
//! File, line, what the line says, what it expected, what came, and everything that happened before:
//! the form is meant for a terminal, where `file:line:` can be clicked.

use std::fmt;

/// A story that did not go as it says.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The story's path.
    pub file: String,
    /// The line that failed, counted from 1; 0 when no single line did.
    pub line: usize,
    /// That line as written.
    pub text: String,
    /// What it expected and what it got: one pair for each thing that was wrong.
    pub wrong: Vec<Wrong>,
    /// What happened until then, a line each.
    pub transcript: Vec<String>,
}

/// One thing that was not as expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// What should have come.
    pub expected: String,
    /// What came.
    pub got: String,
}

impl Wrong {
    pub(crate) fn new(expected: impl Into<String>, got: impl Into<String>) -> Wrong {
        Wrong { expected: expected.into(), got: got.into() }
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
