//! The choices of a site about its pages: rules, URL normalisation, cookies; and its rules for access, scripts and
//! response fields (`edge`).
//!
//! The crate is pure: no sockets, no clock, no logging; time and randomness are arguments.
//! [`SiteRules::plan`] decides on a request before the store lookup. [`SiteRules::revise`] decides on its
//! response before it is stored. Neither allocates for a site without rules.
//!
//! The central invariant: **a page that was rendered for a session is never served to others**. A request
//! with a session cookie bypasses the cache and its response is not stored, with two exceptions: the cookie
//! is in the cache key, or it is removed from the forwarded request. Not in this crate: the conditions of rules
//! (`rule-conditions`), RFC 9111 itself (`http-cache`), the store, routing.

mod compile;
mod cookies;
mod declared;
mod duration;
mod edge;
mod fields;
mod form;
mod ignored;
mod language;
mod mark;
mod owner;
mod plan;
mod planned;
pub mod raw;
mod revise;
mod role;
mod rule;
mod rules;
mod unreached;
mod visitor;

pub use compile::{RuleError, Surroundings};
pub use cookies::{
    AFTER_WRITE_COOKIE, COOKIES_REPORTED_MAX, CookieKind, TICKET_COOKIE, UnknownCookies,
    known_cookie_owner,
};
pub use declared::is_marked_as_shared;
pub use duration::parse_duration;
pub use edge::{
    AccessRequest, AddedLine, AuthRule, Denial, FileSurroundings, LimitCount, LimitRule,
    PageAccess, Redirect, RedirectFault, RedirectMap, RedirectSource, Rewrite, RewriteFor,
    ScriptPath, ScriptRefusal, SlashChange,
};
pub use fields::reason_to_bypass;
pub use form::{KeyForm, NormalisedUrl};
pub use ignored::IgnoredFields;
pub use mark::Secret;
pub use owner::{
    NoOwner, OWNER_COOKIES_MAX, OWNER_KEY_BYTES_MAX, OWNER_PART, OWNER_VALUE_BYTES_MIN, Owner,
    OwnerCookies,
};
pub use plan::{BypassBecause, Handling, Plan, Ruling, key_without_vary};
pub use planned::{PlannedFields, is_of_desktops};
pub use revise::{Refusal, Revision};
pub use role::{NoRole, RoleCookies};
pub use rule::Load;
pub use rules::SiteRules;
pub use visitor::{VisitorCookies, is_same_code};
