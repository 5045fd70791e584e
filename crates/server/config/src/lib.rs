//! The configuration: the file as written and as used, and the parsers for its values.
//!
//! It depends only on libraries, and on no other part of the server: it opens no socket and starts
//! no process. Files are read once, when a configuration is loaded.

pub mod accounts;
mod config;

pub use config::*;
