//! Random values from the system.
//!
//! Invariant: a failure of the system's generator is an error or the middle of a range, and never a fixed secret.
//! Not here: keys, which rcgen and instant-acme make.

use ring::rand::{SecureRandom, SystemRandom};

/// Fills bytes at random.
///
/// # Errors
/// The system has no random bytes.
pub fn fill(bytes: &mut [u8]) -> Result<(), String> {
    SystemRandom::new().fill(bytes).map_err(|_| "the system has no random bytes".to_owned())
}

/// 32 random hexadecimal digits.
///
/// # Errors
/// As for [`fill`].
pub fn random_hex() -> Result<String, String> {
    let mut bytes = [0; 16];
    fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A random number from 0 to 1.
pub fn random_share() -> f64 {
    let mut bytes = [0; 4];
    match fill(&mut bytes) {
        Ok(()) => f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX),
        Err(_) => 0.5,
    }
}
