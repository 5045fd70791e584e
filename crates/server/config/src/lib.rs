//! The configuration: command line options, the file as written and as used, and the parsers for
//! their values (networks, target URIs, percent-encoding). It includes
//! `pagewell nginx-config` and the set-up of the log, because they need only options.
//!
//! It depends only on libraries, and on no other part of the server: it opens no socket and starts
//! no process. Files are read once, when a configuration is loaded.

pub mod accounts;
mod config;
mod help;
pub mod log;
pub mod networks;
pub mod nginx_config;
mod nginx_value;
pub mod options;
pub mod percent_encoding;
pub mod steering_fields;
pub mod target;

pub use config::*;
