//! `traceparent`: version, trace id, span id and flags in lower-case hexadecimal (W3C Trace Context,
//! section 3.2).
//!
//! Parsed strictly: an invalid value counts as absent. Of future versions, the fields of version 00 are
//! used (section 4.3), and forwarded as version 00.

use http::{HeaderMap, HeaderName, HeaderValue};

/// The field with the trace context.
pub const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
/// The field with the vendor-specific part of the trace context.
pub const TRACE_STATE: HeaderName = HeaderName::from_static("tracestate");

/// The length of a version 00 value, in bytes.
const LENGTH: usize = 55;
/// The flag "sampled": the caller has recorded its span (section 3.2.2.5.1).
const SAMPLED: u8 = 1;

/// The position of a span in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    /// The trace id; never zero.
    pub trace: u128,
    /// The span id; never zero.
    pub span: u64,
    /// Whether the span is recorded.
    pub is_sampled: bool,
}

impl TraceParent {
    /// The context in these fields; `None` if it is absent, repeated or invalid.
    pub fn of(headers: &HeaderMap) -> Option<TraceParent> {
        let mut all = headers.get_all(TRACE_PARENT).iter();
        match (all.next(), all.next()) {
            (Some(one), None) => TraceParent::read(one.as_bytes()),
            _ => None,
        }
    }

    fn read(value: &[u8]) -> Option<TraceParent> {
        let (known, rest) = value.split_at_checked(LENGTH)?;
        let version = hex(&known[..2])? as u8;
        match (version, rest) {
            (0xff, _) => return None,
            (0, []) | (1.., [] | [b'-', ..]) => {}
            _ => return None,
        }
        if [known[2], known[35], known[52]] != *b"---" {
            return None;
        }
        let (trace, span) = (hex(&known[3..35])?, hex(&known[36..52])? as u64);
        let flags = hex(&known[53..55])? as u8;
        let is_sampled = flags & SAMPLED == SAMPLED;
        (trace != 0 && span != 0).then_some(TraceParent { trace, span, is_sampled })
    }

    /// The context of a child span with the id `span`.
    pub fn below(&self, span: u64) -> TraceParent {
        TraceParent { span, ..*self }
    }

    /// The value of the `traceparent` field.
    pub fn to_value(self) -> HeaderValue {
        let flags = if self.is_sampled { SAMPLED } else { 0 };
        let text = format!("00-{:032x}-{:016x}-{flags:02x}", self.trace, self.span);
        HeaderValue::from_str(&text).expect("digits and hyphens")
    }
}

/// Parses hexadecimal digits in lower case.
fn hex(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |all: u128, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(all << 4 | u128::from(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn the_standards_own_example() {
        let read = TraceParent::read(RIGHT.as_bytes()).expect("right");
        assert_eq!(read.trace, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert_eq!((read.span, read.is_sampled), (0x00f0_67aa_0ba9_02b7, true));
        assert_eq!(read.to_value(), RIGHT);
        let below = read.below(7).to_value();
        assert_eq!(below, "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000007-01");
    }

    #[test]
    fn flags_and_versions_to_come() {
        for (text, right) in [
            (RIGHT.replace("-01", "-00"), Some(false)),
            (RIGHT.replace("-01", "-fe"), Some(false)),
            (RIGHT.replace("-01", "-ff"), Some(true)),
            (RIGHT.replace("00-4", "cc-4"), Some(true)),
            (RIGHT.replace("00-4", "cc-4") + "-what-comes", Some(true)),
            (RIGHT.replace("00-4", "cc-4") + ".what-comes", None),
            (RIGHT.replace("00-4", "ff-4"), None),
            (RIGHT.to_owned() + "-x", None),
        ] {
            assert_eq!(
                TraceParent::read(text.as_bytes()).map(|read| read.is_sampled),
                right,
                "{text}"
            );
        }
    }

    #[test]
    fn an_invalid_traceparent_is_ignored() {
        for end in 0..RIGHT.len() {
            assert_eq!(TraceParent::read(&RIGHT.as_bytes()[..end]), None);
        }
        for at in 0..RIGHT.len() {
            for byte in *b"gG -\0" {
                let mut text = RIGHT.as_bytes().to_vec();
                if text[at] != byte {
                    text[at] = byte;
                    assert_eq!(
                        TraceParent::read(&text),
                        None,
                        "{}",
                        String::from_utf8_lossy(&text)
                    );
                }
            }
        }
        assert_eq!(TraceParent::read(RIGHT.to_uppercase().as_bytes()), None);
        for zero in ["4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"] {
            let text = RIGHT.replace(zero, &"0".repeat(zero.len()));
            assert_eq!(TraceParent::read(text.as_bytes()), None);
        }
        let mut twice = HeaderMap::new();
        twice.append(TRACE_PARENT, HeaderValue::from_static(RIGHT));
        assert!(TraceParent::of(&twice).is_some());
        twice.append(TRACE_PARENT, HeaderValue::from_static(RIGHT));
        assert_eq!(TraceParent::of(&twice), None);
    }
}
