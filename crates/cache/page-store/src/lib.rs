//! The page store: stored responses in memory, what each was made from, and what has changed since.
//!
//! It keeps one promise: **once a change has been acknowledged, no lookup finds a page made from the data as
//! it was before, and no render that began before is stored or shared with a request that came after** (as
//! long as the page says what it was made from). How: every change has a number from one clock; every
//! render holds a [`Lease`], the clock's value when it began; [`Store::insert`] checks and inserts in one
//! step. Where to read: `store.rs` (lookup, insertion, locks), `change.rs` (changes, settling),
//! `predicate.rs` (changes without a name), `index.rs` (the checks), `tags.rs` (the dependency index; `runs.rs`: its edges; `urls.rs`),
//! `owners.rs` (private pages), `rewarm.rs`, `supersede.rs` (answers that are not stored), `told.rs` (what a change touched), `restore.rs` (what outlives the process), `evict.rs`, `unused.rs`, `fill.rs` (collapse).
//!
//! No sockets, no clock, no logging, no `unsafe`. Times come in as arguments. It knows nothing of HTTP: keys
//! and tags are bytes, what is stored is the caller's [`Payload`]. Every structure is bounded by [`Limits`].

#![forbid(unsafe_code)]

mod address;
mod alone;
mod budget;
mod change;
mod evict;
mod fill;
mod hash;
mod index;
mod lease;
#[cfg(feature = "lease-check-by-choice")]
mod lease_check;
mod list;
mod names;
mod owners;
mod page;
mod places;
mod predicate;
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
mod unused;
mod urls;
mod validate;

pub use budget::{
    EDGE_BYTES_TYPICAL, Limits, NAME_BYTES_TYPICAL, PAGE_BYTES_TYPICAL, heap as allocated,
};
pub use change::{Applied, Aside, Keys, Opened};
pub use fill::{Alone, Arrived, FillLimits, FillStats, Fills, Follower, Leader, Turn, Why};
pub use lease::{Lease, Number};
#[cfg(feature = "lease-check-by-choice")]
pub use lease_check::leave_out_lease_check;
pub use list::Listing;
pub use names::{Change, Dependencies, Site, Strength, Target};
pub use page::{Audience, Candidates, Key, KeyBuf, Marked, New, Page, Payload, SERVED_MAX};
pub use places::Tidied;
pub use predicate::Touches;
pub use refused::{NotStored, Refused};
pub use restore::{Found, NotRestored, Restoring, Stay, Walk, Worth};
pub use stats::{Bytes, Counters, Stats};
pub use store::{NotReplaced, Removed, Store};
pub use supersede::Superseded;
pub use sync::POISONED;
pub use told::{Name, TOLD_MAX, Told};
pub use unused::{Older, Round};
