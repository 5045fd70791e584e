//! Divides the client's connection window (RFC 9113 section 6.9) between the two senders: the front,
//! and hyper, which does not know of the front.
//!
//! hyper starts with the initial window. Of every increase it gets as much as it needs to have half of
//! the total; the front has the rest. So neither can use the other's share. If the client allows
//! little, all of it goes to hyper, because hyper waits for the window and the front does not. Many
//! clients increase the window only after more than half of it is used, as section 6.9 permits. So when
//! hyper's share is low, it is lent half of the front's share, and can use the whole window in the end.
//! Invariant: hyper's share never exceeds the total.

use super::frame::{WINDOW_BYTES, WINDOW_BYTES_MAX};

/// The connection window in bytes, and its division.
#[derive(Debug)]
pub struct Windows {
    all: u32,
    /// hyper's share of `all`, in bytes.
    behind: u32,
}

impl Default for Windows {
    fn default() -> Windows {
        Windows { all: WINDOW_BYTES, behind: WINDOW_BYTES }
    }
}

impl Windows {
    /// Adds `more` bytes to the window, and returns how many of them hyper gets. `None` if the window
    /// would exceed the maximum (section 6.9.1).
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

    /// Lends hyper half of the front's share if hyper has little left. Returns the number of bytes
    /// lent.
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

    /// Records that the front has sent `bytes` bytes from its share.
    pub fn sent(&mut self, bytes: u32) {
        debug_assert!(bytes <= self.ours());
        self.all -= bytes.min(self.ours());
    }

    /// Records that hyper has sent `bytes` bytes from its share.
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
        // The bytes that the front has used return to it.
        assert_eq!(windows.allow(532_768), Some(0));
        assert_eq!(windows.ours(), 532_768);
        assert_eq!(windows.allow(WINDOW_BYTES_MAX), None);
    }

    proptest! {
        /// A client that increases the window only after all of it is used.
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

        /// Compares with a model: the client's count of its window, and hyper's count.
        #[test]
        fn neither_side_exceeds_its_window(
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
            // hyper always gets a window, because an increase goes to hyper first.
            let told = windows.allow(WINDOW_BYTES).unwrap_or(WINDOW_BYTES);
            prop_assert!(hyper + i64::from(told) >= i64::from(WINDOW_BYTES).min(client));
        }
    }
}
