//! Invalidation through MariaDB, PostgreSQL and Valkey: real servers with private data directories, and
//! connections that break where a test needs it.
//!
//! One program contains many tests, so that a change of the server relinks a few programs instead of one per
//! file.

mod certificates;
mod database;
mod held_statement;
mod paper;
mod postgres;
mod searches;
mod stream;
