//! The configuration: the file as written and as used, and the parsers for its values (networks, target
//! URIs). It includes the set-up of the log.
//!
//! It depends only on libraries, and on no other part of the server: it opens no socket and starts
//! no process. Files are read once, when a configuration is loaded.

pub mod accounts;
mod config;
pub mod log;
pub mod networks;
pub mod steering_fields;
pub mod target;

pub use config::*;
