//! The reasons why it is not known what a statement reads, with a sentence for each.
//!
//! Such a statement has no footprint. Not here: how statements are read (`reader`).

use std::fmt;

/// Why it is not known what a statement reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnknownReads {
    /// The text cannot be split into tokens, or is longer than one megabyte.
    Text,
    /// The text has several statements.
    Several,
    /// The statement calls a function that may be a stored one.
    Function(String),
    /// The statement reads a table that is not in the schema: a view, a temporary table, or of another database.
    Table(String),
    /// The statement reads a table whose rows can change without an event of the change stream; the reason.
    Untracked(String, String),
    /// The statement reads a variable of the session, or one of the server that is not known to be a setting.
    Variable(String),
    /// The statement is of another kind, such as `CALL`.
    Kind(String),
}

impl fmt::Display for UnknownReads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnknownReads::Text => f.write_str("a text that cannot be read, or is too long"),
            UnknownReads::Several => f.write_str("several statements in one text"),
            UnknownReads::Function(name) => {
                write!(f, "the function {name}, which may be a stored one")
            }
            UnknownReads::Table(name) => {
                write!(f, "{name}, which is not a table of the followed database")
            }
            UnknownReads::Untracked(name, why) => write!(f, "the table {name}: {why}"),
            UnknownReads::Variable(name) => {
                write!(f, "the variable {name}, which is not known to be a setting")
            }
            UnknownReads::Kind(word) => write!(f, "a statement that begins with {word}"),
        }
    }
}
