//! The interfaces for operators of a running Pagewell: the control API, the dashboard, `explain`,
//! metrics, and reloading of the configuration.
//!
//! Start reading at [`api`], the routes of the API. `cli` calls it over a socket. It answers no
//! client requests, and the code that does so does not depend on it.
//!
//! | subject | modules |
//! |---|---|
//! | the API, `/metrics`, the dashboard | `api`, `metrics_table` (the table of metrics) |
//! | the last hour of figures | `history` |
//! | why a page is answered as it is | `explain` |
//! | counters of the kernel | `kernel_counts` |
//! | a new configuration without a restart | `reload` |

pub mod api;
pub mod attention;
pub mod explain;
pub mod history;
pub mod kernel_counts;
mod managed;
pub mod metrics_table;
pub mod reload;
