//! The reasons why a render is not stored or may not be shared. Logs, metrics and headers use the same
//! names.
//!
//! They are rule 1 (a change since the render began), the settling of changes from a stream, rule 4 (the
//! memory of changes is limited), and the limits of a page. Lack of space is no reason: other pages are
//! evicted.

use crate::page::Page;
use std::fmt;

/// The reason why a render was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoreRefusal {
    /// A dependency changed after the render began.
    ChangedSince,
    /// A change of a dependency had not settled when the render began.
    Unsettled,
    /// The render began before the oldest remembered change, so it cannot be checked any more.
    LeaseTooOld,
    /// The store holds the same variant from a later render, or the origin has answered a later render with
    /// a response that is not stored.
    Superseded,
    /// The page is larger than a page may be.
    TooLarge,
    /// The page has more tags than the limit, or its list of tags was truncated.
    TooManyTags,
    /// A tag of the page is longer than the limit.
    TagTooLong,
    /// The page has tags in the scope of an owner but no owner, or it has two owners.
    OwnerUnclear,
}

impl StoreRefusal {
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

    /// Whether a render that begins now may succeed: the refusal was only due to changes.
    pub fn is_outdated(self) -> bool {
        matches!(self, Self::ChangedSince | Self::Unsettled | Self::LeaseTooOld)
    }

    /// The name of the reason, as logs, metrics and `Cache-Status` show it.
    pub const fn as_str(self) -> &'static str {
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

impl fmt::Display for StoreRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A render that was not stored. Its page is in no store, but may still answer the request that it was
/// rendered for.
pub struct NotStored<P> {
    /// The reason for the refusal.
    pub reason: StoreRefusal,
    /// The page as it would have been stored.
    pub page: Page<P>,
}

impl<P> fmt::Debug for NotStored<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NotStored").field(&self.reason).field(&self.page).finish()
    }
}
