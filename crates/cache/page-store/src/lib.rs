//! The page store: stored responses in memory, the names that each depends on, and the changes since.
//!
//! **After a change is acknowledged, no lookup finds a page with data from before it. No render that began
//! before it is stored or shared with a later request.** This holds as far as a page states its
//! dependencies. Each change has a number from one clock. Each render holds a [`Lease`], the clock's value
//! when it began; [`Store::insert`] checks it and inserts in one step. Where to read: `store.rs` (lookup,
//! insertion, locks), `change.rs` (changes, settling), `predicate.rs`, `index.rs` (the checks), `tags.rs`,
//! `runs.rs` and `urls.rs` (dependency index), `owners.rs` (private pages), `rewarm.rs`, `supersede.rs`
//! (responses not stored), `told.rs` (the pages of a change), `restore.rs` (warm restart), `evict.rs`,
//! `inactive.rs` (inactive pages), `fill.rs` (collapse). No sockets, clock, logging, HTTP or `unsafe`. Keys
//! and tags are bytes; [`Limits`] bounds every structure.

#![forbid(unsafe_code)]

mod address;
mod budget;
mod change;
mod evict;
mod expiring;
mod fill;
mod hash;
mod inactive;
mod index;
mod index_pages;
mod lease;
#[cfg(feature = "lease-check-by-choice")]
mod lease_check;
mod list;
mod names;
mod owners;
mod page;
mod places;
mod predicate;
mod predicates;
mod refused;
mod restore;
mod rewarm;
mod runs;
mod shards;
mod slab;
mod stats;
mod store;
mod supersede;
mod sync;
mod table;
mod tags;
mod told;
mod urls;
mod validate;

pub use address::normal_spelling;
pub use budget::{
    EDGE_BYTES_TYPICAL, Limits, NAME_BYTES_TYPICAL, PAGE_BYTES_TYPICAL, heap as allocated,
};
pub use change::{AppliedChange, Aside, Keys, OpenChange};
pub use expiring::ExpiringKeys;
pub use fill::{
    Arrival, FillLimits, FillStats, Fills, Follower, Leader, SoloReason, SoloRender, Turn,
};
pub use hash::Site;
pub use inactive::IdleScan;
pub use lease::{Lease, Number, is_lease_checked};
#[cfg(feature = "lease-check-by-choice")]
pub use lease_check::leave_out_lease_check;
pub use list::Listing;
pub use names::{Change, ChangeTarget, Dependencies, Strength};
pub use page::{
    AgeStep, Audience, Candidates, Key, KeyBuf, Page, PageInput, Payload, SERVED_MAX, SoftMark,
};
pub use predicates::PagePredicate;
pub use refused::{NotStored, StoreRefusal};
pub use restore::{NotRestored, RestoreSession, Walk, WalkedPage, Worth};
pub use stats::{Bytes, Counters, Stats};
pub use store::{NotReplaced, Store};
pub use supersede::SupersedeOutcome;
pub use sync::POISONED;
pub use told::{DependencyName, REPORTED_PAGES_MAX, ReportedPage};
