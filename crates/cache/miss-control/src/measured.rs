//! The places by measurement: fewer while the origin is slow because of its load.
//!
//! The origin's time beside other requests is compared with its time alone, for the same kind of URL (moving
//! averages). Above 1.5 times, the places for unknown clients shrink by 30 %, and those for all but confirmed ones by
//! 20 %. Below 1.2 times they grow as much. So a wrong number of places is repaired without knowledge of cores.
//! Envoy's gradient controller is the model. Places are measured during overload only.

use crate::group::MissGroup;
use std::time::Duration;

/// Groups share this many averages of the time alone; a collision only mixes two.
const GROUPS: usize = 64;
/// The weight of a new time alone, and of a new ratio.
const WEIGHT_ALONE: f32 = 0.05;
const WEIGHT_RATIO: f32 = 0.05;
/// Above this ratio there are too many places, below the other one too few.
const SLOW: f32 = 1.5;
const QUICK: f32 = 1.2;
/// Places change at most once in this time, so that the effect of a change is measured before the next.
const CHANGES_AFTER: Duration = Duration::from_millis(250);

/// How much slower the origin is beside other requests, and the places that follow from it.
#[derive(Debug)]
pub(crate) struct MeasuredPlaces {
    /// The time alone in microseconds, by group; 0 is none.
    alone: [f32; GROUPS],
    ratio: f32,
    /// The time of all requests in microseconds.
    usual: f32,
    /// The places of the two kinds, as a fraction of those of the table.
    unknown: f32,
    others: f32,
    changed: Duration,
}

impl Default for MeasuredPlaces {
    fn default() -> MeasuredPlaces {
        let (alone, changed) = ([0.0; GROUPS], Duration::ZERO);
        MeasuredPlaces { alone, ratio: 1.0, usual: 0.0, unknown: 1.0, others: 1.0, changed }
    }
}

impl MeasuredPlaces {
    /// Records that a request of this group took so long. `was_alone`: no other was at the origin when it began.
    pub(crate) fn note(
        &mut self,
        group: MissGroup,
        took: Duration,
        was_alone: bool,
        (is_overloaded, now): (bool, Duration),
    ) {
        let took = took.as_secs_f32() * 1e6;
        self.usual += WEIGHT_ALONE * (took - self.usual);
        let alone = &mut self.alone[group.number() % GROUPS];
        if was_alone {
            *alone = if *alone == 0.0 { took } else { *alone + WEIGHT_ALONE * (took - *alone) };
        } else if *alone > 0.0 {
            // One slow request is not worth more than ten.
            let ratio = (took / *alone).min(10.0);
            self.ratio += WEIGHT_RATIO * (ratio - self.ratio);
        }
        if !is_overloaded {
            (self.unknown, self.others) = (1.0, 1.0);
        } else if now.saturating_sub(self.changed) >= CHANGES_AFTER {
            self.changed = now;
            if self.ratio > SLOW {
                (self.unknown, self.others) = (self.unknown * 0.7, self.others * 0.8);
            } else if self.ratio < QUICK {
                (self.unknown, self.others) =
                    ((self.unknown / 0.7).min(1.0), (self.others / 0.8).min(1.0));
            }
            (self.unknown, self.others) = (self.unknown.max(0.01), self.others.max(0.01));
        }
    }

    /// The moving average of the time of all requests.
    pub(crate) fn usual_time(&self) -> Duration {
        Duration::from_micros(self.usual as u64)
    }

    /// The places for unknown clients, of so many; at least 1.
    pub(crate) fn unknown(&self, most: usize) -> usize {
        ((most as f32 * self.unknown) as usize).max(1)
    }

    /// The places for all but confirmed visitors, of so many; at least 2.
    pub(crate) fn others(&self, most: usize) -> usize {
        ((most as f32 * self.others) as usize).max(2.min(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::MissKind;

    #[test]
    fn a_slow_origin_has_fewer_places_until_it_is_quick_again() {
        let group = MissGroup::of(MissKind::Page, "/shop?a");
        let mut measured = MeasuredPlaces::default();
        let ms = Duration::from_millis;
        for n in 0..50 {
            measured.note(group, ms(30), true, (false, ms(n)));
        }
        for n in 0..200 {
            measured.note(group, ms(300), false, (true, ms(1_000 + 10 * n)));
        }
        assert!(measured.unknown(16) < 4 && measured.others(20) < 8, "{measured:?}");
        for n in 0..200 {
            measured.note(group, ms(300), false, (true, ms(3_000 + 100 * n)));
        }
        assert_eq!((measured.unknown(16), measured.others(20)), (1, 2));
        for n in 0..400 {
            measured.note(group, ms(31), false, (true, ms(30_000 + 100 * n)));
        }
        assert_eq!((measured.unknown(16), measured.others(20)), (16, 20));
    }

    /// A crawler asks for pages that are slow by themselves: that is no effect of the load.
    #[test]
    fn slow_pages_alone_change_nothing() {
        let (slow, quick) = ("/report?a", "/news/1");
        let group = |url| MissGroup::of(MissKind::Page, url);
        let mut measured = MeasuredPlaces::default();
        let ms = Duration::from_millis;
        for n in 0..50 {
            measured.note(group(slow), ms(900), true, (false, ms(n)));
            measured.note(group(quick), ms(10), true, (false, ms(n)));
        }
        for n in 0..200 {
            measured.note(group(slow), ms(950), false, (true, ms(1_000 + 100 * n)));
        }
        assert_eq!((measured.unknown(16), measured.others(20)), (16, 20));
    }
}
