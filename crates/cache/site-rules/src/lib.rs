//! What a site chooses about its pages: rules, the normal form of a URL, which cookies count.
//!
//! Pure: no sockets, no clock, no logging; time and randomness are arguments. [`SiteRules::plan`]
//! says what is to be done with a request before the store is asked, [`SiteRules::revise`] what is to
//! be done with its response before it is stored. For a site without rules neither allocates.
//!
//! The invariant that everything here serves: **a page that was rendered for a session never becomes
//! the copy of others**. A request with a session cookie is passed on and its response not stored,
//! unless the cookie is in the key of the copy, or has been taken out of what goes to the origin.
//! Deliberately not here: RFC 9111 itself (`http-cache`), the store, routing.

mod agent;
mod compile;
mod cookies;
mod duration;
mod fields;
mod form;
mod glob;
mod known;
mod language;
mod mark;
mod owner;
mod plan;
pub mod raw;
mod revise;
mod rule;
mod view;

pub use agent::Agent;
pub use compile::{RuleError, SiteRules, Surroundings};
pub use cookies::{AFTER_WRITE_COOKIE, CookieKind, Unknown};
pub use duration::parse_duration;
pub use fields::reason_to_bypass;
pub use form::{KeyForm, Normal};
pub use known::{SCRIPT_COOKIES, SESSION_COOKIES, TRACKING};
pub use mark::Secret;
pub use owner::{
    LITESPEED_OWNERS, NoOwner, OWNER_COOKIES_MAX, OWNER_KEY_BYTES_MAX, OWNER_PART,
    OWNER_VALUE_BYTES_MIN, Owner, OwnerCookies,
};
pub use plan::{BypassBecause, Handling, Load, Plan, Ruling, key_without_vary};
pub use revise::{Ignored, Refusal, Revision};
pub use view::{Peer, Planned, RequestView};
