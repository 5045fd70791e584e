//! The reasons that Pagewell gives: why a response is not stored, a page not used, a request forwarded,
//! refused or answered with an error. One table has all of them, with their names and advice.
//!
//! Invariants: layers pass a [`Reason`] on, and decide by its variants and methods. Its text is only shown
//! (`Cache-Status`, logs, explanations), never compared. The texts are part of the product: they are in the
//! manual (`docs/operating/errors.md`, made from the table) and in scenario tests.
//!
//! Which reason applies is decided elsewhere. The enums of lower crates (`http_cache::NotStored` and others)
//! are converted here; two of their variants with the same text are the same reason.

mod convert;
#[cfg(feature = "names-by-choice")]
mod other_names;
pub mod refusal;
mod table;

#[cfg(feature = "names-by-choice")]
pub use other_names::rename_all;
pub use table::Reason;

use std::fmt;

/// The tables of the manual in which a reason stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReasonTable {
    /// Why a request was sent to the origin: the values of `fwd`.
    Forwarded,
    /// Why a request bypassed the cache.
    Bypassed,
    /// Further words in the response to a write.
    Late,
    /// The origin did not answer.
    Failed,
    /// The request was refused.
    Refused,
    /// Pagewell has answered itself.
    Answered,
    /// The response was not stored.
    NotStored,
    /// In a text of the manual, and in none of its tables.
    Text,
}

impl ReasonTable {
    /// The sections that have a table.
    pub const ALL: [ReasonTable; 7] = [
        ReasonTable::Forwarded,
        ReasonTable::Bypassed,
        ReasonTable::Late,
        ReasonTable::Failed,
        ReasonTable::Refused,
        ReasonTable::Answered,
        ReasonTable::NotStored,
    ];
}

impl Reason {
    /// Whether the response forbids storing anything of the page for everybody, its parts included.
    pub fn forbids_storing(self) -> bool {
        matches!(self, Reason::NoStore | Reason::Private | Reason::SetCookie | Reason::NotOffered)
    }

    /// Whether the statements of the render are not known, or do not become dependencies.
    pub fn is_of_reads(self) -> bool {
        matches!(
            self,
            Reason::ReadsUnseen
                | Reason::ReadsHidden
                | Reason::ReadsUnknown
                | Reason::ReadsChanged
                | Reason::ReadsTooMany
        )
    }

    /// Whether the origin has failed, although it has responded: the response says nothing about the page.
    pub fn is_failure(self) -> bool {
        self == Reason::PhpFatalError
    }

    /// Whether the cause is not the response: a change during the render, too little memory, a request with its
    /// client's own values. So the page may be stored by the next render, and its requests still wait for each other.
    pub fn is_of_this_render(self) -> bool {
        matches!(
            self,
            Reason::ChangedSince
                | Reason::Unsettled
                | Reason::LeaseTooOld
                | Reason::ReadsChanged
                | Reason::MemoryShort
                | Reason::AsSent
        )
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_reason_has_one_name_in_kebab_case_and_a_description() {
        let names: BTreeSet<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
        assert_eq!(names.len(), Reason::ALL.len());
        for reason in Reason::ALL {
            let (name, meaning) = (reason.as_str(), reason.meaning());
            let is_letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
            assert!(name.bytes().all(is_letter) && !name.starts_with('-'), "{name}");
            assert!(meaning.ends_with(['.', ':']) && !meaning.contains('|'), "{name}: {meaning}");
            assert!(!reason.sections().is_empty(), "{name}");
        }
    }

    #[test]
    fn each_reason_not_to_use_the_cache_has_advice() {
        for reason in Reason::ALL {
            let needs = reason.sections().iter().any(|section| {
                !matches!(section, ReasonTable::Refused | ReasonTable::Answered | ReasonTable::Text)
            });
            let advice = reason.advice();
            assert!(advice.is_some() || !needs, "{reason}");
            assert!(advice.is_none_or(|text| text.ends_with(['.', '?', ')'])), "{reason}");
        }
    }
}
