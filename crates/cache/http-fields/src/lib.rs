//! Values of HTTP fields as bytes: lists, hop-by-hop fields, dates, durations, Cache-Control's directives, cookies
//! (RFC 9110, RFC 9111, RFC 6265); and percent-encoding (RFC 3986).
//!
//! Invariants: no clock (every time is an argument), and no input causes a panic. Not here: what a directive means
//! for storing and reuse (`http_cache`), and the header section's syntax.

pub mod cookie_name;
pub mod cookies;
pub mod date;
pub mod directives;
pub mod fields;
pub mod percent;
pub mod time;

pub use cookie_name::CookieName;
pub use directives::{RequestDirectives, ResponseDirectives};
pub use fields::Fields;
pub use time::{SECONDS_MAX, Timestamp};
