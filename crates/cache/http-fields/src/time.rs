//! Points in time. The crate has no clock: the caller passes the current time.
//!
//! Invariants: arithmetic saturates, so that a clock set back or a distant date neither wraps nor panics.
//! Durations never exceed 2^31 seconds (RFC 9111 §1.2.2).

/// The maximum duration in seconds: 2^31, the value that RFC 9111 §1.2.2 prescribes on overflow.
pub const SECONDS_MAX: u32 = 1 << 31;

/// A point in time, in milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The point in time `seconds` after the Unix epoch.
    #[inline]
    pub const fn from_seconds(seconds: u64) -> Timestamp {
        Timestamp(seconds.saturating_mul(1000))
    }

    /// Whole seconds since the Unix epoch.
    #[inline]
    pub const fn seconds(self) -> u64 {
        self.0 / 1000
    }

    /// Milliseconds from `earlier` to this point in time; 0 if `earlier` is later.
    #[inline]
    pub const fn since(self, earlier: Timestamp) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// This point in time plus `milliseconds`.
    #[inline]
    pub const fn plus(self, milliseconds: u64) -> Timestamp {
        Timestamp(self.0.saturating_add(milliseconds))
    }
}

/// Converts seconds to milliseconds.
#[inline]
pub const fn milliseconds(seconds: u32) -> u64 {
    seconds as u64 * 1000
}
