//! The ticket of a deferred client: a value that the cache signs, and that the client returns when it asks again.
//!
//! It is `issued.id.code`: seconds since the Unix epoch, 16 and 32 hexadecimal digits. The caller computes the code
//! (a MAC over [`Ticket::signed`], with a key that no client knows); this module has no cryptography.
//!
//! | attack | answer |
//! |---|---|
//! | forge one, or change its time or number | the code does not fit |
//! | write it in another way (`01700…`, `ABC`) | only the text that was issued is valid |
//! | use it on another site | the caller's MAC covers the host |
//! | share one among many clients | its requests are counted by its number ([`ClientTable`](crate::ClientTable)) |
//! | get a new one when its rate is spent | a client that returns one that is valid keeps it |
//! | copy one to many addresses that have credit | it adds to the credit of the address only to which it was issued |
//! | collect many | each costs a deferral, ends after [`LIFETIME`], and is worth less than a few hits |
//!
//! It is no challenge: a client without cookies is served like any client without evidence.

use crate::clients::address_number;
use std::fmt::Write;
use std::net::IpAddr;
use std::time::Duration;

/// How long a ticket is valid. In the simulator an hour was no better, and a minute was worse for visitors.
const LIFETIME: Duration = Duration::from_secs(600);
/// A ticket that ends sooner than this is replaced when its client is deferred again.
const RENEWED_BEFORE: Duration = Duration::from_secs(60);
/// How far the clocks of two nodes may differ.
const CLOCKS_DIFFER: u64 = 5;
/// The length of the code in bytes.
pub const TICKET_CODE_BYTES: usize = 16;

/// The bits of a ticket's number that depend on the address of its client.
const ADDRESS_BITS: u32 = 16;

/// A ticket: when it was issued, and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    issued_s: u64,
    id: u64,
}

impl Ticket {
    /// How long a ticket is valid.
    pub const LIFETIME: Duration = LIFETIME;

    /// A new ticket for a client with this address. `random` must differ from that of all others.
    pub fn new(random: u64, now_s: u64, address: Option<IpAddr>) -> Ticket {
        let rest = random >> ADDRESS_BITS;
        let bits = address.map_or(0, |address| address_bits(rest, address));
        Ticket { issued_s: now_s, id: rest << ADDRESS_BITS | bits }
    }

    /// Whether it was issued to a client with this address. Of other addresses, one in 65,536 seems to be the same.
    pub fn is_of(&self, address: IpAddr) -> bool {
        let rest = self.id >> ADDRESS_BITS;
        self.id == rest << ADDRESS_BITS | address_bits(rest, address)
    }

    /// The ticket with this value, if it is valid. `code` computes the code of the bytes, and `is_same` compares two
    /// values without showing by its duration where they differ.
    pub fn read(
        value: &[u8],
        now_s: u64,
        code: impl FnOnce(&[u8]) -> [u8; TICKET_CODE_BYTES],
        is_same: impl FnOnce(&[u8], &[u8]) -> bool,
    ) -> Option<Ticket> {
        let mut parts = str::from_utf8(value).ok()?.split('.');
        let (issued, id, _) = (parts.next()?, parts.next()?, parts.next()?);
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if parts.next().is_some() || id.len() != 16 || !is_digits(id) || !is_digits(issued) {
            return None;
        }
        let ticket =
            Ticket { issued_s: issued.parse().ok()?, id: u64::from_str_radix(id, 16).ok()? };
        let lives = ticket.issued_s <= now_s.saturating_add(CLOCKS_DIFFER)
            && now_s.saturating_sub(ticket.issued_s) < LIFETIME.as_secs();
        let right = ticket.value(code(&ticket.signed()));
        (lives && is_same(value, right.as_bytes())).then_some(ticket)
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

/// The last bits of the number of a ticket for a client with this address. No client can compute another ticket with
/// them, because the code covers them, so they need no key.
fn address_bits(rest: u64, address: IpAddr) -> u64 {
    // The golden ratio (Knuth's multiplicative hash): the first bits depend on all others.
    let mixed = (rest ^ address_number(address)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - ADDRESS_BITS)
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
    fn a_ticket_is_of_the_address_to_which_it_was_issued() {
        let v4 = |number: u32| IpAddr::V4(std::net::Ipv4Addr::from_bits(number));
        let subscriber = |text: &str| text.parse::<IpAddr>().unwrap();
        let (mut of_others, count) = (0, 100_000);
        for (random, number) in [(1 << 20, 0x0a00_0001), (u64::MAX, 0x0a00_0001), (7 << 40, 0)] {
            let ticket = Ticket::new(random, 1_000, Some(v4(number)));
            assert!(ticket.is_of(v4(number)));
            let value = ticket.value(code(7)(&ticket.signed()));
            assert_eq!(read(&value, 1_000).map(|read| read.is_of(v4(number))), Some(true));
            of_others += (1..=count).filter(|n| ticket.is_of(v4(number + n * 7))).count();
        }
        // Five of 300,000 on average.
        assert!(of_others < 60, "{of_others} other addresses");
        let ticket = Ticket::new(1 << 20, 1_000, Some(subscriber("2001:db8:1:2::3")));
        assert!(ticket.is_of(subscriber("2001:db8:1:2:ffff::9")));
        assert_ne!(ticket, Ticket::new(1 << 20, 1_000, Some(v4(1))));
    }

    #[test]
    fn a_ticket_is_valid_as_it_was_issued_and_for_its_lifetime() {
        let ticket = Ticket::new(0xabc_0000, 1_000, None);
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
        let ticket = Ticket::new(0xabc_0000, 1_000, None);
        let value = ticket.value(code(7)(&ticket.signed()));
        for wrong in [
            "",
            "..",
            "1000.000000000abc0000",
            &value.replacen("1000", "1001", 1),
            &value.replacen("abc", "abd", 1),
            &value.replacen("1000", "+1000", 1),
            &value.replacen("1000", "01000", 1),
            &value.replacen("abc", "ABC", 1),
            &value.to_ascii_uppercase(),
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
