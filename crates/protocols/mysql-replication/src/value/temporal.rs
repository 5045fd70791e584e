//! Dates and times as encoded in the rows of both servers, and as SQL writes them.
//!
//! The formats with a fraction (`TIME2`, `DATETIME2`, `TIMESTAMP2`) are big-endian and have an offset, so that
//! they sort as bytes. The old formats do not. Source: `my_time.cc` and `compat56.cc` of the servers. Values
//! that no calendar has (month or day zero) are valid, because SQL allows them.

use mysql_wire::Refusal;
use mysql_wire::reader::Reader;
use std::fmt;

/// A date; any part may be 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Date {
    /// The year, from 0 to 9999.
    pub year: u16,
    /// The month, from 0 to 12.
    pub month: u8,
    /// The day, from 0 to 31.
    pub day: u8,
}

/// A duration, or a time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Time {
    /// Whether the duration is negative.
    pub is_negative: bool,
    /// The hours, from 0 to 838.
    pub hours: u16,
    /// The minutes, from 0 to 59.
    pub minutes: u8,
    /// The seconds, from 0 to 59.
    pub seconds: u8,
    /// The fraction in microseconds.
    pub microseconds: u32,
    /// The number of fractional digits of the column.
    pub digits: u8,
}

/// A date and a time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DateTime {
    /// The date of the value.
    pub date: Date,
    /// The time of day.
    pub time: Time,
}

/// A point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Timestamp {
    /// Seconds since 1970 in UTC; 0 is SQL's zero timestamp.
    pub seconds: u32,
    /// The fraction in microseconds.
    pub microseconds: u32,
    /// The number of fractional digits of the column.
    pub digits: u8,
}

/// The number of bytes of a fraction with this number of digits.
pub(super) fn fraction_len(digits: u8) -> usize {
    usize::from(digits.min(6)).div_ceil(2)
}

fn fraction(reader: &mut Reader<'_>, digits: u8) -> Result<u32, Refusal> {
    let len = fraction_len(digits);
    let microseconds = reader.uint_big(len)? as u32 * [0, 10_000, 100, 1][len];
    if microseconds > 999_999 { Err(Refusal::BadValue) } else { Ok(microseconds) }
}

impl Date {
    pub(super) fn of_row(reader: &mut Reader<'_>) -> Result<Date, Refusal> {
        let packed = reader.uint(3)? as u32;
        Ok(Date {
            year: (packed >> 9) as u16,
            month: (packed >> 5 & 15) as u8,
            day: (packed & 31) as u8,
        })
    }
}

impl Time {
    fn of_day(packed: u64, microseconds: u32, digits: u8) -> Time {
        Time {
            is_negative: false,
            hours: (packed >> 12 & 0x3ff) as u16,
            minutes: (packed >> 6 & 63) as u8,
            seconds: (packed & 63) as u8,
            microseconds,
            digits,
        }
    }

    /// Decodes `TIME2`: three bytes and the fraction. For negative values, both together are negative.
    pub(super) fn of_row(reader: &mut Reader<'_>, digits: u8) -> Result<Time, Refusal> {
        let len = fraction_len(digits);
        let bits = 8 * (3 + len) as u32;
        let packed = reader.uint_big(3 + len)? as i64 - (1 << (bits - 1));
        let magnitude = packed.unsigned_abs();
        let part = magnitude & ((1 << (8 * len)) - 1);
        let microseconds = part as u32 * [0, 10_000, 100, 1][len];
        if microseconds > 999_999 {
            return Err(Refusal::BadValue);
        }
        let mut time = Time::of_day(magnitude >> (8 * len), microseconds, digits);
        time.is_negative = packed < 0;
        Ok(time)
    }

    /// Decodes the old `TIME`: a decimal number `HHMMSS`.
    pub(super) fn of_old_row(reader: &mut Reader<'_>) -> Result<Time, Refusal> {
        let bits = reader.uint(3)? as i32;
        // Sign-extends the three bytes.
        let number = (bits << 8) >> 8;
        let magnitude = number.unsigned_abs();
        Ok(Time {
            is_negative: number < 0,
            hours: (magnitude / 10_000) as u16,
            minutes: (magnitude / 100 % 100) as u8,
            seconds: (magnitude % 100) as u8,
            microseconds: 0,
            digits: 0,
        })
    }
}

impl DateTime {
    /// Decodes `DATETIME2`.
    pub(super) fn of_row(reader: &mut Reader<'_>, digits: u8) -> Result<DateTime, Refusal> {
        let packed = reader.uint_big(5)?.checked_sub(1 << 39).ok_or(Refusal::BadValue)?;
        let months = packed >> 22;
        let date = Date {
            year: (months / 13) as u16,
            month: (months % 13) as u8,
            day: (packed >> 17 & 31) as u8,
        };
        let time = Time::of_day(packed & 0x1_ffff, fraction(reader, digits)?, digits);
        Ok(DateTime { date, time })
    }

    /// Decodes the old `DATETIME`: a decimal number `YYYYMMDDHHMMSS`.
    pub(super) fn of_old_row(reader: &mut Reader<'_>) -> Result<DateTime, Refusal> {
        let number = reader.u64()?;
        if number > 99_991_231_235_959 {
            return Err(Refusal::BadValue);
        }
        let part = |by: u64| (number / by % 100) as u8;
        let date = Date {
            year: (number / 10_000_000_000) as u16,
            month: part(100_000_000),
            day: part(1_000_000),
        };
        let time = Time {
            is_negative: false,
            hours: u16::from(part(10_000)),
            minutes: part(100),
            seconds: part(1),
            microseconds: 0,
            digits: 0,
        };
        Ok(DateTime { date, time })
    }
}

impl Timestamp {
    /// Decodes `TIMESTAMP2`.
    pub(super) fn of_row(reader: &mut Reader<'_>, digits: u8) -> Result<Timestamp, Refusal> {
        let seconds = reader.uint_big(4)? as u32;
        Ok(Timestamp { seconds, microseconds: fraction(reader, digits)?, digits })
    }

    /// Decodes the old `TIMESTAMP`.
    pub(super) fn of_old_row(reader: &mut Reader<'_>) -> Result<Timestamp, Refusal> {
        Ok(Timestamp { seconds: reader.u32()?, microseconds: 0, digits: 0 })
    }

    /// Date and time of day in UTC.
    #[must_use]
    pub fn utc(&self) -> DateTime {
        let (days, second) = (self.seconds / 86_400, self.seconds % 86_400);
        let date = match self.seconds {
            0 => Date { year: 0, month: 0, day: 0 },
            _ => date_of_day(days),
        };
        let time = Time {
            is_negative: false,
            hours: (second / 3600) as u16,
            minutes: (second / 60 % 60) as u8,
            seconds: (second % 60) as u8,
            microseconds: self.microseconds,
            digits: self.digits,
        };
        DateTime { date, time }
    }
}

/// The date of a day number since 1970, computed with years that begin in March and eras of 400 years.
fn date_of_day(days: u32) -> Date {
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u32::from(month <= 2);
    Date { year: year as u16, month: month as u8, day: day as u8 }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_negative { "-" } else { "" };
        write!(f, "{sign}{:02}:{:02}:{:02}", self.hours, self.minutes, self.seconds)?;
        match usize::from(self.digits.min(6)) {
            0 => Ok(()),
            digits => write!(f, ".{}", &format!("{:06}", self.microseconds)[..digits]),
        }
    }
}

impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.date, self.time)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.utc().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_below_zero_with_a_fraction() {
        let read = |bytes: &[u8], digits| {
            Time::of_row(&mut Reader::new(bytes), digits).expect("a time").to_string()
        };
        // The table in the comments of `my_time_packed_to_binary`.
        assert_eq!(read(&[0x80, 0, 0], 0), "00:00:00");
        assert_eq!(read(&[0x7f, 0xff, 0xff, 0xff], 2), "-00:00:00.01");
        assert_eq!(read(&[0x7f, 0xff, 0xff, 0x9d], 2), "-00:00:00.99");
        assert_eq!(read(&[0x7f, 0xff, 0xff, 0x00], 2), "-00:00:01.00");
        assert_eq!(read(&[0x7f, 0xff, 0xfe, 0xff], 2), "-00:00:01.01");
        assert_eq!(read(&[0x80, 0, 1, 0, 0, 1], 6), "00:00:01.000001");
    }

    #[test]
    fn moments_have_dates() {
        let text = |seconds| Timestamp { seconds, microseconds: 0, digits: 0 }.to_string();
        assert_eq!(text(0), "0000-00-00 00:00:00");
        assert_eq!(text(951_827_696), "2000-02-29 12:34:56");
        assert_eq!(text(u32::MAX), "2106-02-07 06:28:15");
        assert_eq!(text(1), "1970-01-01 00:00:01");
    }

    #[test]
    fn fractions_are_bounded() {
        assert_eq!(
            Timestamp::of_row(&mut Reader::new(&[0, 0, 0, 1, 100]), 2),
            Err(Refusal::BadValue)
        );
    }
}
