//! What an operator sees of a running Pagewell, and tells it: the control API, the dashboard, `explain`, metrics,
//! `doctor`, `top`, and reloading of the configuration.
//!
//! Start reading at [`control`], the routes of the API. `pagewell` alone uses it; nothing here answers visitors, and
//! nothing that answers them depends on it.

pub mod control;
pub mod doctor;
pub mod explain;
pub mod figures;
pub mod kernel_counts;
pub mod reload;
pub mod top;
