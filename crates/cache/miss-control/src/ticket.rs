//! The ticket of a deferred client: a value that the cache signs, and that the client returns when it asks again.
//!
//! It is `issued.id.code`: seconds since the Unix epoch, 16 and 32 hexadecimal digits. The caller computes the code
//! (a MAC over [`Ticket::signed`], with a key that no client knows); this module has no cryptography.
//!
//! | attack | answer |
//! |---|---|
//! | forge one, or change its time or number | the code does not fit |
//! | use it on another site | the caller's MAC covers the host |
//! | share one among many clients | its requests are counted by its number ([`ClientTable`](crate::ClientTable)) |
//! | get a new one when its rate is spent | a client that returns one that is valid keeps it |
//! | collect many | each costs a deferral, ends after [`LIFETIME`], and is worth less than a few hits |
//!
//! It is no challenge: a client without cookies is served like any client without evidence.

use std::fmt::Write;
use std::time::Duration;

/// How long a ticket is valid. In the simulator an hour was no better, and a minute was worse for visitors.
const LIFETIME: Duration = Duration::from_secs(600);
/// A ticket that ends sooner than this is replaced when its client is deferred again.
const RENEWED_BEFORE: Duration = Duration::from_secs(60);
/// How far the clocks of two nodes may differ.
const CLOCKS_DIFFER: u64 = 5;
/// The length of the code in bytes.
pub const TICKET_CODE_BYTES: usize = 16;

/// A ticket: when it was issued, and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    issued_s: u64,
    id: u64,
}

impl Ticket {
    /// How long a ticket is valid.
    pub const LIFETIME: Duration = LIFETIME;

    /// A new ticket. `id` must differ from that of all others.
    pub fn new(id: u64, now_s: u64) -> Ticket {
        Ticket { issued_s: now_s, id }
    }

    /// The ticket with this value, if it is valid. `code` computes the code of the bytes, and `is_same` compares two
    /// codes without showing by its duration where they differ.
    pub fn read(
        value: &[u8],
        now_s: u64,
        code: impl FnOnce(&[u8]) -> [u8; TICKET_CODE_BYTES],
        is_same: impl FnOnce(&[u8], &[u8]) -> bool,
    ) -> Option<Ticket> {
        let mut parts = str::from_utf8(value).ok()?.split('.');
        let (issued, id, written) = (parts.next()?, parts.next()?, parts.next()?);
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if parts.next().is_some() || id.len() != 16 || !is_digits(id) || !is_digits(issued) {
            return None;
        }
        let ticket =
            Ticket { issued_s: issued.parse().ok()?, id: u64::from_str_radix(id, 16).ok()? };
        let lives = ticket.issued_s <= now_s.saturating_add(CLOCKS_DIFFER)
            && now_s.saturating_sub(ticket.issued_s) < LIFETIME.as_secs();
        let right = hexadecimal(&code(&ticket.signed()));
        (lives && is_same(written.as_bytes(), right.as_bytes())).then_some(ticket)
    }

    /// The value with this code.
    pub fn value(&self, code: [u8; TICKET_CODE_BYTES]) -> String {
        format!("{}.{:016x}.{}", self.issued_s, self.id, hexadecimal(&code))
    }

    /// The bytes that the code is computed of.
    pub fn signed(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.issued_s.to_be_bytes());
        bytes[8..].copy_from_slice(&self.id.to_be_bytes());
        bytes
    }

    /// The number by which its requests are counted.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Whether the client gets a new ticket when it is deferred again.
    pub fn is_ending(&self, now_s: u64) -> bool {
        now_s.saturating_sub(self.issued_s) + RENEWED_BEFORE.as_secs() > LIFETIME.as_secs()
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a String takes all");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stand-in for the MAC, with a key.
    fn code(key: u8) -> impl Fn(&[u8]) -> [u8; TICKET_CODE_BYTES] {
        move |bytes| std::array::from_fn(|at| bytes[at].wrapping_mul(31) ^ key)
    }

    fn read(value: &str, now_s: u64) -> Option<Ticket> {
        Ticket::read(value.as_bytes(), now_s, code(7), |one, other| one == other)
    }

    #[test]
    fn a_ticket_is_valid_as_it_was_issued_and_for_its_lifetime() {
        let ticket = Ticket::new(0xabc, 1_000);
        let value = ticket.value(code(7)(&ticket.signed()));
        assert_eq!(read(&value, 1_000), Some(ticket));
        assert_eq!(read(&value, 1_599), Some(ticket));
        assert_eq!(read(&value, 1_600), None, "ended");
        assert_eq!(read(&value, 990), None, "of the future");
        assert_eq!(read(&value, 996), Some(ticket), "the clock of another node");
        assert!(!ticket.is_ending(1_540) && ticket.is_ending(1_541));
    }

    #[test]
    fn no_other_value_is_valid() {
        let ticket = Ticket::new(0xabc, 1_000);
        let value = ticket.value(code(7)(&ticket.signed()));
        for wrong in [
            "",
            "..",
            "1000.0000000000000abc",
            &value.replacen("1000", "1001", 1),
            &value.replacen("abc", "abd", 1),
            &value.replacen("1000", "+1000", 1),
            &value.replacen('.', "..", 1),
            &format!("{value}0"),
            &format!("{value}.0"),
            &value[..value.len() - 1],
            &ticket.value(code(8)(&ticket.signed())),
        ] {
            assert_eq!(read(wrong, 1_000), None, "{wrong}");
        }
        let same = |one: &[u8], other: &[u8]| one == other;
        assert_eq!(Ticket::read(b"\xff.\xff", 1_000, code(7), same), None);
    }
}
