//! The command line of `pagewell`: its commands with their options, which override the configuration
//! file, and `pagewell nginx-config`, which needs nothing else.
//!
//! | file | contents |
//! |---|---|
//! | `options` | commands and options |
//! | `help` | groups of commands, examples |
//! | `nginx_config`, `nginx_value` | a configuration of nginx in front, and its values |
//!
//! Not here: the configuration itself (`config`), and what a command does.

mod help;
pub mod nginx_config;
mod nginx_value;
pub mod options;
