//! Formats the time of a log line in the two supported notations. The text is formatted once per
//! second; within a second only the milliseconds change. Times are in UTC, because local time repeats
//! an hour when daylight saving ends.

use http_cache::{Timestamp, date};

/// A time, formatted to the second, and its milliseconds.
pub struct Stamp {
    second: u64,
    millisecond: u64,
    clf: [u8; 26],
    iso: [u8; 24],
}

impl Default for Stamp {
    fn default() -> Stamp {
        let (clf, iso) = (*b"01/Jan/1970:00:00:00 +0000", *b"1970-01-01T00:00:00.000Z");
        Stamp { second: 0, millisecond: 0, clf, iso }
    }
}

impl Stamp {
    /// Sets the time that the other functions format.
    #[inline]
    pub fn set(&mut self, time: Timestamp) {
        let second = time.0 / 1_000;
        if second != self.second {
            self.second = second;
            self.write_second();
        }
        self.millisecond = time.0 % 1_000;
    }

    /// The time in the Common Log Format: `01/Jan/1970:00:00:00 +0000`.
    pub fn clf(&self) -> &[u8] {
        &self.clf
    }

    /// The time as in RFC 3339, with milliseconds: `1970-01-01T00:00:00.000Z`.
    pub fn iso(&self) -> [u8; 24] {
        let (mut iso, mut rest) = (self.iso, self.millisecond);
        for digit in iso[20..23].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        iso
    }

    fn write_second(&mut self) {
        // The format of `date`: Thu, 01 Jan 1970 00:00:00 GMT
        let date = date::format(Timestamp(self.second * 1_000));
        let (day, month, year, clock) = (&date[5..7], &date[8..11], &date[12..16], &date[17..25]);
        self.clf[..2].copy_from_slice(day);
        self.clf[3..6].copy_from_slice(month);
        self.clf[7..11].copy_from_slice(year);
        self.clf[12..20].copy_from_slice(clock);
        self.iso[..4].copy_from_slice(year);
        let names = b"JanFebMarAprMayJunJulAugSepOctNovDec";
        let number = names.chunks(3).position(|name| name == month).map_or(1, |at| at + 1) as u8;
        self.iso[5..7].copy_from_slice(&[b'0' + number / 10, b'0' + number % 10]);
        self.iso[8..10].copy_from_slice(day);
        self.iso[11..19].copy_from_slice(clock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_writing_it() {
        let mut stamp = Stamp::default();
        for (time, clf, iso) in [
            (0, "01/Jan/1970:00:00:00 +0000", "1970-01-01T00:00:00.000Z"),
            (1_763_780_992_007, "22/Nov/2025:03:09:52 +0000", "2025-11-22T03:09:52.007Z"),
            (1_763_780_992_998, "22/Nov/2025:03:09:52 +0000", "2025-11-22T03:09:52.998Z"),
            (1_709_251_199_000, "29/Feb/2024:23:59:59 +0000", "2024-02-29T23:59:59.000Z"),
        ] {
            stamp.set(Timestamp(time));
            assert_eq!(str::from_utf8(stamp.clf()), Ok(clf));
            assert_eq!(str::from_utf8(&stamp.iso()), Ok(iso));
        }
    }
}
