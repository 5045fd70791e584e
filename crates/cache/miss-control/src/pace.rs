//! Rates that the operator sets: so many requests in a time, and ten at once.
//!
//! The generic cell rate algorithm (ATM Forum, "GCRA"): one time for each rate, at which its whole burst is available
//! again. The rates of a site are as many as its configuration names, and last over a reload.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The requests of a [`RateOf`] that may come at once.
const BURST: u32 = 10;

/// The times of a rate in seconds, and their names, the shortest first.
const UNITS: [(u64, &str); 3] = [(1, "s"), (60, "m"), (3_600, "h")];

/// The most requests in the time of a rate.
const REQUESTS_MAX: u32 = 1_000_000;

/// A rate: requests in a period, and how many may come at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRate {
    /// The time between two requests, for long.
    pub interval: Duration,
    /// The number of requests at once, at least 1.
    pub burst: u32,
}

impl RequestRate {
    /// Reads `60/m`, `1/s` or `100/h`. As many requests may come at once.
    ///
    /// # Errors
    /// An explanation of rates, with examples.
    pub fn read(text: &str) -> Result<RequestRate, String> {
        let wrong = || format!("{text:?}: write requests per s, m or h, for instance \"60/m\"");
        let (count, unit) = text.split_once('/').ok_or_else(wrong)?;
        let burst: u32 = count.trim().parse().map_err(|_| wrong())?;
        let known = UNITS.iter().find(|(_, known)| *known == unit.trim());
        let (seconds, _) = *known.ok_or_else(wrong)?;
        if !(1..=REQUESTS_MAX).contains(&burst) {
            return Err(wrong());
        }
        Ok(RequestRate { interval: Duration::from_secs(seconds) / burst, burst })
    }

    /// The same rate, with another number of requests at once.
    ///
    /// # Errors
    /// The number is not 1 to 1,000,000: a sentence.
    pub fn with_burst(self, burst: u32) -> Result<RequestRate, String> {
        if !(1..=REQUESTS_MAX).contains(&burst) {
            return Err(format!("{burst}: the number of requests at once, 1 to {REQUESTS_MAX}"));
        }
        Ok(RequestRate { burst, ..self })
    }

    /// Counts a request now, of a client that has its whole burst again at `full_at`; both in nanoseconds. Returns when
    /// it has the burst again after this request.
    ///
    /// # Errors
    /// The client has reached the rate: the nanoseconds until its next request is allowed.
    pub(crate) fn count(self, full_at: u64, now: u64) -> Result<u64, u64> {
        let interval = nanoseconds(self.interval).max(1);
        let burst = interval.saturating_mul(u64::from(self.burst.max(1)));
        // If the clock was set back, the client has at most used up its burst.
        let full_at = full_at.clamp(now, now.saturating_add(burst));
        match (full_at - now).saturating_sub(burst - interval) {
            0 => Ok(full_at.saturating_add(interval)),
            wait => Err(wait),
        }
    }
}

/// As [`RequestRate::read`] reads it: in the shortest time that has a whole number of requests.
impl fmt::Display for RequestRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let interval = self.interval.as_nanos().max(1);
        for (seconds, unit) in UNITS {
            let time = Duration::from_secs(seconds);
            let count = u32::try_from((time.as_nanos() + interval / 2) / interval);
            if let Ok(count @ 1..) = count
                && time / count == self.interval
            {
                return write!(f, "{count}/{unit}");
            }
        }
        write!(f, "1 each {:?}", self.interval)
    }
}

pub(crate) fn nanoseconds(time: Duration) -> u64 {
    time.as_nanos().try_into().unwrap_or(u64::MAX)
}

/// The subject of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RateOf {
    /// The verified crawler with this number.
    Crawler(usize),
    /// The renders of the rule with this number.
    Rule(usize),
}

/// The requests of all rates of a site.
#[derive(Debug, Default)]
pub struct SiteRates {
    /// When the whole burst of each is available again, in nanoseconds.
    full_at: Mutex<HashMap<RateOf, u64>>,
}

impl SiteRates {
    /// Counts a request.
    ///
    /// # Errors
    /// The rate allows no more now: the time until the next one.
    pub fn take(&self, of: RateOf, rate: RequestRate, now: Duration) -> Result<(), Duration> {
        let mut all = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let full_at = all.entry(of).or_default();
        *full_at = counted(*full_at, rate, now)?;
        Ok(())
    }

    /// Whether a request would be allowed. It is not counted.
    ///
    /// # Errors
    /// As for [`take`](Self::take).
    pub fn check(&self, of: RateOf, rate: RequestRate, now: Duration) -> Result<(), Duration> {
        let all = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let full_at = all.get(&of).copied().unwrap_or_default();
        counted(full_at, rate, now).map(drop)
    }
}

/// When the whole burst of a rate is available again after a request now, in nanoseconds.
fn counted(full_at: u64, rate: RequestRate, now: Duration) -> Result<u64, Duration> {
    let rate = RequestRate { burst: BURST, ..rate };
    rate.count(full_at, nanoseconds(now)).map_err(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_shown_as_it_is_read() {
        for (written, shown) in [
            ("9/s", "9/s"),
            ("10/m", "10/m"),
            ("60/m", "1/s"),
            ("7/m", "7/m"),
            ("1/h", "1/h"),
            ("1000000/h", "1000000/h"),
        ] {
            let rate = RequestRate::read(written).expect("a rate");
            assert_eq!(rate.to_string(), shown);
            let again = RequestRate::read(shown).expect("a rate");
            assert_eq!(again.interval, rate.interval, "{written}");
        }
    }

    #[test]
    fn a_rate_has_a_number_and_a_time() {
        let minute = RequestRate::read("60/m").unwrap();
        assert_eq!((minute.interval, minute.burst), (Duration::from_secs(1), 60));
        assert_eq!(minute.interval, RequestRate::read("3600 / h").unwrap().interval);
        assert_eq!(minute.with_burst(5).unwrap().burst, 5);
        assert!(minute.with_burst(0).is_err());
        for wrong in ["", "60", "60/day", "0/s", "-1/s", "1.5/s", "9999999/s"] {
            assert!(RequestRate::read(wrong).unwrap_err().contains("60/m"), "{wrong}");
        }
    }

    #[test]
    fn ten_come_at_once_and_one_in_each_interval() {
        let (rates, rate) = (SiteRates::default(), RequestRate::read("60/m").unwrap());
        let at = |second: u64| Duration::from_secs(100 + second);
        let take = |second| rates.take(RateOf::Rule(1), rate, at(second));
        let check = |second| rates.check(RateOf::Rule(1), rate, at(second));
        let taken = |second| (0..50).filter(|_| take(second).is_ok()).count();
        assert_eq!(check(0), Ok(()));
        assert_eq!(taken(0), 10);
        let (until_next, second) = (Err(Duration::from_secs(1)), Ok(()));
        assert_eq!((take(0), check(0), check(1)), (until_next, until_next, second));
        assert_eq!(taken(1), 1, "a check takes nothing");
        assert_eq!(taken(4), 3);
        assert!(rates.take(RateOf::Rule(2), rate, at(4)).is_ok(), "another rule");
        assert_eq!(taken(100), 10, "unused time is not saved");
    }
}
