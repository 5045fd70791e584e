//! The budget of reference renders: a twentieth of the time of the places at the origin, at least one render a second,
//! and 500 to begin with. It is counted in the origin's time, so that slow pages are compared less often.
//!
//! A comparison begins only if there is something left, and its cost is subtracted when it is known.

use std::time::Duration;

/// Renders that are paid for at the start, each with the least cost.
const AT_FIRST: u32 = 500;
/// The cost of a render, at least: a fast page costs the machine more than the time of its script.
const LEAST: Duration = Duration::from_millis(20);
/// The share of the places' time, in percent.
const SHARE: u32 = 5;

/// The rest of the budget.
#[derive(Debug)]
pub(crate) struct RenderBudget {
    left: Duration,
    at: Duration,
    /// The mean cost of a render.
    mean: Duration,
    percent: u32,
}

impl RenderBudget {
    /// Begins at this monotonic time.
    pub(crate) fn new(now: Duration) -> RenderBudget {
        RenderBudget { left: LEAST * AT_FIRST, at: now, mean: LEAST, percent: SHARE }
    }

    /// The same with another share of the places' time, in percent.
    pub(crate) fn of_share(now: Duration, percent: Option<u32>) -> RenderBudget {
        RenderBudget { percent: percent.unwrap_or(SHARE), ..RenderBudget::new(now) }
    }

    /// Whether a render may begin, at an origin with so many places.
    pub(crate) fn may_begin(&mut self, now: Duration, places: usize) -> bool {
        let since = now.saturating_sub(self.at);
        self.at = now;
        let share = since * u32::try_from(places).unwrap_or(u32::MAX) * self.percent / 100;
        // One render a second.
        let least = since.mul_f64(self.mean.as_secs_f64());
        let most = (LEAST * AT_FIRST).max(self.mean * 2);
        self.left = (self.left + share.max(least)).min(most);
        self.left >= self.mean.min(most)
    }

    /// Subtracts the time that comparing took: it is the machine's, as that of a render.
    pub(crate) fn compared(&mut self, took: Duration) {
        self.left = self.left.saturating_sub(took);
    }

    /// Subtracts the cost of a render.
    pub(crate) fn spent(&mut self, took: Duration) {
        let cost = took.max(LEAST);
        self.left = self.left.saturating_sub(cost);
        self.mean = (self.mean * 7 + cost) / 8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_a_share_of_the_places_and_one_render_a_second() {
        let seconds = Duration::from_secs;
        let begun_in = |places: usize, (took, compare): (Duration, Duration), during: u64| {
            let mut budget = RenderBudget::new(seconds(0));
            while budget.may_begin(seconds(0), places) {
                budget.spent(took);
            }
            let mut count = 0;
            for second in 1..=during {
                while budget.may_begin(seconds(second), places) && count < 100_000 {
                    budget.spent(took);
                    budget.compared(compare);
                    count += 1;
                }
            }
            count
        };
        // 40 places for 100 seconds, a twentieth of it, in renders of 100 ms.
        let shared = begun_in(40, (Duration::from_millis(100), seconds(0)), 100);
        assert!((1_900..=2_100).contains(&shared), "{shared}");
        // The time of comparing counts, too.
        let large = begun_in(40, (Duration::from_millis(100), Duration::from_millis(100)), 100);
        assert!((900..=1_100).contains(&large), "{large}");
        let slow = begun_in(1, (seconds(2), seconds(0)), 100);
        assert!((80..=110).contains(&slow), "{slow}");
    }
}
