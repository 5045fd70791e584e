//! Rates that the operator sets: so many requests in a time, and ten at once.
//!
//! The generic cell rate algorithm (ATM Forum, "GCRA"): one time for each rate, at which the next request would be due
//! if all came evenly. The rates of a site are as many as its configuration names, and last over a reload.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The requests that may come at once.
const BURST: u32 = 10;

/// A rate: at most one request in this time, for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRate {
    interval: Duration,
}

impl RequestRate {
    /// Reads `60/min`, `1/s` or `100/h`.
    ///
    /// # Errors
    /// An explanation of rates, with examples.
    pub fn read(text: &str) -> Result<RequestRate, String> {
        let wrong = || {
            format!(
                "{text:?}: write a number of requests and a time, for instance 60/min, 1/s or 100/h"
            )
        };
        let (count, unit) = text.split_once('/').ok_or_else(wrong)?;
        let count: u32 = count.trim().parse().map_err(|_| wrong())?;
        let seconds = match unit.trim() {
            "s" => 1,
            "min" => 60,
            "h" => 3_600,
            _ => return Err(wrong()),
        };
        if count == 0 || count > 1_000_000 {
            return Err(wrong());
        }
        Ok(RequestRate { interval: Duration::from_secs(seconds) / count })
    }
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
    due: Mutex<HashMap<RateOf, Duration>>,
}

impl SiteRates {
    /// Counts a request, if the rate allows one more now.
    pub fn take(&self, of: RateOf, rate: RequestRate, now: Duration) -> bool {
        let mut all = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        let due = all.entry(of).or_default();
        let from = (*due).max(now);
        if from > now + rate.interval * (BURST - 1) {
            return false;
        }
        *due = from + rate.interval;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_has_a_number_and_a_time() {
        let minute = RequestRate::read("60/min").unwrap();
        assert_eq!(minute, RequestRate::read("1/s").unwrap());
        assert_eq!(minute, RequestRate::read("3600 / h").unwrap());
        for wrong in ["", "60", "60/day", "0/s", "-1/s", "1.5/s", "9999999/s"] {
            assert!(RequestRate::read(wrong).unwrap_err().contains("60/min"), "{wrong}");
        }
    }

    #[test]
    fn ten_come_at_once_and_one_in_each_interval() {
        let (rates, rate) = (SiteRates::default(), RequestRate::read("60/min").unwrap());
        let at = |second: u64| Duration::from_secs(100 + second);
        let taken =
            |second| (0..50).filter(|_| rates.take(RateOf::Rule(1), rate, at(second))).count();
        assert_eq!(taken(0), 10);
        assert_eq!(taken(1), 1);
        assert_eq!(taken(4), 3);
        assert!(rates.take(RateOf::Rule(2), rate, at(4)), "another rule");
        assert_eq!(taken(100), 10, "unused time is not saved");
    }
}
