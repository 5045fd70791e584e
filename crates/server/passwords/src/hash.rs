//! The kinds of hashes in a password file. Their costs are bounded, because a check keeps a thread busy and may
//! allocate memory.
//!
//! Clear text, DES crypt(3), MD5 crypt (`$1$`) and `{SHA}` are refused: a leaked file would reveal the passwords. apr1
//! (Apache's MD5) is weak, too, but it is what `htpasswd` writes without an option, so it is accepted.

use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, PasswordVerifier};
use md5::{Digest, Md5};
use sha_crypt::ShaCrypt;
use subtle::ConstantTimeEq;

/// The greatest cost of bcrypt: about 5 s.
const BCRYPT_COST_MAX: u32 = 16;
/// The most rounds of SHA-crypt: about 1 s.
const SHA_ROUNDS_MAX: u32 = 2_000_000;
/// The most memory of argon2 in KiB, and its most passes and lanes.
const ARGON2_KIB_MAX: u32 = 256 << 10;
const ARGON2_PASSES_MAX: u32 = 16;
const ARGON2_LANES_MAX: u32 = 16;

/// A hash of a password.
#[derive(Clone)]
pub(crate) enum StoredHash {
    Bcrypt(String),
    Argon2(String),
    ShaCrypt(String),
    Apr1 { salt: String, digest: String },
}

impl StoredHash {
    /// Reads the hash of a line.
    ///
    /// # Errors
    /// Why it cannot be used: the end of a sentence that begins with the user.
    pub(crate) fn read(text: &str) -> Result<StoredHash, String> {
        match text.split('$').nth(1) {
            Some("2y" | "2b" | "2a") if text.starts_with('$') => bcrypt(text),
            Some("argon2id" | "argon2i" | "argon2d") if text.starts_with('$') => argon2(text),
            Some("5" | "6") if text.starts_with('$') => sha_crypt(text),
            Some("apr1") if text.starts_with('$') => apr1_parts(text),
            Some(kind) if text.starts_with('$') => Err(format!("has a hash of the kind ${kind}$")),
            _ if text.starts_with("{SHA}") => Err("has an unsalted SHA-1 hash".into()),
            _ if is_des(text) => Err("has clear text, or a DES hash of crypt(3)".into()),
            _ => Err("has a password in clear text".into()),
        }
    }

    /// Whether this is the hash of the password. Takes as long as the hash demands.
    pub(crate) fn is_of(&self, password: &[u8]) -> bool {
        #[cfg(test)]
        COMPUTED.with_borrow_mut(|all| all.push(std::ptr::from_ref(self)));
        match self {
            // As Apache does, bytes after the 72nd do not count.
            StoredHash::Bcrypt(text) => bcrypt::verify(password, text).unwrap_or(false),
            StoredHash::Argon2(text) => PasswordHash::new(text)
                .is_ok_and(|hash| Argon2::default().verify_password(password, &hash).is_ok()),
            StoredHash::ShaCrypt(text) => {
                ShaCrypt::default().verify_password(password, text.as_str()).is_ok()
            }
            StoredHash::Apr1 { salt, digest } => {
                let computed = apr1(password, salt.as_bytes());
                computed.as_bytes().ct_eq(digest.as_bytes()).into()
            }
        }
    }
}

#[cfg(test)]
thread_local! {
    /// The hashes that this thread has computed, for the test of unknown users.
    pub(crate) static COMPUTED: std::cell::RefCell<Vec<*const StoredHash>> =
        const { std::cell::RefCell::new(Vec::new()) };
}

/// The alphabet of crypt(3).
const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

fn is_of_alphabet(text: &str) -> bool {
    text.bytes().all(|byte| ALPHABET.contains(&byte))
}

fn is_des(text: &str) -> bool {
    text.len() == 13 && is_of_alphabet(text)
}

fn bcrypt(text: &str) -> Result<StoredHash, String> {
    let cost = text.get(4..6).and_then(|cost| cost.parse::<u32>().ok());
    // The parser checks the rest before it hashes anything; a cost that it refuses costs nothing.
    let is_whole = text.len() == 60
        && text.as_bytes()[6] == b'$'
        && text[7..].bytes().all(|byte| ALPHABET.contains(&byte));
    match cost.filter(|_| is_whole) {
        None => Err("has a bcrypt hash that is not complete".into()),
        Some(cost) if !(4..=BCRYPT_COST_MAX).contains(&cost) => {
            Err(format!("has a bcrypt hash with the cost {cost}; 4 to {BCRYPT_COST_MAX}"))
        }
        Some(_) => Ok(StoredHash::Bcrypt(text.into())),
    }
}

fn argon2(text: &str) -> Result<StoredHash, String> {
    let wrong = |_| "has an argon2 hash that is not complete".to_owned();
    let hash = PasswordHash::new(text).map_err(wrong)?;
    let params = argon2::Params::try_from(&hash)
        .map_err(|_| "has an argon2 hash with wrong parameters".to_owned())?;
    if hash.salt.is_none() || hash.hash.is_none() {
        return Err("has an argon2 hash that is not complete".into());
    }
    let is_bounded = params.m_cost() <= ARGON2_KIB_MAX
        && params.t_cost() <= ARGON2_PASSES_MAX
        && params.p_cost() <= ARGON2_LANES_MAX;
    if !is_bounded {
        return Err(format!(
            "has an argon2 hash that costs too much; at most m={ARGON2_KIB_MAX}, t={ARGON2_PASSES_MAX}, p={ARGON2_LANES_MAX}"
        ));
    }
    Ok(StoredHash::Argon2(text.into()))
}

fn sha_crypt(text: &str) -> Result<StoredHash, String> {
    let mut parts: Vec<&str> = text.split('$').skip(2).collect();
    if let Some(rounds) = parts.first().and_then(|first| first.strip_prefix("rounds=")) {
        let rounds = rounds.parse::<u32>().ok();
        if !rounds.is_some_and(|rounds| (1_000..=SHA_ROUNDS_MAX).contains(&rounds)) {
            return Err(format!(
                "has a SHA-crypt hash with rounds out of 1000 to {SHA_ROUNDS_MAX}"
            ));
        }
        parts.remove(0);
    }
    let length = if text.starts_with("$5$") { 43 } else { 86 };
    match parts[..] {
        [salt, digest]
            if (1..=16).contains(&salt.len())
                && is_of_alphabet(salt)
                && digest.len() == length
                && is_of_alphabet(digest) =>
        {
            Ok(StoredHash::ShaCrypt(text.into()))
        }
        _ => Err("has a SHA-crypt hash that is not complete".into()),
    }
}

fn apr1_parts(text: &str) -> Result<StoredHash, String> {
    let parts: Vec<&str> = text.split('$').skip(2).collect();
    match parts[..] {
        [salt, digest]
            if (1..=8).contains(&salt.len()) && digest.len() == 22 && is_of_alphabet(digest) =>
        {
            Ok(StoredHash::Apr1 { salt: salt.into(), digest: digest.into() })
        }
        _ => Err("has an apr1 hash that is not complete".into()),
    }
}

/// Apache's variant of MD5 crypt, as `apr_md5_encode` of the Apache Portable Runtime defines it: 1,000 rounds.
fn apr1(password: &[u8], salt: &[u8]) -> String {
    let alternate = Md5::new().chain_update(password).chain_update(salt).chain_update(password);
    let alternate = alternate.finalize();
    let mut start = Md5::new();
    start.update(password);
    start.update(b"$apr1$");
    start.update(salt);
    let mut left = password.len();
    while left > 0 {
        let part = left.min(16);
        start.update(&alternate[..part]);
        left -= part;
    }
    let mut bits = password.len();
    while bits > 0 {
        start.update(if bits & 1 == 1 { &[0][..] } else { &password[..1] });
        bits >>= 1;
    }
    let mut digest = start.finalize();
    for round in 0..1_000 {
        let mut next = Md5::new();
        if round % 2 == 1 {
            next.update(password)
        } else {
            next.update(digest)
        }
        if round % 3 != 0 {
            next.update(salt);
        }
        if round % 7 != 0 {
            next.update(password);
        }
        if round % 2 == 1 {
            next.update(digest)
        } else {
            next.update(password)
        }
        digest = next.finalize();
    }
    let mut text = String::with_capacity(22);
    let mut put = |mut value: u32, characters: usize| {
        for _ in 0..characters {
            text.push(char::from(ALPHABET[(value & 63) as usize]));
            value >>= 6;
        }
    };
    for [high, middle, low] in [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]] {
        let byte = |at: usize| u32::from(digest[at]);
        put(byte(high) << 16 | byte(middle) << 8 | byte(low), 4);
    }
    put(u32::from(digest[11]), 2);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hashes of "secret", made by OpenSSL and PHP.
    const OF_SECRET: [&str; 8] = [
        "$2y$04$fnQwoA9.coPo9XjTlKCSnug.qmDJXi/QQ9JCiMv3tsjCWhfSHE7Eq",
        "$2b$04$fnQwoA9.coPo9XjTlKCSnug.qmDJXi/QQ9JCiMv3tsjCWhfSHE7Eq",
        "$argon2id$v=19$m=64,t=1,p=1$cVRpazg2U0lNV2ptb0llbQ$FMrhQeZ/OmrV1huaebWO6/2mM4YRXNzPEFza3/5T8ZU",
        "$argon2i$v=19$m=64,t=1,p=1$ZUxKaVFER2UyZXJmUFJ3Uw$eNL+XEECihw9xSnaz1JHn3sEpFQ+93MDskaOayyS1u8",
        "$5$abcdefgh$gruCpC7VkOTspMQTTSAR8mtlO9Upms.fwqE5y16JVM.",
        "$6$abcdefgh$ltjgWl6579NluT/Vi1nwEvcil.G5Nbc4NiXZaNGStk8PSwGfQv72N2CKPPrVACtLtip/cZ/1GM/O6IND4WQhG.",
        "$6$rounds=1000$saltsalt$LAV5VE5Y7w1d73x1mFNspYWUpazfmwv2SoepNXNKJ/otop/Zok96Hr8Q13LEv0DRY/x8v0/crpIjl8NJSAqXV/",
        "$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/",
    ];

    #[test]
    fn each_kind_is_checked_as_other_programs_made_it() {
        for text in OF_SECRET {
            let hash = StoredHash::read(text).unwrap_or_else(|why| panic!("{text}: {why}"));
            assert!(hash.is_of(b"secret"), "{text}");
            for wrong in ["", "Secret", "secret ", "secre", "secrets"] {
                assert!(!hash.is_of(wrong.as_bytes()), "{text}: {wrong}");
            }
        }
        // Made by OpenSSL.
        for (password, digest) in [
            ("", "e2aCb9PLCjZ2t55SoAxXn."),
            ("a", "EpqI6uEp3OR4bun9kSXHW/"),
            ("0123456789abcdef0", "UhH6/jBp40d9l2ucjbvCa1"),
            ("pässwörd with a long tail 0123456789", "Qldd1uug3JFs8yKV2FpS6."),
        ] {
            assert_eq!(apr1(password.as_bytes(), b"s"), digest, "{password}");
        }
    }

    #[test]
    fn hashes_that_reveal_passwords_or_cost_too_much_are_refused() {
        let huge = "$argon2id$v=19$m=1048576,t=1,p=1$cVRpazg2U0lNV2ptb0llbQ$FMrhQeZ/OmrV1huaebWO6/2mM4YRXNzPEFza3/5T8ZU";
        for (text, part) in [
            ("secret", "clear text"),
            ("", "clear text"),
            ("sec$ret$", "clear text"),
            ("rqXexS6ZhobKA", "DES"),
            ("{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=", "SHA-1"),
            ("{PLAIN}secret", "clear text"),
            ("$1$abcdefgh$x", "$1$"),
            ("$y$j9T$x$y", "$y$"),
            ("$2x$04$fnQwoA9.coPo9XjTlKCSnug.qmDJXi/QQ9JCiMv3tsjCWhfSHE7Eq", "$2x$"),
            ("$2y$31$fnQwoA9.coPo9XjTlKCSnug.qmDJXi/QQ9JCiMv3tsjCWhfSHE7Eq", "cost 31"),
            ("$2y$04$short", "not complete"),
            ("$2y$04$\u{e9}nQwoA9.coPo9XjTlKCSnug.qmDJXi/QQ9JCiMv3tsjCWhfSHE7E", "not complete"),
            ("$6$rounds=999999999$saltsalt$x", "rounds"),
            ("$6$saltsalt$x", "not complete"),
            ("$5$$gruCpC7VkOTspMQTTSAR8mtlO9Upms.fwqE5y16JVM.", "not complete"),
            ("$apr1$x", "not complete"),
            ("$argon2id$x", "argon2"),
            (huge, "too much"),
        ] {
            let said = StoredHash::read(text).err().unwrap_or_else(|| panic!("{text}"));
            assert!(said.contains(part), "{text}: {said}");
        }
    }
}
