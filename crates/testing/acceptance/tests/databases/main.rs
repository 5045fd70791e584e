//! What changes by way of MariaDB, PostgreSQL and Valkey: real servers with private data directories, and
//! connections that break where a test wants it.
//!
//! One program for many tests: a change of the server relinks a few programs, not one for each file.

mod certificates;
mod database;
mod paper;
mod postgres;
mod searches;
mod stream;
