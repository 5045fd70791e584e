//! The placeholders in a scenario's text, which are replaced when a line is executed:
//!
//! | placeholder | value |
//! |---|---|
//! | `{now}`, `{now+10s}`, `{now-1d}` | a time of the subject's clock, as an IMF-fixdate (RFC 9110 section 5.6.7) |
//! | `{5000 bytes}` | this number of letters, the same in each place |
//! | `{x*70000}`, `{t# *3}` | a text, repeated; `#` in it is the repetition's number: `t1 t2 t3 ` |
//! | `{origin}` | the address of the scripted origin |
//! | `{$name}` | a header value saved before |
//!
//! A brace before a quote, a space or another brace is literal, so that JSON can be written without escapes.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

/// The maximum length in bytes of a text with its placeholders replaced.
const BYTES_MAX: usize = 16 << 20;

/// The values of the placeholders.
pub(crate) struct Blanks {
    /// The subject's clock, in milliseconds since the Unix epoch.
    pub(crate) now_ms: u64,
    /// The address of the scripted origin.
    pub(crate) origin: SocketAddr,
    /// The header values saved by `{$name}`.
    pub(crate) kept: HashMap<String, Vec<u8>>,
}

/// A placeholder.
#[derive(Debug, PartialEq, Eq)]
enum Blank<'t> {
    Now(i64),
    Bytes(usize),
    Times(&'t str, usize),
    Origin,
    Kept(&'t str),
}

/// Checks the placeholders in `text`. The error describes the first invalid one.
pub(crate) fn check(text: &[u8]) -> Result<(), String> {
    pieces(text).map(|_| ())
}

/// Replaces the placeholders in `text`. A name that was not saved is an error.
pub(crate) fn fill(text: &[u8], blanks: &Blanks) -> Result<Vec<u8>, String> {
    let mut filled = Vec::with_capacity(text.len());
    for piece in pieces(text)? {
        match piece {
            Ok(literal) => filled.extend_from_slice(literal),
            Err(Blank::Now(seconds)) => {
                let now = i64::try_from(blanks.now_ms / 1000).unwrap_or(i64::MAX);
                filled.extend_from_slice(fixdate(now.saturating_add(seconds)).as_bytes());
            }
            Err(Blank::Bytes(count)) => filled.extend(letters(count)),
            Err(Blank::Times(text, count)) => {
                if !text.contains('#') {
                    filled.extend_from_slice(text.repeat(count).as_bytes());
                    continue;
                }
                for number in 1..=count {
                    filled.extend_from_slice(text.replace('#', &number.to_string()).as_bytes());
                }
            }
            Err(Blank::Origin) => filled.extend_from_slice(blanks.origin.to_string().as_bytes()),
            Err(Blank::Kept(name)) => match blanks.kept.get(name) {
                Some(value) => filled.extend_from_slice(value),
                None => return Err(format!("nothing was kept as {{${name}}} before")),
            },
        }
    }
    Ok(filled)
}

/// The name in a text that consists only of `{$name}`.
pub(crate) fn kept_name(text: &str) -> Option<&str> {
    text.strip_prefix("{$").and_then(|rest| rest.strip_suffix('}'))
}

/// Parses `90s`, `250ms`, `2m`, `3h` or `1d`.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_lowercase());
    let number: u64 = digits.parse().ok()?;
    let unit_ms = match &text[digits.len()..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.checked_mul(unit_ms).map(Duration::from_millis)
}

/// Splits `text` into literal pieces (`Ok`) and placeholders (`Err`).
fn pieces(text: &[u8]) -> Result<Vec<Result<&[u8], Blank<'_>>>, String> {
    let mut pieces = Vec::new();
    let (mut literal, mut at) = (0, 0);
    while let Some(open) = text[at..].iter().position(|&b| b == b'{').map(|p| p + at) {
        at = open + 1;
        if matches!(text.get(at), None | Some(b'"' | b'\'' | b'}' | b'{' | b' ' | b'\n')) {
            continue;
        }
        let Some(close) = text[at..].iter().position(|&b| b == b'}').map(|p| p + at) else {
            return Err("a blank without its closing brace".into());
        };
        let inside = std::str::from_utf8(&text[at..close]).map_err(|e| e.to_string())?;
        let blank = blank(inside).ok_or_else(|| {
            format!("{{{inside}}} is no blank: there are {{now+10s}}, {{500 bytes}}, {{x*500}}, {{origin}} and {{$name}}")
        })?;
        pieces.push(Ok(&text[literal..open]));
        pieces.push(Err(blank));
        at = close + 1;
        literal = at;
    }
    pieces.push(Ok(&text[literal..]));
    Ok(pieces)
}

fn blank(inside: &str) -> Option<Blank<'_>> {
    if let Some(name) = inside.strip_prefix('$') {
        return Some(Blank::Kept(name));
    }
    if inside == "origin" {
        return Some(Blank::Origin);
    }
    if let Some(shift) = inside.strip_prefix("now") {
        let seconds = |text| duration(text).and_then(|d| i64::try_from(d.as_secs()).ok());
        return match shift.split_at_checked(1) {
            None => Some(Blank::Now(0)),
            Some(("+", rest)) => seconds(rest).map(Blank::Now),
            Some(("-", rest)) => seconds(rest).map(|s| Blank::Now(-s)),
            Some(_) => None,
        };
    }
    if let Some(count) = inside.strip_suffix(" bytes") {
        return count.parse().ok().filter(|&n| n <= BYTES_MAX).map(Blank::Bytes);
    }
    let (text, count) = inside.rsplit_once('*')?;
    let count: usize = count.parse().ok()?;
    (text.len().checked_mul(count)? <= BYTES_MAX).then_some(Blank::Times(text, count))
}

/// Letters in lines of 64, so that a page of them is readable.
fn letters(count: usize) -> impl Iterator<Item = u8> {
    let letter = |n: usize| match n % 64 {
        63 => b'\n',
        column => b'a' + u8::try_from((column + n / 64) % 26).unwrap_or(0),
    };
    (0..count).map(letter)
}

/// An IMF-fixdate (RFC 9110 section 5.6.7) from seconds since the Unix epoch.
fn fixdate(seconds: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (days, time) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Converts days to a date with eras of 400 years that begin on 1 March.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12;
    let year = year_of_era + era * 400 + i64::from(month < 2);
    let weekday = DAYS[usize::try_from(days.rem_euclid(7)).unwrap_or(0)];
    let month = MONTHS[usize::try_from(month).unwrap_or(0)];
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> Result<String, String> {
        let kept = HashMap::from([("tag".to_owned(), b"\"1\"".to_vec())]);
        let origin = "127.0.0.1:7".parse().unwrap();
        let blanks = Blanks { now_ms: 784_111_777_900, origin, kept };
        fill(text.as_bytes(), &blanks).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn dates_are_imf_fixdates() {
        assert_eq!(filled("{now}").unwrap(), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(filled("{now+1d}").unwrap(), "Mon, 07 Nov 1994 08:49:37 GMT");
        assert_eq!(fixdate(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(fixdate(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(fixdate(1_735_689_599), "Tue, 31 Dec 2024 23:59:59 GMT");
    }

    #[test]
    fn blanks_are_filled_and_json_is_left_alone() {
        assert_eq!(filled("x{ab*3}y{$tag}").unwrap(), "xabababy\"1\"");
        assert_eq!(filled("a {t:# *3}b").unwrap(), "a t:1 t:2 t:3 b");
        assert_eq!(filled("{100 bytes}").unwrap().len(), 100);
        assert_eq!(filled(r#"{"tags":["a"],"x":{}}"#).unwrap(), r#"{"tags":["a"],"x":{}}"#);
        assert_eq!(filled("http://{origin}/").unwrap(), "http://127.0.0.1:7/");
    }

    #[test]
    fn an_unknown_placeholder_is_refused_by_name() {
        assert!(filled("{5000 byte}").unwrap_err().contains("is no blank"));
        assert!(filled("{$other}").unwrap_err().contains("{$other}"));
        assert!(filled("{now").unwrap_err().contains("closing brace"));
        assert!(check(b"{x*99999999999}").is_err());
    }
}
