//! The scenario language: one file, one story, one test. A story scripts an origin, clients, the
//! control interface and the clock, and says what each answer must be; `README.md` is its manual.
//!
//! The engine knows nothing of the cache under test but what [`Subject`] says: two addresses, a
//! clock to move, an end. So the same files run inside one process with an injected clock, and
//! against a real binary. Invariants: loopback and ephemeral ports only; no story waits for time to
//! pass; every wait is bounded ([`WAIT`]) and its end is a failure that says what was waited for.
//!
//! The standards whose words the stories use: RFC 9110, 9111, 9112 and 9211 (`Cache-Status`).
//! Deliberately absent: HTTP/2, TLS, and any knowledge of how the subject stores its pages.

mod blanks;
mod cache_status;
mod check;
mod client;
mod codings;
mod deadline;
mod engine;
mod failure;
mod origin;
mod parse;
pub mod passthrough;
mod runner;
pub mod story;
mod subject;
mod transcript;
mod wire;

pub use deadline::WAIT;
pub use engine::{run_story, run_story_within};
pub use failure::Failure;
pub use parse::{ParseError, parse_story};
pub use runner::{Ending, Summary, run_dir, run_dir_where};
pub use story::Story;
pub use subject::{Config, StartSubject, Subject};
