//! Starts and stops the real servers that the tests, the demo and the benchmark need.
//!
//! Each server gets a private directory ([`PrivateDir`]), a Unix socket in it or a free port, and a log file. A
//! server is ready when it accepts a connection, within a timeout; otherwise the error contains the end of its
//! log. Each server is stopped by its process id when it is dropped, and by a watcher process
//! ([`keeper`](mod@self)) if the calling program dies first. Works as root (the servers then run as their own
//! users) and as an ordinary user.
//!
//! Also here: a small blocking HTTP client and server, a closed-loop load generator, random numbers, and the CPU time of a
//! process tree. Not here: the content that the servers serve, and the judgement of their responses. This crate
//! may block, sleep and read the clock; it is not linked into the product.

mod address;
pub mod apache;
mod browser;
mod chance;
mod client;
mod clock;
pub mod cpu;
mod directory;
mod error;
mod executable;
mod faulty_network;
mod fcgiwrap;
mod find;
pub mod h2o;
pub mod haproxy;
mod histogram;
pub mod instructions;
mod keeper;
mod load;
mod machine;
mod mariadb;
mod memcached;
mod news;
pub mod nginx;
mod on_port;
mod page_origin;
mod pagewell;
mod pebble;
mod php_fpm;
mod port;
mod postgres;
mod process;
mod random;
mod reply;
mod reserved_port;
pub mod root;
mod sentinel;
mod server;
mod skipped;
mod sql_product;
pub mod stand;
mod template;
pub mod traffic_server;
mod users;
mod valkey;
pub mod varnish;
pub mod wire;
mod wordpress;

pub use address::{Address, Stream};
pub use apache::ApacheConf;
pub use browser::{Browser, BrowserError, key};
pub use chance::Chance;
pub use client::{Client, Request};
pub use clock::{Deadline, Stopwatch};
pub use directory::{PrivateDir, suits_servers};
pub use error::{StartError, StartReason};
pub use executable::{copy_program, write_script};
pub use faulty_network::{ConnectionEnd, FaultyNetwork, NetworkFault};
pub use fcgiwrap::FcgiWrap;
pub use find::{binary, program};
pub use histogram::Histogram;
pub use load::{Load, LoadEnd, LoadReport};
pub use machine::machine;
pub use mariadb::{MariaDb, MariaDbOptions};
pub use memcached::Memcached;
pub use news::NewsSite;
pub use nginx::NginxConf;
pub use on_port::OnPort;
pub use page_origin::{nonce_origin, page_origin};
pub use pagewell::Pagewell;
pub use pebble::{Pebble, PebbleSettings, PebbleVersion, name_server};
pub use php_fpm::{PhpFpm, PoolOptions};
pub use postgres::{Identity, Postgres, PostgresOptions};
pub use process::{Process, StopResult, Wait};
pub use random::Random;
pub use reply::Response;
pub use reserved_port::{Port, free_port};
pub use rustix::process::Signal;
pub use sentinel::Sentinel;
pub use server::{AcceptedStream, TestServer};
pub use skipped::skip;
pub use sql_product::{SqlProduct, numbers};
pub use users::{Account, am_root};
pub use valkey::Valkey;
pub use wire::ClientError;
pub use wordpress::{WordPress, install_plugin};
