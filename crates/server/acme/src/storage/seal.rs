//! The encryption of values outside of this machine: AES-256-GCM with a random nonce for each value.
//!
//! Invariant: a sealed value opens only under the key for which it was sealed, so that values cannot be exchanged
//! for each other. With random nonces of 96 bits, a key is good for 2^32 values (NIST SP 800-38D section 8.3).

use crate::randomness;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

/// The key that seals and opens values.
pub struct Seal(Option<LessSafeKey>);

impl Seal {
    /// The seal with this key of 32 bytes.
    pub fn new(key: &[u8]) -> Seal {
        Seal(UnboundKey::new(&AES_256_GCM, key).ok().map(LessSafeKey::new))
    }

    /// Seals a value for this key.
    ///
    /// # Errors
    /// The seal has no valid key, or the system has no random bytes.
    pub fn close(&self, key: &[u8], value: &[u8]) -> Result<Vec<u8>, String> {
        let seal = self.0.as_ref().ok_or("acme.seal_key_file: not 32 bytes")?;
        let mut nonce = [0; NONCE_LEN];
        randomness::fill(&mut nonce)?;
        let mut sealed = value.to_vec();
        let nonce_of = Nonce::assume_unique_for_key(nonce);
        seal.seal_in_place_append_tag(nonce_of, Aad::from(key), &mut sealed)
            .map_err(|_| "a value cannot be sealed".to_owned())?;
        Ok([&nonce[..], &sealed].concat())
    }

    /// Opens the sealed value of this key.
    ///
    /// # Errors
    /// It was sealed with another key, for another key, or was changed: a sentence with the remedy.
    pub fn open(&self, key: &[u8], sealed: &[u8]) -> Result<Vec<u8>, String> {
        let open = || {
            let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN)?;
            let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
            let mut bytes = sealed.to_vec();
            let value = self.0.as_ref()?.open_in_place(nonce, Aad::from(key), &mut bytes).ok()?;
            Some(value.to_vec())
        };
        let why = "cannot be opened: acme.seal_key_file must be the same for all nodes";
        open().ok_or_else(|| format!("{}: {why}", String::from_utf8_lossy(key)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_opens_only_with_its_keys() {
        let seal = Seal::new(&[7; 32]);
        let sealed = seal.close(b"a", b"secret").expect("sealed");
        assert!(!sealed.windows(6).any(|window| window == b"secret"));
        assert_eq!(seal.open(b"a", &sealed).expect("opened"), b"secret");
        assert_ne!(seal.close(b"a", b"secret").expect("sealed"), sealed, "another nonce");
        assert!(seal.open(b"b", &sealed).expect_err("another name").starts_with("b: "));
        assert!(Seal::new(&[8; 32]).open(b"a", &sealed).is_err());
        let mut changed = sealed.clone();
        *changed.last_mut().expect("bytes") ^= 1;
        for wrong in [&changed[..], &sealed[..5], b""] {
            assert!(seal.open(b"a", wrong).is_err());
        }
        assert!(Seal::new(b"short").close(b"a", b"x").is_err());
    }
}
