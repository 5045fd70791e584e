//! Whether two renders differ.
//!
//! Skeleton.
