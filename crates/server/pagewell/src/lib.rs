//! The server of Pagewell, a full-page cache in front of a PHP site. It combines the other crates
//! and adds sockets and sites, snapshots, zero-downtime restart, the memcached port, the service
//! manager and periodic tasks.
//!
//! How requests are answered is in `front` and `exchange`, how pages change in `site_state::changes`. Start reading
//! at [`server`]; ARCHITECTURE.md has the map of the crates.
//!
//! | subject | modules |
//! |---|---|
//! | the process | `main`, `server`, `service` (service manager), `privileges`, `check` (commands without serving), `script_environment` (variables for PHP) |
//! | restarts | `snapshot` (warm), `take_over` (zero-downtime) |
//! | the memcached port | `memcached` |
//! | periodic tasks | `periodic` (starts them), `clock_skew`, `idle_expiry` (inactive pages), `wake` |

pub mod automatic_https;
pub mod clock_skew;
mod file_looks;
pub mod idle_expiry;
pub mod memcached;
pub mod periodic;
pub mod privileges;
pub mod script_environment;
pub mod server;
pub mod service;
pub mod snapshot;
pub mod take_over;
pub mod wake;
