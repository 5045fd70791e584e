//! Read-your-writes: a cookie that makes the requests of a client bypass the cache for a short time after a
//! write. It is signed, so that clients cannot create it themselves and cause an origin request every time.
//!
//! Its value is `1700000000000.` and the first 16 bytes of HMAC-SHA-256 over the host and that time, in
//! hexadecimal. The time is its expiry in milliseconds since the Unix epoch. A client that keeps the cookie
//! gains nothing: it could get it again by another write. Only the text that was issued is valid, because
//! the requests of a client are counted by it.

use crate::cookies::AFTER_WRITE_COOKIE;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::fmt;
use subtle::ConstantTimeEq;

/// The length of the authentication code in bytes.
const CODE_BYTES: usize = 16;

/// The key for signing the cookies.
#[derive(Clone)]
pub struct Secret([u8; 32]);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// A key from 32 unpredictable bytes.
    pub fn new(bytes: [u8; 32]) -> Secret {
        Secret(bytes)
    }

    /// The Set-Cookie value for a client of `host`. The cookie is valid for `for_ms` milliseconds from
    /// `now_ms`.
    pub(crate) fn set_cookie(&self, host: &str, now_ms: u64, for_ms: u64, secure: bool) -> String {
        let until_ms = now_ms.saturating_add(for_ms);
        let code = self.code(host, until_ms);
        let max_age = for_ms.div_ceil(1000);
        let secure = if secure { "; Secure" } else { "" };
        format!(
            "{AFTER_WRITE_COOKIE}={until_ms}.{}; Max-Age={max_age}; Path=/; HttpOnly; SameSite=Lax{secure}",
            hexadecimal(&code)
        )
    }

    /// Whether `value` is a valid cookie for `host` that has not expired.
    pub(crate) fn holds(&self, value: &[u8], host: &str, now_ms: u64) -> bool {
        let Ok(text) = str::from_utf8(value) else { return false };
        let Some((until, code)) = text.split_once('.') else { return false };
        let Ok(until_ms) = until.parse::<u64>() else { return false };
        let right = hexadecimal(&self.code(host, until_ms));
        // `+5` and `05` are the same number.
        let is_as_issued = || until == until_ms.to_string();
        until_ms > now_ms && code.as_bytes().ct_eq(right.as_bytes()).into() && is_as_issued()
    }

    fn code(&self, host: &str, until_ms: u64) -> [u8; CODE_BYTES] {
        self.code_of(host.as_bytes(), &[&[0], &until_ms.to_be_bytes()])
    }

    /// The code of these bytes. What `begin` begins with distinguishes the purposes: no host begins with a zero.
    pub(crate) fn code_of(&self, begin: &[u8], rest: &[&[u8]]) -> [u8; CODE_BYTES] {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("a key of any length will do");
        mac.update(begin);
        rest.iter().for_each(|part| mac.update(part));
        let whole = mac.finalize().into_bytes();
        let mut code = [0; CODE_BYTES];
        code.copy_from_slice(&whole[..CODE_BYTES]);
        code
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_holds_for_its_host_and_time_alone() {
        let secret = Secret::new([7; 32]);
        let line = secret.set_cookie("a.test", 1_000, 1_500, true);
        let value = line.split_once('=').unwrap().1.split(';').next().unwrap();
        assert!(line.contains("; Max-Age=2; Path=/; HttpOnly; SameSite=Lax; Secure"), "{line}");
        let holds = |value: &str, host: &str, now| secret.holds(value.as_bytes(), host, now);
        assert!(holds(value, "a.test", 1_000) && holds(value, "a.test", 2_499));
        assert!(!holds(value, "a.test", 2_500));
        assert!(!holds(value, "b.test", 1_000));
        let later = value.replacen("2500", "9500", 1);
        assert!(!holds(&later, "a.test", 1_000));
        for wrong in
            ["", ".", "2500.", "2500", "x.y", &value[..value.len() - 1], &format!("{value}0")]
        {
            assert!(!holds(wrong, "a.test", 1_000), "{wrong}");
        }
        for other in ["0", "00", "+", " ", "-"].map(|before| format!("{before}{value}")) {
            assert!(!holds(&other, "a.test", 1_000), "{other}");
        }
        let upper = value.to_ascii_uppercase();
        assert!(upper != value && !holds(&upper, "a.test", 1_000), "{upper}");
        assert!(!Secret::new([8; 32]).holds(value.as_bytes(), "a.test", 1_000));
    }
}
