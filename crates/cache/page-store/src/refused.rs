//! Why a render was not stored, or may not be shared: one name each, the same in logs, metrics and headers.
//!
//! Rule 1 (a change since the render began), the settling of changes read from a stream, rule 4 (the memory
//! of changes is bounded), and the limits of a page. There is no refusal for want of space: space is made.

use crate::page::Page;
use std::fmt;

/// The reason for which a render was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refused {
    /// Something it was made from changed after it began.
    ChangedSince,
    /// A change of something it was made from had not settled when it began.
    Unsettled,
    /// It began before the oldest change that is still remembered: nobody can say any more.
    LeaseTooOld,
    /// The store holds the same variant from a render that began later, or the origin has answered such a
    /// render with what is not stored.
    Superseded,
    /// It is larger than one page may be.
    TooLarge,
    /// It has more tags than a page may have, or its list of tags was cut.
    TooManyTags,
    /// One of its tags is longer than a tag may be.
    TagTooLong,
    /// It has tags in the scope of an owner and no owner, or two owners.
    OwnerUnclear,
}

impl Refused {
    /// All reasons, in the order in which [`Stats`](crate::Stats) counts them.
    pub const ALL: [Self; 8] = [
        Self::ChangedSince,
        Self::Unsettled,
        Self::LeaseTooOld,
        Self::Superseded,
        Self::TooLarge,
        Self::TooManyTags,
        Self::TagTooLong,
        Self::OwnerUnclear,
    ];

    /// Whether a render that begins now may fare better: what it was made from had changed, no more.
    pub fn is_outdated(self) -> bool {
        matches!(self, Self::ChangedSince | Self::Unsettled | Self::LeaseTooOld)
    }

    /// The reason's name as logs, metrics and `Cache-Status` have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ChangedSince => "changed-since",
            Self::Unsettled => "unsettled",
            Self::LeaseTooOld => "lease-too-old",
            Self::Superseded => "superseded",
            Self::TooLarge => "too-large",
            Self::TooManyTags => "too-many-tags",
            Self::TagTooLong => "tag-too-long",
            Self::OwnerUnclear => "owner-unclear",
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A render that was not stored. Its page was never in the store and never will be, but may still answer
/// the request it was made for.
pub struct NotStored<P> {
    /// Why.
    pub reason: Refused,
    /// The page as it would have been stored.
    pub page: Page<P>,
}

impl<P> fmt::Debug for NotStored<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NotStored").field(&self.reason).field(&self.page).finish()
    }
}
