//! Escapes and masks the values of the access log.
//!
//! After escaping, a value from a client cannot end a field, start a line, or send a command to a
//! terminal. Masking removes personal data.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Whether a value needs no escaping: printable ASCII without `"` and `\`.
fn is_plain(value: &[u8]) -> bool {
    // No early exit, so that the compiler can vectorise the loop.
    let plain = |byte: &u8| (b' '..=b'~').contains(byte) & (*byte != b'"') & (*byte != b'\\');
    value.iter().fold(true, |all, byte| all & plain(byte))
}

/// Escapes a value for a text format: every byte that is not plain becomes `\xHH`, as in nginx.
pub fn text(value: &[u8], out: &mut Vec<u8>) {
    if is_plain(value) {
        return out.extend_from_slice(value);
    }
    for byte in value {
        match byte {
            b'"' | b'\\' | 0..=0x1f | 0x7f..=0xff => {
                out.extend_from_slice(b"\\x");
                hex(*byte, out);
            }
            plain => out.push(*plain),
        }
    }
}

/// Escapes the content of a JSON string (RFC 8259 section 7). Bytes that are not valid UTF-8 are
/// written as the Unicode characters of the same number, so that the line is always valid JSON.
pub fn json(value: &[u8], out: &mut Vec<u8>) {
    if is_plain(value) {
        return out.extend_from_slice(value);
    }
    for chunk in value.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' | '\\' => out.extend_from_slice(&[b'\\', character as u8]),
                // ASCII control characters, and the C1 control characters, which terminals obey, too.
                control if control.is_control() => {
                    out.extend_from_slice(b"\\u00");
                    hex(control as u8, out);
                }
                character => {
                    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                }
            }
        }
        for byte in chunk.invalid() {
            out.extend_from_slice(b"\\u00");
            hex(*byte, out);
        }
    }
}

fn hex(byte: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
}

/// A target or URL without the values of its query parameters: `/a?b=1&c` becomes `/a?b=&`. A parameter
/// without `=` is removed, because it may be a value. `write` receives the result in pieces.
pub fn without_values(target: &[u8], mut write: impl FnMut(&[u8])) {
    let Some(at) = memchr::memchr(b'?', target) else { return write(target) };
    let query = &target[at + 1..];
    write(&target[..=at]);
    for (count, pair) in query.split(|byte| *byte == b'&').enumerate() {
        if count > 0 {
            write(b"&");
        }
        if let Some(end) = memchr::memchr(b'=', pair) {
            write(&pair[..=end]);
        }
    }
}

/// The network of an address: /24 for IPv4, /48 for IPv6.
pub fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            Ipv4Addr::new(a, b, c, 0).into()
        }
        IpAddr::V6(address) => {
            let [a, b, c, ..] = address.segments();
            Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(write: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn nothing_ends_a_value_or_begins_a_line() {
        let evil = b"a\"b\\c\nd\r\x1b[2Je\x7f\xc3\xa9\xc2\x9b\xff";
        assert_eq!(
            written(|out| text(evil, out)),
            "a\\x22b\\x5cc\\x0ad\\x0d\\x1b[2Je\\x7f\\xc3\\xa9\\xc2\\x9b\\xff"
        );
        assert_eq!(
            written(|out| json(evil, out)),
            "a\\\"b\\\\c\\u000ad\\u000d\\u001b[2Je\\u007fé\\u009b\\u00ff"
        );
    }

    #[test]
    fn personal_data_goes() {
        for (whole, left) in [
            ("/a", "/a"),
            ("/a?", "/a?"),
            ("/a?b=1&c=x=y&d&e=", "/a?b=&c=&&e="),
            ("/a?mail@example.org", "/a?"),
            ("http://x/?q=1?2", "http://x/?q="),
        ] {
            let mut out = Vec::new();
            without_values(whole.as_bytes(), |piece| out.extend_from_slice(piece));
            assert_eq!(str::from_utf8(&out), Ok(left), "{whole}");
        }
        for (address, network) in [
            ("192.0.2.77", "192.0.2.0"),
            ("::ffff:192.0.2.77", "192.0.2.0"),
            ("2001:db8:1:2::3", "2001:db8:1::"),
        ] {
            let network: IpAddr = network.parse().unwrap();
            assert_eq!(network_of(address.parse().unwrap()), network);
        }
    }

    proptest! {
        #[test]
        fn json_is_read_back(value: Vec<u8>) {
            let string = format!("\"{}\"", written(|out| json(&value, out)));
            let read: String = serde_json::from_str(&string).expect("JSON");
            if let Ok(text) = str::from_utf8(&value) {
                prop_assert_eq!(read, text);
            }
            prop_assert!(!string.chars().any(char::is_control));
        }

        #[test]
        fn text_is_plain(value: Vec<u8>) {
            let text = written(|out| text(&value, out));
            prop_assert!(text.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'"'));
        }
    }
}
