//! RFC 9111 for a shared cache, as pure functions: what may be stored, when it may be reused, how it
//! is validated and freshened, what a write invalidates. Beside it its companions: RFC 9110 (dates,
//! validators, preconditions, ranges), RFC 5861 (stale), RFC 9211 (Cache-Status), RFC 9213 (targeted
//! fields), RFC 9875 (Cache-Groups).
//!
//! Invariants: no clock (every time is an argument, in milliseconds), no sockets, no logging, no
//! locks; nothing here can panic on what a client or an origin sent; every list is bounded; reading a
//! request and deciding on a stored response without `Vary` allocates nothing.
//! Deliberately not here: the store, the key of a page, content codings, routing, TLS.
//!
//! # The way through
//! | step | function | outcome |
//! |---|---|---|
//! | a request arrives | [`RequestFacts::read`], [`decide`] | [`Verdict`] |
//! | it is forwarded | [`make_conditional`] | the origin's request |
//! | a response comes | [`storable`] | [`Stored`], or the reason why not ([`NotStored`]) |
//! | … a 304 to a validation | [`freshen`] | a newer [`Stored`] |
//! | … no usable response | [`may_use_stale_on`] | [`StaleUse`] |
//! | any stored response is sent | [`answer`] | 200, 206, 304, 412 or 416 ([`Answer`]) |
//! | an unsafe method succeeds | [`invalidates`], [`tags::read_invalidated_groups`] | what to drop |
//!
//! # What is obeyed, and where
//! | rule | section | module |
//! |---|---|---|
//! | dates in three formats, case aside | RFC 9110 §5.6.7, RFC 9111 §4.2 | [`date`] |
//! | storing, `must-understand`, `Authorization` | RFC 9111 §3, §3.5, §5.2.2 | `storing` |
//! | hop-by-hop and qualified fields removed | RFC 9111 §3.1, §5.2.2.4, §5.2.2.7 | `storing`, [`fields`] |
//! | lifetime, heuristics | RFC 9111 §4.2.1, §4.2.2 | `freshness` |
//! | age | RFC 9111 §4.2.3, §5.1 | `freshness`, [`Stored`] |
//! | stale responses | RFC 9111 §4.2.4, RFC 5861 | `stale` |
//! | nominated fields | RFC 9111 §4.1, RFC 9110 §12.5.5 | [`variants`] |
//! | validation, freshening, by HEAD too | RFC 9111 §4.3.1, §4.3.4, §4.3.5 | `validation` |
//! | preconditions and their order | RFC 9110 §13, RFC 9111 §4.3.2 | `conditional` |
//! | ranges | RFC 9110 §14 | [`range`] |
//! | invalidation | RFC 9111 §4.4 | `invalidation` |
//! | targeted fields | RFC 9213 | `targeted` |
//! | cache groups | RFC 9875 | [`tags`] |
//! | Cache-Status | RFC 9211 | [`status`] |
//!
//! Deviations, each argued beside its code and in `docs/http-caching.md`: a response with
//! `Set-Cookie` is never stored; request directives are ignored unless the site wants them; a
//! stale-while-revalidate or stale-if-error spelt beside `s-maxage` counts; a request with
//! `Authorization` gets a stored response only where one with it could have been stored; a bare 304
//! freshens the one response that was validated.

mod conditional;
pub mod date;
mod decide;
mod directives;
pub mod fields;
mod freshness;
mod invalidation;
mod not_stored;
mod policy;
pub mod range;
mod request;
mod stale;
pub mod status;
mod stored;
mod storing;
pub mod tags;
mod targeted;
mod time;
mod validation;
pub mod validators;
pub mod variants;

pub use conditional::{Answer, answer, not_modified_fields};
pub use decide::{Candidate, ForwardReason, Reuse, StaleBecause, Verdict, decide};
pub use directives::{RequestDirectives, ResponseDirectives};
pub use fields::Fields;
pub use freshness::LifetimeSource;
pub use invalidation::invalidates;
pub use not_stored::NotStored;
pub use policy::{
    Failure, FailureSet, FieldUse, Heuristic, HeuristicStatuses, Policy, RequestControl,
};
pub use request::{FieldLines, Method, RequestFacts};
pub use stale::{NoStaleUse, StaleUse, may_use_stale_on};
pub use stored::Stored;
pub use storing::storable;
pub use time::{SECONDS_MAX, Timestamp};
pub use validation::{HeadFinding, NotFreshened, freshen, freshen_by_head, make_conditional};
