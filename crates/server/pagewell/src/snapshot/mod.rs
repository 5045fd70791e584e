//! Snapshots keep the pages of a site across restarts, as correct as they were before (warm
//! restart).
//!
//! | file | contents |
//! |---|---|
//! | `write` | writes all pages to a file, periodically and at shutdown |
//! | `load` | checks the snapshot of an earlier process, and restores its pages |
//! | `page` | converts a stored page to its form in a snapshot, and back |
//!
//! The files, the journal of changes, and what is known of both are in `journal`.

mod load;
mod page;
mod write;

pub use load::{Before, Loading, begin};
pub use write::{StartedSnapshot, begin_last, forget, run, write_last, write_now};
