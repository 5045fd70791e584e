//! The control interface and the dashboard of the real binary. One program, because each links the server.

mod dashboard;
mod live;
mod metrics;
mod openapi;
mod proof;
mod traffic;
