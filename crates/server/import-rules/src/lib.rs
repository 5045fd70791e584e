//! Rules from other servers.
//!
//! Skeleton.
