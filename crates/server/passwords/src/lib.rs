//! Password files.
//!
//! Skeleton.
