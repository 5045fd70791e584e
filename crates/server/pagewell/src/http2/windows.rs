//! What the client allows to be sent on the connection (RFC 9113 section 6.9), shared by two who write: the
//! front, and hyper behind it, which does not know of the other.
//!
//! Each has a share. hyper begins with all that a client allows unasked, and is told of more until it has half
//! of everything; the rest is the front's. So neither can take what is the other's, and a client that allows
//! little allows it to hyper, which waits for more, as the front does not. Many clients allow more only when
//! more than half of the window is used (section 6.9 leaves it to them): hyper is lent of what the front has
//! when little of its own is left, so that all of the window can be used by it. Invariant: hyper's share is
//! never more than there is.

use super::frame::{WINDOW_BYTES, WINDOW_BYTES_MAX};

/// Bytes of content that may be sent on the connection.
#[derive(Debug)]
pub struct Windows {
    all: u32,
    /// hyper's share of it.
    behind: u32,
}

impl Default for Windows {
    fn default() -> Windows {
        Windows { all: WINDOW_BYTES, behind: WINDOW_BYTES }
    }
}

impl Windows {
    /// The client allows so many bytes more; returns of how many hyper is to be told. `None` when there would
    /// be more than may be (section 6.9.1).
    pub fn allow(&mut self, more: u32) -> Option<u32> {
        self.all = self.all.checked_add(more).filter(|all| *all <= WINDOW_BYTES_MAX)?;
        let due = WINDOW_BYTES.max(self.all / 2).min(self.all);
        let told = due.saturating_sub(self.behind).min(more);
        self.behind += told;
        Some(told)
    }

    /// Whether hyper has little left, and the front could lend it some.
    pub fn is_low(&self) -> bool {
        self.behind <= WINDOW_BYTES.min(self.all) / 2 && self.ours() > 0
    }

    /// Lends hyper half of what the front has, when hyper has little left; returns of how many bytes it is to
    /// be told.
    pub fn lend(&mut self) -> u32 {
        if !self.is_low() {
            return 0;
        }
        let lent = self.ours().div_ceil(2);
        self.behind += lent;
        lent
    }

    /// The front's share, in bytes.
    pub fn ours(&self) -> u32 {
        self.all - self.behind
    }

    /// The front has sent so many bytes, which were of its share.
    pub fn sent(&mut self, bytes: u32) {
        debug_assert!(bytes <= self.ours());
        self.all -= bytes.min(self.ours());
    }

    /// hyper has sent so many bytes, which were of its share.
    pub fn sent_behind(&mut self, bytes: u32) {
        let bytes = bytes.min(self.behind);
        self.behind -= bytes;
        self.all -= bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_client_that_allows_nothing_more_allows_it_to_hyper() {
        let mut windows = Windows::default();
        assert_eq!(windows.ours(), 0);
        windows.sent_behind(10_000);
        assert_eq!(windows.allow(10_000), Some(10_000));
        assert_eq!(windows.ours(), 0);
    }

    #[test]
    fn a_client_that_allows_much_allows_half_of_it_to_each() {
        let mut windows = Windows::default();
        assert_eq!(windows.allow(1_000_001), Some(467_233));
        assert_eq!(windows.ours(), 532_768);
        windows.sent(532_768);
        assert_eq!(windows.ours(), 0);
        // What the front has used comes back to it.
        assert_eq!(windows.allow(532_768), Some(0));
        assert_eq!(windows.ours(), 532_768);
        assert_eq!(windows.allow(WINDOW_BYTES_MAX), None);
    }

    proptest! {
        /// A client that allows no more before all is used.
        #[test]
        fn hyper_can_use_all_of_the_window(more in 0..40_000_000_u32, pieces in 1..100_000_u32) {
            let mut windows = Windows::default();
            let mut hyper = WINDOW_BYTES + windows.allow(more).unwrap();
            let mut left = WINDOW_BYTES + more;
            while left > 0 {
                hyper += windows.lend();
                prop_assert!(hyper > 0 && hyper <= left, "{} of {}", hyper, left);
                let bytes = pieces.max(left / 100).min(hyper);
                windows.sent_behind(bytes);
                hyper -= bytes;
                left -= bytes;
            }
            prop_assert_eq!((windows.lend(), windows.ours()), (0, 0));
        }

        /// Against the client's own count of what it has allowed and got, and hyper's.
        #[test]
        fn nobody_sends_what_is_not_allowed(
            steps in prop::collection::vec((0..4, 1..100_000_u32), 0..200),
        ) {
            let mut windows = Windows::default();
            let (mut client, mut hyper) = (i64::from(WINDOW_BYTES), i64::from(WINDOW_BYTES));
            for (who, bytes) in steps {
                match who {
                    0 => {
                        if let Some(told) = windows.allow(bytes) {
                            client += i64::from(bytes);
                            hyper += i64::from(told);
                            prop_assert!(told <= bytes);
                        } else {
                            return Ok(());
                        }
                    }
                    1 => {
                        let bytes = bytes.min(windows.ours());
                        windows.sent(bytes);
                        client -= i64::from(bytes);
                    }
                    2 => hyper += i64::from(windows.lend()),
                    _ => {
                        let bytes = bytes.min(hyper as u32);
                        windows.sent_behind(bytes);
                        client -= i64::from(bytes);
                        hyper -= i64::from(bytes);
                    }
                }
                prop_assert!(client >= hyper && hyper >= 0);
                prop_assert_eq!(client - hyper, i64::from(windows.ours()));
            }
            // hyper is never left without: what comes goes to it first.
            let told = windows.allow(WINDOW_BYTES).unwrap_or(WINDOW_BYTES);
            prop_assert!(hyper + i64::from(told) >= i64::from(WINDOW_BYTES).min(client));
        }
    }
}
