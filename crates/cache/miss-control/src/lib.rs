//! Rations the requests that need the origin: which of them gets the next free place there, and which
//! is deferred while crawlers ask for more pages than the origin can make.
//!
//! A request has a [level](ClientLevel), the evidence about its client, and a [group](MissGroup), what
//! it asks for. A crawler can improve its level, but it cannot change the group of the URLs that it
//! wants. So free places go to the groups in turn, and within a group to the best level.
//!
//! Start reading at [`MissQueue`]. Invariants: never more requests at the origin than places; each
//! waiter is given a place, is deferred, or leaves; everything is bounded, the queue by [`QueueLimits`].
//! The evidence about clients is in [`ClientTable`], [`Ticket`] and [`OutsideAnswers`], rates are in [`RateTable`], reports in [`MissReport`].
//! Not here: I/O, the clock (time is an argument), HTTP, and the waiting itself, which is in
//! `origin/src/places.rs`. Reasons and figures: docs/decisions/misses.md.

mod answers;
mod clients;
mod group;
mod measured;
mod overload;
mod pace;
mod queue;
mod rate_limits;
mod rates;
mod report;
mod shares;
mod ticket;
mod turns;

pub use answers::{OutsideAnswer, OutsideAnswers};
pub use clients::{ClientNetwork, ClientTable, ShownEvidence, address_number};
pub use group::{ClientLevel, MissGroup, MissKind, UrlSection, UrlShape, comes_before};
pub use overload::OverloadChange;
pub use pace::{RateOf, RequestRate, SiteRates};
pub use queue::{
    Deferral, HeldPlace, Miss, MissOrder, MissOutlook, MissQueue, QueueEntry, QueueLimits, WaiterId,
};
pub use rate_limits::RateTable;
pub use report::{BusiestGroup, MissReport, Ranking, RequestCounts, WaitCounts, percent};
pub use ticket::{TICKET_CODE_BYTES, Ticket};
