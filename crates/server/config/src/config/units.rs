//! Parses sizes (`256M`) and durations (`1.5s`). Sizes use powers of 1,024, as for memory.
//! Durations need a unit, because a bare number could be read as seconds or as milliseconds. Both
//! are bounded.

pub use site_rules::parse_duration;

/// Parses a size in bytes: a number, optionally with `K`, `M`, `G` or `T` (powers of 1,024).
///
/// # Errors
/// A sentence with the accepted forms.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no size; write for example 64K, 256M or 2G");
    let trimmed = text.trim().trim_end_matches(['B', 'b']).trim_end_matches('i');
    let (digits, factor) = match trimmed.char_indices().last().ok_or_else(wrong)? {
        (at, 'k' | 'K') => (&trimmed[..at], 1u64 << 10),
        (at, 'm' | 'M') => (&trimmed[..at], 1 << 20),
        (at, 'g' | 'G') => (&trimmed[..at], 1 << 30),
        (at, 't' | 'T') => (&trimmed[..at], 1 << 40),
        _ => (trimmed, 1),
    };
    let number: u64 = digits.trim().parse().map_err(|_| wrong())?;
    number.checked_mul(factor).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(parse_bytes("64K"), Ok(65_536));
        assert_eq!(parse_bytes("256MB"), Ok(256 << 20));
        assert_eq!(parse_bytes("2GiB"), Ok(2 << 30));
        assert_eq!(parse_bytes("12"), Ok(12));
        for wrong in ["", "M", "many", "-1M", "99999999999T"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }
}
