//! Formats numbers, times, bars and sparklines as text.
//!
//! Text from other sources (hosts, addresses, tags) is sanitised for the terminal here. Widths are in
//! characters. The layout is in `picture`.

/// Blocks of increasing height.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The same for a terminal that supports only ASCII.
const SIGNS: [char; 8] = ['.', '.', ':', '-', '=', '+', '*', '#'];

/// A number with a comma after each three digits.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with two decimals at most, and none from 100 on.
pub fn number(value: f64) -> String {
    match value {
        value if value >= 100.0 => count(value.round() as u64),
        value if value >= 10.0 => format!("{value:.1}"),
        value if value > 0.0 => format!("{value:.2}"),
        _ => "0".to_owned(),
    }
}

/// A rate per second.
pub fn per_second(value: f64) -> String {
    format!("{}/s", number(value))
}

/// A fraction, in percent.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A size in bytes, with units in powers of 1,024.
pub fn bytes(value: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut at) = (value as f64, 0);
    while value >= 1024.0 && at + 1 < units.len() {
        value /= 1024.0;
        at += 1;
    }
    format!("{} {}", number(value), units[at])
}

/// A duration in milliseconds, or in seconds from 1,000 ms on.
pub fn milliseconds(ms: f64) -> String {
    if ms >= 1000.0 { format!("{} s", number(ms / 1000.0)) } else { format!("{} ms", number(ms)) }
}

/// A duration in its two largest units.
pub fn duration(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, ..) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

/// A sparkline; the newest value is last. The scale is from zero to the largest value, at least `top`.
pub fn blocks(values: &[Option<f64>], top: f64, utf8: bool) -> String {
    let most = values.iter().flatten().fold(top, |most, value| most.max(*value));
    let signs = if utf8 { &BLOCKS } else { &SIGNS };
    let block = |value: &Option<f64>| match value {
        Some(value) if most > 0.0 => signs[((value / most * 7.0).round() as usize).min(7)],
        Some(_) => signs[0],
        None => ' ',
    };
    values.iter().map(block).collect()
}

/// A bar of `width` characters, filled to the fraction `share`.
pub fn bar(share: f64, width: usize, utf8: bool) -> String {
    let full = (share.clamp(0.0, 1.0) * width as f64).round() as usize;
    let (on, off) = if utf8 { ("█", "░") } else { ("#", ".") };
    on.repeat(full) + &off.repeat(width - full)
}

/// Sanitises text from other sources: control characters, and characters that change the text
/// direction, become question marks.
pub fn harmless(text: &str) -> String {
    let turns = |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    text.chars().map(|c| if c.is_control() || turns(c) { '?' } else { c }).collect()
}

/// Cuts a text to `width` characters, with a mark at the end if it was cut.
pub fn cut(text: &str, width: usize, utf8: bool) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mark = if utf8 { '…' } else { '~' };
    text.chars().take(width.saturating_sub(1)).chain([mark]).take(width).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_text() {
        assert_eq!(count(0), "0");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!([0.0, 0.5, 12.34, 1234.5].map(number), ["0", "0.50", "12.3", "1,235"]);
        assert_eq!(bytes(1536), "1.50 KiB");
        assert_eq!([1.5, 1500.0].map(milliseconds), ["1.50 ms", "1.50 s"]);
        assert_eq!(
            [5, 65, 3700, 90_000].map(duration),
            ["5 s", "1 min 5 s", "1 h 1 min", "1 d 1 h"]
        );
    }

    #[test]
    fn bars_and_blocks() {
        assert_eq!(bar(0.5, 4, true), "██░░");
        assert_eq!(bar(7.0, 4, false), "####");
        assert_eq!(blocks(&[Some(0.0), None, Some(2.0)], 0.0, true), "▁ █");
        assert_eq!(blocks(&[Some(0.0)], 0.0, false), ".");
    }

    #[test]
    fn nothing_commands_the_terminal() {
        assert_eq!(harmless("a\u{1b}[2Jb\r\n\u{9b}1mc\u{202e}"), "a?[2Jb???1mc?");
        assert_eq!(cut("abcdef", 4, true), "abc…");
        assert_eq!(cut("abcd", 4, true), "abcd");
        assert_eq!(cut("abcd", 0, true), "");
    }
}
