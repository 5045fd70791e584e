//! RFC 9111 for a shared cache, as pure functions: storing, reuse, validation, freshening and invalidation.
//! It also covers RFC 9110 (dates, validators, preconditions, ranges), RFC 5861 (stale), RFC 9211
//! (Cache-Status), RFC 9213 (targeted fields) and RFC 9875 (Cache-Groups).
//!
//! Invariants: no clock (every time is an argument, in milliseconds), no sockets, no logging, no locks. No
//! input from a client or an origin causes a panic, and every list has a limit. Reading a request and
//! deciding on a stored response without `Vary` allocates nothing. Not in this crate: the store, cache
//! keys, compression, routing, TLS.

#![doc = include_str!("../OVERVIEW.md")]

pub mod codings;
mod conditional;
mod decide;
mod freshness;
#[cfg(test)]
mod headers_tests;
mod invalidation;
pub mod litespeed;
mod not_stored;
mod owned;
mod packed;
pub mod parts;
mod policy;
pub mod range;
mod reference;
mod refusal;
mod request;
mod sparse;
mod stale;
pub mod status;
mod stored;
mod storing;
mod tagged_tables;
pub mod tags;
mod targeted;
mod validation;
pub mod validators;
pub mod variants;

pub use conditional::{Answer, answer, goes_with_not_modified, not_modified_fields};
pub use decide::{Candidate, ForwardReason, Reuse, StaleBecause, UnusableBecause, Verdict, decide};
pub use freshness::LifetimeSource;
pub use http_fields::{
    CookieName, Fields, RequestDirectives, ResponseDirectives, SECONDS_MAX, Timestamp, cookie_name,
    date, fields,
};
pub use invalidation::invalidates;
pub use not_stored::NotStored;
pub use owned::{OwnedTerms, PrivateWord, storable_for_owner};
pub use packed::Directives;
pub use policy::{
    Failure, FailureSet, FieldUse, Heuristic, Policy, RequestControl, SENDFILE_FIELDS,
};
pub use reference::Reference;
pub use refusal::{CODE_BYTES_MAX, REFUSAL_FIELD, refusal_code};
pub use request::{FieldLines, Method, RequestFacts};
pub use sparse::{MaybeEmpty, Sparse};
pub use stale::{NoStaleUse, StaleUse, may_use_stale_on, must_be_validated};
pub use stored::{Forms, ResponseExtras, StoredFacts, StoredResponse};
pub use storing::storable;
pub use targeted::says_esi;
pub use validation::{HeadFinding, NotFreshened, freshen, freshen_by_head, make_conditional};
