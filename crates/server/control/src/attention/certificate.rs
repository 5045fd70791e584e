//! The end of a certificate's validity, from its PEM file.
//!
//! RFC 5280 section 4.1.2.5. Only the structure up to that field is read; rustls validates the rest when it loads
//! the file.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

const SEQUENCE: u8 = 0x30;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// The version, which is optional: context-specific, constructed, number 0.
const VERSION: u8 = 0xa0;

/// Returns the end of the first certificate in a PEM file, in milliseconds since 1970. `None` if it cannot be read.
pub(super) fn ends_at_ms(pem: &[u8]) -> Option<u64> {
    let certificate = CertificateDer::from_pem_slice(pem).ok()?;
    let mut outer = Reader(&certificate);
    let mut certificate = Reader(outer.content_of(SEQUENCE)?);
    let mut fields = Reader(certificate.content_of(SEQUENCE)?);
    if fields.0.first() == Some(&VERSION) {
        fields.element()?;
    }
    // The serial number, the algorithm, the issuer.
    for _ in 0..3 {
        fields.element()?;
    }
    let mut validity = Reader(fields.content_of(SEQUENCE)?);
    validity.element()?;
    let (tag, text) = validity.element()?;
    seconds(tag, text)?.checked_mul(1000)
}

/// Reads elements in DER, one after the other.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// The tag and the content of the next element.
    fn element(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, mut rest) = rest.split_first()?;
        let mut length = usize::from(first);
        if first >= 0x80 {
            let count = usize::from(first & 0x7f);
            if count == 0 || count > 4 || rest.len() < count {
                return None;
            }
            let (bytes, after) = rest.split_at(count);
            length = bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
            rest = after;
        }
        if rest.len() < length {
            return None;
        }
        let (content, after) = rest.split_at(length);
        self.0 = after;
        Some((tag, content))
    }

    fn content_of(&mut self, wanted: u8) -> Option<&'a [u8]> {
        self.element().filter(|(tag, _)| *tag == wanted).map(|(_, content)| content)
    }
}

/// The seconds since 1970 of a time: `YYMMDDhhmmssZ`, or with four digits of the year.
fn seconds(tag: u8, text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let (year, rest) = match tag {
        UTC_TIME if text.len() == 12 && text.is_ascii() => {
            let short: u64 = text[..2].parse().ok()?;
            (if short >= 50 { 1900 + short } else { 2000 + short }, &text[2..])
        }
        GENERALIZED_TIME if text.len() == 14 && text.is_ascii() => {
            (text[..4].parse().ok()?, &text[4..])
        }
        _ => return None,
    };
    let part = |at: usize| rest[at..at + 2].parse::<u64>().ok();
    let (month, day) = (part(0)?, part(2)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || year < 1970 {
        return None;
    }
    // Days since 1970-01-01 in the Gregorian calendar, with a year that begins in March.
    let shifted = if month > 2 { year } else { year - 1 };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + day_of_year;
    let days = days.checked_sub(719_468)?;
    Some(days * 86_400 + part(4)? * 3_600 + part(6)? * 60 + part(8)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_certificates_are_read() {
        for (tag, text, right) in [
            (UTC_TIME, "700101000000Z", Some(0)),
            (UTC_TIME, "240229120000Z", Some(1_709_208_000)),
            (UTC_TIME, "491231235959Z", Some(2_524_607_999)),
            (GENERALIZED_TIME, "20500101000000Z", Some(2_524_608_000)),
            (GENERALIZED_TIME, "40960101000000Z", Some(67_090_118_400)),
            (UTC_TIME, "2402291200Z", None),
            (UTC_TIME, "241329120000Z", None),
            (UTC_TIME, "24022912000éZ", None),
            (GENERALIZED_TIME, "19690101000000Z", None),
            (0x04, "700101000000Z", None),
        ] {
            assert_eq!(seconds(tag, text.as_bytes()), right, "{text}");
        }
    }

    #[test]
    fn any_damage_is_no_certificate() {
        assert_eq!(ends_at_ms(b""), None);
        assert_eq!(
            ends_at_ms(b"-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"),
            None
        );
        let mut reader = Reader(&[SEQUENCE, 0x84, 0xff, 0xff, 0xff, 0xff]);
        assert!(reader.element().is_none());
    }
}
