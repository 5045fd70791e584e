//! Recordings of applications, to see how exact footprints are.
//!
//! A recording has the statements of each page, the rows that changes changed, and the pages that really
//! changed. Not here: footprints themselves.

mod cost;
mod record;
mod recording;
mod replay;
mod verify;

pub use cost::run as cost;
pub use record::run as record;
pub use replay::run as replay;
pub use verify::run as verify;
