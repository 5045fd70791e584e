//! The credentials in `Authorization: Basic …` (RFC 7617 section 2).
//!
//! Anything else than one well-formed value gives no credentials, so that the client is asked for them. The length is
//! bounded, because some hashes take longer for a longer password.

/// The longest name of a user, in bytes.
const NAME_BYTES_MAX: usize = 255;
/// The longest password, in bytes. A longer one is wrong, for every user.
const PASSWORD_BYTES_MAX: usize = 1_024;

/// The name and password that a client sends.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    user: String,
    password: Vec<u8>,
    /// Both, as they were sent.
    token: Box<[u8]>,
}

/// Name and password as the value of an Authorization field has them: encoded. `None` with another scheme, and if they
/// are too long.
pub(crate) fn token_of(value: &[u8]) -> Option<&[u8]> {
    let space = value.iter().position(|byte| *byte == b' ')?;
    let (scheme, token) = value.split_at(space);
    let token = token.trim_ascii();
    let is_short = token.len() <= (NAME_BYTES_MAX + 1 + PASSWORD_BYTES_MAX).div_ceil(3) * 4;
    (scheme.eq_ignore_ascii_case(b"basic") && is_short).then_some(token)
}

impl Credentials {
    /// Reads the value of an Authorization field.
    pub fn read(value: &[u8]) -> Option<Credentials> {
        let token = token_of(value)?;
        let decoded = base64_decoded(token)?;
        let colon = decoded.iter().position(|byte| *byte == b':')?;
        let user = String::from_utf8(decoded[..colon].to_vec()).ok()?;
        let password = decoded[colon + 1..].to_vec();
        // A control character is allowed neither in the name nor in the password, and bcrypt would end at a NUL.
        let is_text = !decoded.iter().any(|byte| byte.is_ascii_control());
        let is_short = user.len() <= NAME_BYTES_MAX && password.len() <= PASSWORD_BYTES_MAX;
        (is_text && is_short).then(|| Credentials { user, password, token: token.into() })
    }

    /// The name of the user.
    pub fn user(&self) -> &str {
        &self.user
    }

    pub(crate) fn password(&self) -> &[u8] {
        &self.password
    }

    pub(crate) fn token(&self) -> &[u8] {
        &self.token
    }
}

/// Decodes base64 (RFC 4648 section 4); the padding may be missing.
fn base64_decoded(text: &[u8]) -> Option<Vec<u8>> {
    let padding = text.iter().rev().take_while(|byte| **byte == b'=').count();
    let text = &text[..text.len() - padding];
    if padding > 2
        || text.len() % 4 == 1
        || (padding > 0 && !(text.len() + padding).is_multiple_of(4))
    {
        return None;
    }
    let (mut decoded, mut bits, mut count) = (Vec::with_capacity(text.len() * 3 / 4), 0_u32, 0);
    for byte in text {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            decoded.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    (bits == 0).then_some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(value: &str) -> Option<(String, String)> {
        let found = Credentials::read(value.as_bytes())?;
        Some((found.user.clone(), String::from_utf8_lossy(&found.password).into_owned()))
    }

    #[test]
    fn only_one_well_formed_value_is_read() {
        let pair = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
        assert_eq!(read("Basic YW5uYTpzZWNyZXQ="), pair("anna", "secret"));
        assert_eq!(read("bAsIc   YW5uYTpzZWNyZXQ"), pair("anna", "secret"));
        assert_eq!(read("Basic YW5uYTo="), pair("anna", ""));
        assert_eq!(read("Basic YTpiOmM="), pair("a", "b:c"), "only the first colon separates");
        for wrong in [
            "Bearer YW5uYTpzZWNyZXQ=",
            "Basic",
            "Basic ",
            "Basic YW5uYQ==",
            "Basic YW5uYTpzZWNyZXQ==",
            "Basic YW5uYTpzZWNyZXQ=====",
            "Basic YW5uYTpzZWNyZ\u{e9}Q=",
            "Basic YTpi, Basic YTpi",
            "Basic YTpiAA==",
            "Basic YTp",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_long_password_is_not_read() {
        let encoded = |bytes: usize| format!("Basic YTph{}", "YWFh".repeat(bytes / 3));
        assert!(read(&encoded(1_020)).is_some());
        for bytes in [1_026, 4_096, 1 << 20] {
            assert_eq!(read(&encoded(bytes)), None, "{bytes}");
        }
    }

    proptest! {
        #[test]
        fn any_value_is_read_or_refused(value in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = Credentials::read(&value);
            let _ = Credentials::read(&[b"Basic ", &value[..]].concat());
        }
    }
}
