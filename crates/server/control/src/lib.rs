//! The interfaces for operators of a running Pagewell: the control API, the dashboard, `explain`,
//! metrics, `doctor`, `top`, and reloading of the configuration.
//!
//! Start reading at [`api`], the routes of the API. Only `pagewell` uses it. It answers no
//! client requests, and the code that does so does not depend on it.
//!
//! | subject | modules |
//! |---|---|
//! | the API, `/metrics`, the dashboard, the client of the command line | `api`, `metrics_table` (the table of metrics) |
//! | the last hour of figures | `history` |
//! | why a page is answered as it is | `explain` |
//! | diagnostics of the machine: facts are collected here, and judged by the crate `doctor` | `doctor`, `kernel_counts` |
//! | `pagewell top` | `top` |
//! | a new configuration without a restart | `reload` |

pub mod api;
pub mod attention;
pub mod doctor;
pub mod explain;
pub mod history;
pub mod kernel_counts;
pub mod metrics_table;
pub mod reload;
pub mod top;
