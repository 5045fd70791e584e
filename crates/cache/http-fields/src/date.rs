//! HTTP dates in the three formats of RFC 9110 §5.6.7. Names are compared without regard to case, and any
//! zone except GMT is refused, as RFC 9111 §4.2 requires of caches. The weekday must be valid, but is not
//! checked against the date.
//!
//! Invariant: reading never panics. Years range from 1 to 9999; a date before 1970 is read as the Unix
//! epoch, the earliest time that a [`Timestamp`] can represent.

use crate::time::Timestamp;

const DAYS: [&[u8]; 7] =
    [b"Monday", b"Tuesday", b"Wednesday", b"Thursday", b"Friday", b"Saturday", b"Sunday"];
const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// Reads a date; `None` if it has none of the three formats. `now` determines the century of a two-digit
/// year: a year more than fifty years ahead is in the past (RFC 9110 §5.6.7).
pub fn parse(value: &[u8], now: Timestamp) -> Option<Timestamp> {
    let mut text = Reader { rest: value };
    let date = match value.iter().position(|byte| *byte == b',') {
        Some(3) => text.imf_fixdate(),
        Some(_) => text.rfc850(now),
        None => text.asctime(),
    }?;
    text.rest.is_empty().then_some(date)
}

/// Writes a date as IMF-fixdate (RFC 9110 §5.6.7), 29 bytes. Fractions of a second are cut off, and later
/// years than 9999 become the end of 9999.
pub fn format(date: Timestamp) -> [u8; 29] {
    let seconds = date.seconds().min(253_402_300_799);
    let (days, time) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let mut out = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    out[..3].copy_from_slice(&DAYS[(days as usize + 3) % 7][..3]); // 1 January 1970 was a Thursday.
    put(&mut out[5..7], day);
    out[8..11].copy_from_slice(MONTHS[month as usize - 1]);
    put(&mut out[12..16], year);
    put(&mut out[17..19], time / 3600);
    put(&mut out[20..22], time / 60 % 60);
    put(&mut out[23..25], time % 60);
    out
}

fn put(place: &mut [u8], mut number: u64) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    /// `Sun, 06 Nov 1994 08:49:37 GMT`
    fn imf_fixdate(&mut self) -> Option<Timestamp> {
        self.day_name(3)?;
        self.literal(b", ")?;
        let day = self.number(2)?;
        self.literal(b" ")?;
        let month = self.month()?;
        self.literal(b" ")?;
        let year = self.number(4)?;
        self.literal(b" ")?;
        let time = self.time()?;
        self.literal(b" GMT")?;
        point(year, month, day, time)
    }

    /// `Sunday, 06-Nov-94 08:49:37 GMT`
    fn rfc850(&mut self, now: Timestamp) -> Option<Timestamp> {
        let comma = self.rest.iter().position(|byte| *byte == b',')?;
        self.day_name(comma)?;
        self.literal(b", ")?;
        let day = self.number(2)?;
        self.literal(b"-")?;
        let month = self.month()?;
        self.literal(b"-")?;
        let short_year = self.number(2)?;
        self.literal(b" ")?;
        let time = self.time()?;
        self.literal(b" GMT")?;
        let this_year = civil(now.seconds().min(253_402_300_799) / 86_400).0;
        let mut year = this_year - this_year % 100 + short_year;
        if year > this_year + 50 {
            year -= 100;
        } else if year + 50 <= this_year {
            year += 100; // The next century begins within the next fifty years.
        }
        point(year, month, day, time)
    }

    /// `Sun Nov  6 08:49:37 1994`
    fn asctime(&mut self) -> Option<Timestamp> {
        self.day_name(3)?;
        self.literal(b" ")?;
        let month = self.month()?;
        self.literal(b" ")?;
        let day = match self.rest {
            [b' ', ..] => {
                self.literal(b" ")?;
                self.number(1)?
            }
            _ => self.number(2)?,
        };
        self.literal(b" ")?;
        let time = self.time()?;
        self.literal(b" ")?;
        let year = self.number(4)?;
        point(year, month, day, time)
    }

    fn take(&mut self, length: usize) -> Option<&[u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    fn literal(&mut self, expected: &[u8]) -> Option<()> {
        self.take(expected.len())?.eq_ignore_ascii_case(expected).then_some(())
    }

    fn day_name(&mut self, length: usize) -> Option<()> {
        let name = self.take(length)?;
        let known = |day: &&[u8]| match length {
            3 => day[..3].eq_ignore_ascii_case(name),
            _ => day.eq_ignore_ascii_case(name),
        };
        DAYS.iter().any(known).then_some(())
    }

    fn number(&mut self, length: usize) -> Option<u64> {
        crate::fields::digits(self.take(length)?, 9999)
    }

    fn month(&mut self) -> Option<u64> {
        let name = self.take(3)?;
        Some(MONTHS.iter().position(|month| month.eq_ignore_ascii_case(name))? as u64 + 1)
    }

    /// Seconds since midnight; a leap second is allowed (RFC 9110 §5.6.7).
    fn time(&mut self) -> Option<u64> {
        let hour = self.number(2)?;
        self.literal(b":")?;
        let minute = self.number(2)?;
        self.literal(b":")?;
        let second = self.number(2)?;
        (hour < 24 && minute < 60 && second <= 60).then_some(hour * 3600 + minute * 60 + second)
    }
}

fn point(year: u64, month: u64, day: u64, time: u64) -> Option<Timestamp> {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let length = match month {
        2 => 28 + u64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if year == 0 || day == 0 || day > length {
        return None;
    }
    let Some(days) = days_since_epoch(year, month, day) else { return Some(Timestamp(0)) };
    Some(Timestamp::from_seconds(days * 86_400 + time))
}

/// Days from 1 January 1970 to a date of the Gregorian calendar; `None` before it.
fn days_since_epoch(year: u64, month: u64, day: u64) -> Option<u64> {
    // Years that begin in March: the leap day is then the last day, and month lengths repeat every five
    // months.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    days.checked_sub(719_468)
}

/// The year, month and day of the date that is this many days after 1 January 1970.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let year = era * 400 + year_of_era;
    if month < 10 { (year, month + 3, day) } else { (year + 1, month - 9, day) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_seconds(1_790_000_000); // September 2026.

    fn seconds(text: &str) -> Option<u64> {
        parse(text.as_bytes(), NOW).map(Timestamp::seconds)
    }

    #[test]
    fn the_three_formats() {
        // RFC 9110 §5.6.7.
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "sun, 06 nov 1994 08:49:37 gmt", // RFC 9111 §4.2.
        ] {
            assert_eq!(seconds(text), Some(784_111_777), "{text}");
        }
        assert_eq!(seconds("Wed Nov 16 08:49:37 1994"), Some(784_975_777));
    }

    #[test]
    fn other_texts_are_no_dates() {
        for text in [
            "",
            "0",
            "-1",
            "784111777",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 06 Nov 1994 08:49:37 +0000",
            "Sun, 06 Nov 1994 08:49:37 EST",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49:37 GMT ",
            "Sun,  06 Nov 1994 08:49:37 GMT",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 94 08:49:37 GMT",
            "Sun, 06 Nov 1994 8:49:37 GMT",
            "Sun, 06 Nov 1994 08.49.37 GMT",
            "Sun, 06-Nov-1994 08:49:37 GMT",
            "Sun 06 Nov 1994 08:49:37 GMT",
            "Son, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06 Nov 1994 08:49:37 GMT",
            "Sun, 31 Feb 1994 08:49:37 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 0000 08:49:37 GMT",
            "1994-11-06T08:49:37Z",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    #[test]
    fn two_digit_years_lie_at_most_fifty_years_ahead() {
        let year = |text: &str| seconds(text).map(|s| civil(s / 86_400).0);
        assert_eq!(year("Sunday, 06-Nov-76 08:49:37 GMT"), Some(2076));
        assert_eq!(year("Sunday, 06-Nov-77 08:49:37 GMT"), Some(1977));
        let late = Timestamp::from_seconds(3_755_000_000); // 2088
        let read = parse(b"Sunday, 06-Nov-05 08:49:37 GMT", late).expect("a date");
        assert_eq!(civil(read.seconds() / 86_400).0, 2105);
    }

    #[test]
    fn the_far_ends() {
        assert_eq!(seconds("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(seconds("Wed, 31 Dec 1969 23:59:59 GMT"), Some(0));
        assert_eq!(seconds("Sat, 01 Jan 0001 00:00:00 GMT"), Some(0));
        assert_eq!(seconds("Fri, 31 Dec 9999 23:59:59 GMT"), Some(253_402_300_799));
        assert_eq!(&format(Timestamp(u64::MAX)), b"Fri, 31 Dec 9999 23:59:59 GMT");
        assert_eq!(seconds("Sat, 31 Dec 2016 23:59:60 GMT"), Some(1_483_228_800));
    }

    #[test]
    fn a_written_date_can_be_read() {
        assert_eq!(&format(Timestamp::from_seconds(784_111_777)), b"Sun, 06 Nov 1994 08:49:37 GMT");
        for days in (0..200_000u64).step_by(37) {
            let date = Timestamp::from_seconds(days * 86_400 + days % 86_400);
            assert_eq!(parse(&format(date), NOW), Some(date));
        }
    }
}
