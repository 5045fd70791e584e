//! Cache-Status (RFC 9211): how this cache handled a request, as a member of a structured list.
//!
//! Invariant: the output is a valid list member for every input. Nothing is allocated except in the output
//! buffer.

use crate::decide::ForwardReason;
use http::StatusCode;

/// How the cache handled a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheOutcome {
    /// Answered from the store, without the origin (RFC 9211 §2.1).
    Hit,
    /// Forwarded to the origin for this reason (§2.2).
    Forwarded(ForwardReason),
    /// Neither, such as an error response of the cache itself.
    Neither,
}

/// The member that this cache adds to Cache-Status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheStatus<'a> {
    /// The name of the cache.
    pub name: &'a str,
    /// Whether it was a hit, or why it was forwarded.
    pub handled: CacheOutcome,
    /// The status of the origin's response (§2.3), if it differs from that of the response to the client.
    pub forward_status: Option<StatusCode>,
    /// The remaining freshness lifetime in seconds; negative if the response is stale (§2.4).
    pub ttl_seconds: Option<i64>,
    /// Whether the origin's response was stored (§2.5).
    pub stored: bool,
    /// Whether the request shared another request's exchange with the origin (§2.6).
    pub collapsed: bool,
    /// The cache key (§2.7).
    pub key: Option<&'a [u8]>,
    /// Details specific to this cache: a name such as those of [`NotStored`](crate::NotStored) (§2.8).
    pub detail: Option<&'a str>,
}

impl<'a> CacheStatus<'a> {
    /// A member with only the name and how the request was handled.
    pub const fn new(name: &'a str, handled: CacheOutcome) -> CacheStatus<'a> {
        CacheStatus {
            name,
            handled,
            forward_status: None,
            ttl_seconds: None,
            stored: false,
            collapsed: false,
            key: None,
            detail: None,
        }
    }

    /// Appends the member, for instance `pagewell; fwd=stale; fwd-status=304; ttl=20; stored`.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_name(out, self.name.as_bytes());
        match self.handled {
            CacheOutcome::Hit => out.extend_from_slice(b"; hit"),
            CacheOutcome::Forwarded(why) => {
                out.extend_from_slice(b"; fwd=");
                out.extend_from_slice(why.as_str().as_bytes());
            }
            CacheOutcome::Neither => {}
        }
        if let Some(status) = self.forward_status {
            out.extend_from_slice(b"; fwd-status=");
            out.extend_from_slice(status.as_str().as_bytes());
        }
        if let Some(ttl) = self.ttl_seconds {
            out.extend_from_slice(b"; ttl=");
            write_integer(out, ttl);
        }
        for (flag, name) in [(self.stored, "; stored"), (self.collapsed, "; collapsed")] {
            if flag {
                out.extend_from_slice(name.as_bytes());
            }
        }
        if let Some(key) = self.key {
            out.extend_from_slice(b"; key=");
            write_string(out, key);
        }
        if let Some(detail) = self.detail {
            out.extend_from_slice(b"; detail=");
            write_name(out, detail.as_bytes());
        }
    }
}

/// Writes a token if the name is a valid one (RFC 9651 §3.3.4), else a string.
fn write_name(out: &mut Vec<u8>, name: &[u8]) {
    let rest = |b: &u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(b);
    let starts = name.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'*');
    if starts && name.iter().all(rest) {
        out.extend_from_slice(name);
    } else {
        write_string(out, name);
    }
}

/// Writes a string (RFC 9651 §3.3.3). Bytes that are not allowed in it are percent-encoded.
fn write_string(out: &mut Vec<u8>, text: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    out.push(b'"');
    for byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            b' '..=b'~' => out.push(*byte),
            byte => out.extend_from_slice(&[
                b'%',
                HEX[usize::from(byte >> 4)],
                HEX[usize::from(byte & 15)],
            ]),
        }
    }
    out.push(b'"');
}

/// Writes an integer, limited to fifteen digits (RFC 9651 §3.3.1).
fn write_integer(out: &mut Vec<u8>, number: i64) {
    const MOST: u64 = 999_999_999_999_999;
    if number < 0 {
        out.push(b'-');
    }
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = number.unsigned_abs().min(MOST);
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sfv::{List, Parser};

    fn written(status: &CacheStatus<'_>) -> String {
        let mut out = Vec::new();
        status.write(&mut out);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn members() {
        // RFC 9211 §2.
        let hit = CacheStatus {
            ttl_seconds: Some(-7),
            ..CacheStatus::new("pagewell", CacheOutcome::Hit)
        };
        assert_eq!(written(&hit), "pagewell; hit; ttl=-7");
        let stale = CacheOutcome::Forwarded(ForwardReason::Stale);
        let full = CacheStatus {
            forward_status: Some(StatusCode::NOT_MODIFIED),
            ttl_seconds: Some(20),
            stored: true,
            collapsed: true,
            key: Some(b"http://a/\"b\"\xc3"),
            detail: Some("no-lifetime"),
            ..CacheStatus::new("pagewell", stale)
        };
        assert_eq!(
            written(&full),
            "pagewell; fwd=stale; fwd-status=304; ttl=20; stored; collapsed; \
             key=\"http://a/\\\"b\\\"%C3\"; detail=no-lifetime"
        );
    }

    #[test]
    fn names_that_are_no_tokens_become_strings() {
        let status = CacheStatus::new("my cache", CacheOutcome::Neither);
        assert_eq!(written(&status), "\"my cache\"");
    }

    proptest! {
        #[test]
        fn always_a_valid_list(name: String, detail: String, key: Vec<u8>, ttl: i64) {
            let status = CacheStatus {
                ttl_seconds: Some(ttl),
                key: Some(&key),
                detail: Some(&detail),
                ..CacheStatus::new(&name, CacheOutcome::Hit)
            };
            let list: List = Parser::new(&written(&status)).parse().expect("a valid list");
            prop_assert_eq!(list.len(), 1);
        }
    }
}
