//! Certificates from a certificate authority.
//!
//! Skeleton.
