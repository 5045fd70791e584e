//! Rules as they are read, and what they decide about requests and responses. One program, because each one that reads
//! rules compiles their reader.
//!
//! Not here: the test that counts allocations (`no_allocation.rs`), which needs a program of its own.

mod common;
mod edge;
mod planning;
mod redirects;
mod unreached;
mod visitor;
