//! The conditions of rules: which requests a rule concerns, by host, path, method, query, cookies, header lines, class
//! and network of the client; and which responses, by status and header lines.
//!
//! [`RequestConditions`] are read from the words of a rule ([`RequestConditionWords`]) and compared with a request
//! ([`RequestView`]), or with the conditions of another rule. They are plain values, because each kind of rules
//! compares them in its own way. Patterns ([`Glob`], [`PathRegex`]) are compared in linear time, whatever the text.
//!
//! The crate is pure: no input or output, no clock, no state. Not here: the effect of a rule, the format of the
//! configuration, and the forms of a path that access rules test (`site_rules`).

mod agent;
mod alternatives;
mod client_networks;
mod conditions;
mod coverage;
mod glob;
mod named_condition;
mod pattern_shapes;
mod read;
mod regexes;
mod view;

pub use agent::Agent;
pub use client_networks::{ClientNetworks, network};
pub use conditions::{RequestConditions, ResponseConditions, StatusRange};
pub use coverage::ComparisonKind;
pub use glob::{Glob, Globs, PathGlob, fits_name};
pub use named_condition::NamedCondition;
pub use read::RequestConditionWords;
pub use regexes::{CapturedTexts, PathRegex, Regexes};
pub use view::{Peer, RequestClient, RequestView, is_respelt, plain_path, without_dots};
