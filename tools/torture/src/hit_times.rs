//! How long plain hits take, with and without an attack: the 99th percentile of each, to be compared by a person.
//!
//! Nothing is asserted about times. Not here: what is attacked (`rows`).

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The times of plain hits.
#[derive(Default)]
pub struct HitTimes {
    is_attacked: AtomicBool,
    /// In microseconds, without and with the attack.
    times: [Mutex<Vec<u32>>; 2],
}

impl HitTimes {
    /// Records that the attack has begun, or has ended.
    pub fn attack(&self, is_attacked: bool) {
        self.is_attacked.store(is_attacked, SeqCst);
    }

    /// Records the time of a hit.
    pub fn note(&self, took: Duration) {
        let took = u32::try_from(took.as_micros()).unwrap_or(u32::MAX);
        self.of(self.is_attacked.load(SeqCst), |times| times.push(took));
    }

    fn of<T>(&self, is_attacked: bool, call: impl FnOnce(&mut Vec<u32>) -> T) -> T {
        let times = &self.times[usize::from(is_attacked)];
        call(&mut times.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Display for HitTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |is_attacked| {
            self.of(is_attacked, |times| {
                times.sort_unstable();
                let at = |share: usize| times.get((times.len().max(1) - 1) * share / 100);
                let shown = |micros: Option<&u32>| match micros {
                    Some(micros) => format!("{:.2} ms", f64::from(*micros) / 1_000.0),
                    None => "none".to_owned(),
                };
                format!("{} (slowest {})", shown(at(99)), shown(at(100)))
            })
        };
        let [quiet, attacked] = [part(false), part(true)];
        write!(f, "99 of 100 hits within {attacked} under attack, {quiet} without")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_percentiles_stand_beside_each_other() {
        let times = HitTimes::default();
        (1..=1_000).for_each(|at| times.note(Duration::from_micros(at)));
        let text = times.to_string();
        assert!(
            text.ends_with(
                "within none (slowest none) under attack, 0.99 ms (slowest 1.00 ms) without"
            ),
            "{text}"
        );
        times.attack(true);
        times.note(Duration::from_millis(7));
        assert!(times.to_string().contains("within 7.00 ms (slowest 7.00 ms) under attack"));
    }
}
