//! A finding: a current problem, or one that will occur under load.
//!
//! A finding is complete: it contains everything needed to act on it. Its name is stable, for scripts. Commands
//! are for a root shell, and state if they only last until the next boot.

use serde::Serialize;

/// The severity of a finding, the most severe first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    /// Clients are refused or disconnected now.
    Fails,
    /// Clients will be refused or disconnected under load.
    WillFail,
    /// The problem costs time or memory.
    Slow,
    /// Information only.
    Note,
}

impl Weight {
    /// The name as printed.
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

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The name: lower-case letters and hyphens.
    pub name: &'static str,
    /// The severity of the finding.
    pub weight: Weight,
    /// The effect, in one sentence.
    pub what: String,
    /// The facts that show the problem.
    pub evidence: String,
    /// The command to run, or the line to add to a file.
    pub command: String,
    /// The risk of the command.
    pub risk: &'static str,
}
