//! Sizes (`256M`) and durations (`1.5s`) as people write them. Sizes count in powers of 1,024, as
//! memory does; durations need a unit, because a bare number would be read as seconds by some and as
//! milliseconds by others. Both are bounded.

use std::time::Duration;

/// Reads a size: a number with `K`, `M`, `G` or `T` (powers of 1,024) behind it, in bytes without.
///
/// # Errors
/// A sentence that says what would have been understood.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no size; write for instance 64K, 256M or 2G");
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

/// Reads a duration: a number with `ms`, `s`, `m`, `h` or `d` behind it.
///
/// # Errors
/// A sentence that says what would have been understood.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no duration; write for instance 500ms, 2s, 10m or 1h");
    let trimmed = text.trim();
    let unit_at = trimmed.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(wrong)?;
    let number: f64 = trimmed[..unit_at].trim().parse().map_err(|_| wrong())?;
    let seconds = match &trimmed[unit_at..] {
        "ms" => number / 1_000.0,
        "s" => number,
        "m" => number * 60.0,
        "h" => number * 3_600.0,
        "d" => number * 86_400.0,
        _ => return Err(wrong()),
    };
    let bounded = (0.0..=315_360_000.0).contains(&seconds);
    if bounded { Ok(Duration::from_secs_f64(seconds)) } else { Err(wrong()) }
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

    #[test]
    fn durations() {
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("1.5s"), Ok(Duration::from_millis(1_500)));
        assert_eq!(parse_duration("1h"), Ok(Duration::from_secs(3_600)));
        for wrong in ["", "5", "s", "-1s", "1y", "NaNs", "999999999h"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }
}
