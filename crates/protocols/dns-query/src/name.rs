//! A domain name: labels of at most 63 bytes, 255 bytes in all (RFC 1035, section 3.1), in lower case.
//!
//! In a message a name may end with a pointer to an earlier place. Each pointer has to lead to a place before
//! the one from which the reading began, so a loop is impossible.

use std::fmt;
use std::net::IpAddr;

const NAME_BYTES: usize = 255;
const LABEL_BYTES: usize = 63;

/// A domain name as on the wire: each label after its length, in lower case, and an empty label at the end.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DomainName(Vec<u8>);

/// The text is no domain name: an empty label, a label or name that is too long, or other characters than
/// letters, digits, `-`, `_` and a leading `*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidName;

impl DomainName {
    /// Reads a name as people write it; a final dot is allowed.
    ///
    /// # Errors
    /// `InvalidName` if a label is empty, has more than 63 bytes, or is neither `*` nor one of a host, or if the name has
    /// more than 255 bytes (RFC 1035, section 3.1).
    pub fn from_text(text: &str) -> Result<Self, InvalidName> {
        let mut wire = Vec::with_capacity(text.len() + 2);
        for label in text.strip_suffix('.').unwrap_or(text).split('.') {
            let is_host = !label.is_empty() && label.bytes().all(is_of_a_host);
            if label.len() > LABEL_BYTES || !(is_host || label == "*") {
                return Err(InvalidName);
            }
            wire.push(u8::try_from(label.len()).map_err(|_| InvalidName)?);
            wire.extend(label.bytes().map(|byte| byte.to_ascii_lowercase()));
        }
        wire.push(0);
        if wire.len() > NAME_BYTES { Err(InvalidName) } else { Ok(Self(wire)) }
    }

    /// The name under which an address has its PTR record (RFC 1035, section 3.5; RFC 3596, section 2.5).
    pub fn of_address(address: IpAddr) -> Self {
        let text = match address.to_canonical() {
            IpAddr::V4(address) => {
                let [a, b, c, d] = address.octets();
                format!("{d}.{c}.{b}.{a}.in-addr.arpa")
            }
            IpAddr::V6(address) => {
                let bytes = address.octets();
                let nibbles = bytes.iter().rev().flat_map(|byte| [byte & 0xf, byte >> 4]);
                nibbles.map(|nibble| format!("{nibble:x}.")).collect::<String>() + "ip6.arpa"
            }
        };
        Self::from_text(&text).expect("digits and the two zones of addresses are labels")
    }

    /// The name with dots and without the final one, if all of its labels are those of a host.
    pub fn text(&self) -> Option<String> {
        let mut labels = self.labels().peekable();
        labels.peek()?;
        let mut text = String::with_capacity(self.0.len());
        for label in labels {
            if !label.iter().copied().all(is_of_a_host) {
                return None;
            }
            if !text.is_empty() {
                text.push('.');
            }
            text.push_str(std::str::from_utf8(label).ok()?);
        }
        Some(text)
    }

    pub(crate) fn wire(&self) -> &[u8] {
        &self.0
    }

    /// Reads the name at `at` of a message. Returns it, and the place after it.
    pub(crate) fn read(message: &[u8], at: usize) -> Option<(Self, usize)> {
        let (mut wire, mut at, mut lowest, mut after) = (Vec::new(), at, at, None);
        loop {
            let length = usize::from(*message.get(at)?);
            match length {
                0 => {
                    wire.push(0);
                    return Some((Self(wire), after.unwrap_or(at + 1)));
                }
                1..=LABEL_BYTES => {
                    let label = message.get(at..=at + length)?;
                    if wire.len() + label.len() + 1 > NAME_BYTES {
                        return None;
                    }
                    wire.extend(label.iter().map(u8::to_ascii_lowercase));
                    at += 1 + length;
                }
                0xc0..=0xff => {
                    let to = (length & 0x3f) << 8 | usize::from(*message.get(at + 1)?);
                    if to >= lowest {
                        return None;
                    }
                    after.get_or_insert(at + 2);
                    (lowest, at) = (to, to);
                }
                _ => return None,
            }
        }
    }

    fn labels(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.0.as_slice();
        std::iter::from_fn(move || {
            let (length, after) = rest.split_first().filter(|(length, _)| **length > 0)?;
            let (label, next) = after.split_at(usize::from(*length));
            rest = next;
            Some(label)
        })
    }
}

/// The name for a report: bytes that are none of a host's are replaced.
impl fmt::Display for DomainName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, label) in self.labels().enumerate() {
            if index > 0 {
                out.write_str(".")?;
            }
            for &byte in label {
                write!(out, "{}", if is_of_a_host(byte) { char::from(byte) } else { '?' })?;
            }
        }
        Ok(())
    }
}

fn is_of_a_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        let name = DomainName::from_text("Crawl-1.GoogleBot.com.").expect("a name");
        assert_eq!(name.wire(), b"\x07crawl-1\x09googlebot\x03com\0");
        assert_eq!(name.text().as_deref(), Some("crawl-1.googlebot.com"));
        for wrong in ["", ".", "a..b", "a b", "a\0b", &"a".repeat(64), &"ab.".repeat(90)] {
            assert_eq!(DomainName::from_text(wrong), Err(InvalidName), "{wrong:?}");
        }
    }

    #[test]
    fn addresses_have_the_names_of_the_standard() {
        let text = |address: &str| {
            let address = address.parse().expect("an address");
            DomainName::of_address(address).text().expect("a name of labels")
        };
        assert_eq!(text("66.249.66.1"), "1.66.249.66.in-addr.arpa");
        assert_eq!(text("::ffff:66.249.66.1"), "1.66.249.66.in-addr.arpa");
        assert_eq!(
            text("2001:db8::567:89ab"),
            "b.a.9.8.7.6.5.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa"
        );
    }

    #[test]
    fn pointers_lead_backwards_only() {
        let message = b"\x03com\0\x01a\xc0\x00\xc0\x05\xc0\x0b\x80";
        assert_eq!(
            DomainName::read(message, 5),
            Some((DomainName::from_text("a.com").expect("a name"), 9))
        );
        assert_eq!(DomainName::read(message, 9).map(|(_, after)| after), Some(11));
        for (why, at) in [("itself", 11), ("a reserved form", 13), ("past the end", 14)] {
            assert_eq!(DomainName::read(message, at), None, "{why}");
        }
    }
}
