//! Durations in configuration files: `1.5s`, `10m`. The only parser of durations in the configuration.
//!
//! Limited to ten years, so that sums of durations cannot overflow. A number without a unit is an error.

use std::time::Duration;

/// Reads a duration: a number with the unit `ms`, `s`, `m`, `h` or `d`, at most ten years.
///
/// # Errors
/// A message that shows valid durations.
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
    fn durations() {
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("1.5s"), Ok(Duration::from_millis(1_500)));
        assert_eq!(parse_duration("1h"), Ok(Duration::from_secs(3_600)));
        for wrong in ["", "5", "s", "-1s", "1y", "NaNs", "999999999h"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }
}
