//! Behaviour as operators see it: the command line, start, stop, reload, snapshots, metrics, logs and the
//! diagnostic tools. Each test starts its own Pagewell.
//!
//! One program contains many tests, so that a change of the server relinks a few programs instead of one per
//! file.

mod certificates;
mod check_origins;
mod check_service;
mod cli;
mod cli_hints;
mod containers;
mod crawlers;
mod deployments;
mod doctor;
mod explain;
mod import;
mod init;
mod keep_time;
mod memcached;
mod nginx_config;
mod open_files;
mod panics;
mod privileges;
mod reload;
mod service;
mod snapshot;
mod stats_watch;
mod status;
mod stopping;
mod traces;
mod trusted_files;
