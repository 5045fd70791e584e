//! Points in time. The crate has no clock: whoever calls says what time it is.
//!
//! Invariants: arithmetic saturates, so that a clock set back or a far date can neither wrap nor
//! panic; spans of seconds never exceed 2^31 (RFC 9111 §1.2.2).

/// The longest span this crate speaks of, in seconds: 2^31, as RFC 9111 §1.2.2 asks on overflow.
pub const SECONDS_MAX: u32 = 1 << 31;

/// A point in time, in milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The point in time `seconds` after the Unix epoch.
    pub const fn from_seconds(seconds: u64) -> Timestamp {
        Timestamp(seconds.saturating_mul(1000))
    }

    /// Whole seconds since the Unix epoch.
    pub const fn seconds(self) -> u64 {
        self.0 / 1000
    }

    /// Milliseconds from `earlier` to this point; zero when `earlier` is later.
    pub const fn since(self, earlier: Timestamp) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// This point in time moved on by some milliseconds.
    pub const fn plus(self, milliseconds: u64) -> Timestamp {
        Timestamp(self.0.saturating_add(milliseconds))
    }
}

/// Seconds as milliseconds.
pub(crate) const fn milliseconds(seconds: u32) -> u64 {
    seconds as u64 * 1000
}
