//! http-cache
