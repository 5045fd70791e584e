//! Computes the authentication response of each supported login plugin.
//!
//! | plugin | response | sources |
//! |---|---|---|
//! | `mysql_native_password` | SHA-1 of the password, masked by the challenge | "Secure Password Authentication" |
//! | `caching_sha2_password` | the same with SHA-256; the server may request the plain password | "Caching_sha2_password information" |
//! | `client_ed25519` | a signature of the challenge; the key is the SHA-512 of the password | MariaDB's `plugin/auth_ed25519`; RFC 8032 section 5.1.6 |
//!
//! Other plugins are refused with their name. The plain password is only sent over TLS or a Unix socket
//! ([`super::login`]). Not here: encryption with the server's RSA key.

use curve25519_dalek::edwards::EdwardsPoint;
use curve25519_dalek::scalar::{Scalar, clamp_integer};
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

/// A supported login plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Plugin {
    /// `mysql_native_password`.
    Native,
    /// `caching_sha2_password`, the default of MySQL 8.
    CachingSha2,
    /// `client_ed25519`, the client side of MariaDB's `ed25519`.
    Ed25519,
}

impl Plugin {
    /// The plugin with this name in the protocol.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Plugin> {
        match name {
            "mysql_native_password" => Some(Plugin::Native),
            "caching_sha2_password" => Some(Plugin::CachingSha2),
            "client_ed25519" => Some(Plugin::Ed25519),
            _ => None,
        }
    }

    /// The name in the protocol.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Plugin::Native => "mysql_native_password",
            Plugin::CachingSha2 => "caching_sha2_password",
            Plugin::Ed25519 => "client_ed25519",
        }
    }

    /// The response that proves knowledge of `password` for this challenge.
    #[must_use]
    pub fn proof(self, password: &[u8], challenge: &[u8]) -> Vec<u8> {
        match self {
            // Without a password the response is empty.
            Plugin::Native | Plugin::CachingSha2 if password.is_empty() => Vec::new(),
            Plugin::Native => native(password, challenge),
            Plugin::CachingSha2 => caching_sha2(password, challenge),
            Plugin::Ed25519 => ed25519(password, challenge),
        }
    }
}

/// `SHA1(password) XOR SHA1(challenge SHA1(SHA1(password)))`.
fn native(password: &[u8], challenge: &[u8]) -> Vec<u8> {
    let once = Sha1::digest(password);
    let mask = Sha1::new().chain_update(challenge).chain_update(Sha1::digest(once)).finalize();
    masked(&once, &mask)
}

/// `SHA256(password) XOR SHA256(SHA256(SHA256(password)) challenge)`.
fn caching_sha2(password: &[u8], challenge: &[u8]) -> Vec<u8> {
    let once = Sha256::digest(password);
    let mask = Sha256::new().chain_update(Sha256::digest(once)).chain_update(challenge).finalize();
    masked(&once, &mask)
}

fn masked(text: &[u8], mask: &[u8]) -> Vec<u8> {
    text.iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect()
}

/// RFC 8032 section 5.1.6, with a password of any length in place of the 32-byte key.
fn ed25519(password: &[u8], challenge: &[u8]) -> Vec<u8> {
    let expanded: [u8; 64] = Sha512::digest(password).into();
    let (mut low, mut high) = ([0; 32], [0; 32]);
    low.copy_from_slice(&expanded[..32]);
    high.copy_from_slice(&expanded[32..]);
    let key = Scalar::from_bytes_mod_order(clamp_integer(low));
    let public = EdwardsPoint::mul_base(&key).compress();
    let nonce = hashed(&[&high, challenge]);
    let commitment = EdwardsPoint::mul_base(&nonce).compress();
    let challenge = hashed(&[commitment.as_bytes(), public.as_bytes(), challenge]);
    let mut proof = commitment.as_bytes().to_vec();
    proof.extend_from_slice((nonce + challenge * key).as_bytes());
    proof
}

fn hashed(parts: &[&[u8]]) -> Scalar {
    let mut hash = Sha512::new();
    parts.iter().for_each(|part| hash.update(part));
    Scalar::from_bytes_mod_order_wide(&hash.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn unhex(text: &str) -> Vec<u8> {
        let digits = text.as_bytes().chunks(2);
        digits
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    }

    /// Test 2 of RFC 8032 section 7.1: a 32-byte key is hashed in the same way as a password.
    #[test]
    fn ed25519_signs_as_the_rfc_does() {
        let key = unhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb");
        let proof = Plugin::Ed25519.proof(&key, &[0x72]);
        assert_eq!(
            hex(&proof),
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
             085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
        );
    }

    /// The server's check of a response: it only knows `SHA1(SHA1(password))`.
    #[test]
    fn a_native_proof_is_verified_by_the_double_hash() {
        let challenge = b"abcdefghijklmnopqrst";
        let stored = Sha1::digest(Sha1::digest(b"secret"));
        let mask = Sha1::new().chain_update(challenge).chain_update(stored).finalize();
        let once = masked(&Plugin::Native.proof(b"secret", challenge), &mask);
        assert_eq!(Sha1::digest(once), stored);
    }

    #[test]
    fn a_sha2_proof_is_verified_by_the_double_hash() {
        let challenge = b"abcdefghijklmnopqrst";
        let stored = Sha256::digest(Sha256::digest(b"secret"));
        let mask = Sha256::new().chain_update(stored).chain_update(challenge).finalize();
        let once = masked(&Plugin::CachingSha2.proof(b"secret", challenge), &mask);
        assert_eq!(Sha256::digest(once), stored);
    }

    #[test]
    fn no_password_is_proved_by_nothing() {
        assert!(Plugin::Native.proof(b"", b"x").is_empty());
        assert_eq!(Plugin::by_name("mysql_old_password"), None);
    }
}
