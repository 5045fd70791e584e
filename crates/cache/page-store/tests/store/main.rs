//! The store, its table of renders and its queues, call by call: one program, because each instance of the generic
//! store takes seconds to compile. The programs beside it have another allocator, or other features of the crate.
#![cfg(not(feature = "loom"))]

#[path = "../common/mod.rs"]
mod common;

mod calls;
mod combining;
mod evict;
mod fill;
mod inactive;
mod predicate;
mod replace;
mod restore;
mod rewarm;
mod storm;
mod supersede;
mod targets;
mod told;
mod urls;
