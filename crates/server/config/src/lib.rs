//! The configuration: the options of the command line, the file as written and as used, and what both need
//! to read their values (networks of addresses, target URIs, percent-encoding, the format of the access
//! log). `pagewell nginx-config` and the set-up of the log are here too, since options are all they know.
//!
//! It depends on libraries only, and on nothing of the server: no socket is opened and no process is
//! started here. Files are read once, when a configuration is loaded.

pub mod access_log_format;
mod config;
pub mod log;
pub mod networks;
pub mod nginx_config;
mod nginx_value;
pub mod options;
pub mod percent_encoding;
pub mod steering_fields;
pub mod target;

pub use config::*;
