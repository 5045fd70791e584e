//! The terminal's commands: calls of a running Pagewell and their answers as text, and the diagnostics of
//! `pagewell doctor`. Start reading at `client`.
//!
//! | file | contents |
//! |---|---|
//! | `client` | one call, one answer |
//! | `text` | explanations as text |
//! | `doctor` | the diagnostics of the machine: facts are collected here, and judged by the crate `doctor` |
//! | `import` | `pagewell import` |
//! | `watch` | `pagewell stats --watch` |
//!
//! Only `pagewell` uses it. Not here: the interface itself, and what it answers (`control`).

pub mod client;
pub mod doctor;
pub mod import;
pub mod text;
pub mod watch;
