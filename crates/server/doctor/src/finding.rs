//! What is found: something that will hurt, or does.
//!
//! A finding is complete in itself: whoever reads it needs to look nothing up to act on it. Its name is
//! stable, for scripts. Commands are for a shell as root, and last until the next boot where they say so.

use serde::Serialize;

/// How much something matters; the first matters most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    /// Visitors are refused or cut off.
    Fails,
    /// They will be, under load.
    WillFail,
    /// It costs time or memory.
    Slow,
    /// Worth knowing.
    Note,
}

impl Weight {
    /// Its name, as printed.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Weight::Fails => "fails",
            Weight::WillFail => "will fail",
            Weight::Slow => "slow",
            Weight::Note => "note",
        }
    }
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Its name: small letters and hyphens.
    pub name: &'static str,
    /// How much it matters.
    pub weight: Weight,
    /// What will happen, in a sentence.
    pub what: String,
    /// What was seen that says so.
    pub evidence: String,
    /// What to run, or to write where.
    pub command: String,
    /// What that may do besides.
    pub risk: &'static str,
}
