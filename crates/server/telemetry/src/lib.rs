//! The measurements and reports of the process, and all that every part of it needs for them: the clock, the
//! phases of the process, and the client of a request. No state of a site, no pages.
//!
//! | subject | files |
//! |---|---|
//! | the process | `clock`, `phase`, `panics`, `runtime`, `open_files`; `release_memory` returns unused memory |
//! | measurements | `counters`, `limit_hits` (limits), `per_address`; `evidence` about clients |
//! | reports | `access_log`, `traces`; `request_tap` shows requests to operators who watch them |
//! | a request | `client`, `request_content`, `request_fields`, `trailers` |
//!
//! Invariant: nothing here decides about freshness. Not here: the history of a site (`site-state`), and
//! who answers a request.

pub mod access_log;
pub mod client;
pub mod clock;
pub mod counters;
pub mod evidence;
pub mod limit_hits;
pub mod open_files;
pub mod panics;
pub mod per_address;
pub mod phase;
pub mod release_memory;
pub mod request_content;
pub mod request_fields;
pub mod request_tap;
pub mod runtime;
pub mod traces;
pub mod trailers;
