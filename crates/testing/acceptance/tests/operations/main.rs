//! What an operator sees: the command line, start, stop, reload, snapshots, metrics, logs and the tools that
//! diagnose a machine. Each test starts a Pagewell of its own.
//!
//! One program for many tests: a change of the server relinks a few programs, not one for each file.

mod cli;
mod containers;
mod doctor;
mod explain;
mod keep_time;
mod memcached;
mod nginx_config;
mod panics;
mod privileges;
mod reload;
mod service;
mod snapshot;
mod stopping;
mod top;
mod traces;
