//! The scenario language: one file, one scenario, one test. A scenario scripts an origin, clients, the control
//! API and the clock, and states the expected answers. `README.md` is its manual.
//!
//! The engine uses the cache under test only through [`Subject`]: two addresses, a clock to advance, a stop.
//! The same files therefore run inside one process with an injected clock, and against a real binary.
//! Invariants: only loopback and ephemeral ports are used; no scenario waits for time to pass; every wait has a
//! timeout ([`WAIT`]), after which the failure names the missing event.
//!
//! The scenarios use the terms of RFC 9110, 9111, 9112 and 9211 (`Cache-Status`). Not here: HTTP/2, TLS, and
//! any knowledge of how the subject stores pages.

mod blanks;
mod cache_status;
mod check;
mod codings;
mod deadline;
mod engine;
mod failure;
mod origin;
mod parse;
pub mod passthrough;
mod request;
mod runner;
pub mod story;
mod subject;
mod transcript;

pub use deadline::WAIT;
pub use engine::{run_story, run_story_within};
pub use failure::Failure;
pub use parse::{ParseError, parse_story};
pub use runner::{Ending, Summary, run_dir, run_dir_where};
pub use story::Story;
pub use subject::{Config, StartSubject, Subject};
