//! Memory with a bound that several tasks share, and that is counted: what a trial and an audit have in memory of answers
//! and renders.
//!
//! Invariant: an account never has more than its bound. Bytes without room are not counted, and the caller goes on without
//! them. No task waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A number of bytes that may be used at the same time.
pub struct ByteAccount {
    used: AtomicUsize,
    most: usize,
}

impl ByteAccount {
    /// Creates an account for so many bytes.
    pub fn new(most: usize) -> Arc<ByteAccount> {
        Arc::new(ByteAccount { used: AtomicUsize::new(0), most })
    }

    /// The bytes that are used now.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

/// A part of an account. It is given back when this is dropped.
pub struct AccountedBytes {
    account: Arc<ByteAccount>,
    bytes: usize,
}

impl AccountedBytes {
    /// A part without bytes.
    pub fn of(account: &Arc<ByteAccount>) -> AccountedBytes {
        AccountedBytes { account: account.clone(), bytes: 0 }
    }

    /// The bytes of this part.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether there is room for so many more bytes; then they are counted.
    pub fn grow(&mut self, more: usize) -> bool {
        let ByteAccount { used, most } = &*self.account;
        let with_more = |used: usize| used.checked_add(more).filter(|sum| sum <= most);
        let has_room = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with_more).is_ok();
        self.bytes += if has_room { more } else { 0 };
        has_room
    }

    /// Gives so many bytes back.
    pub fn shrink_by(&mut self, less: usize) {
        let less = less.min(self.bytes);
        self.account.used.fetch_sub(less, Ordering::Relaxed);
        self.bytes -= less;
    }

    /// Gives back what is above this number of bytes.
    pub fn shrink_to(&mut self, bytes: usize) {
        self.shrink_by(self.bytes.saturating_sub(bytes));
    }

    /// Whether there is room for so many bytes in all; then these are counted, instead of those before.
    pub fn set(&mut self, bytes: usize) -> bool {
        self.shrink_to(bytes);
        self.grow(bytes - self.bytes)
    }
}

impl Drop for AccountedBytes {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_within_one_account_and_given_back() {
        const MOST: usize = 1_000;
        let account = ByteAccount::new(MOST);
        let (mut one, mut other) = (AccountedBytes::of(&account), AccountedBytes::of(&account));
        assert!(one.grow(MOST - 10) && other.grow(10));
        assert!(!other.grow(1) && !one.grow(1), "the account is full");
        assert_eq!(account.used(), MOST, "a refusal counts nothing");
        one.shrink_to(5);
        assert!(other.grow(20));
        assert_eq!(account.used(), 35);
        assert!(other.set(7) && other.set(9) && !other.set(MOST));
        assert_eq!(account.used(), 14, "a refusal changes nothing");
        drop(one);
        assert_eq!(account.used(), 9);
        other.shrink_by(MOST);
        assert!(!other.grow(MOST + 1), "too large for an empty one");
        drop(other);
        assert_eq!(account.used(), 0);
    }
}
