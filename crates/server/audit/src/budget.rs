//! The budget of reference renders: a twentieth of the time of the places at the origin, at least a tenth of a second each
//! second, and ten seconds to begin with. It is counted in the origin's time, so that slow pages are compared less often.
//!
//! The number of places may be far above what the origin has. So a trial without a budget of its own is also bound to the
//! time of the visitors' requests: a quarter of it.
//!
//! A comparison begins only if there is something left, and its cost is subtracted when it is known.
//!
//! An answer of a visitor is compared with a page without a render. This uses at most half of the budget, so that renders
//! always get the other half. Time of a comparison beyond that is earned before the next one.

use std::time::Duration;
use trial_record::DEFAULT_BUDGET_PERCENT;

/// Renders that are paid for at the start, each with the least cost.
const AT_FIRST: u32 = 500;
/// The cost of a render, at least: a fast page costs the machine more than the time of its script.
const LEAST: Duration = Duration::from_millis(20);
/// The share of the places' time, in percent.
const SHARE: u32 = DEFAULT_BUDGET_PERCENT;
/// The share of the time of visitors' requests, in percent.
const SHARE_OF_VISITORS: u32 = 25;
/// The share of one place's time that is there in any case, in percent.
const SHARE_OF_ONE: u32 = 10;

/// The share of the budget that comparing the answers of visitors gets, in percent.
const ANSWER_SHARE: u32 = 50;

/// The places of an origin, and the time that its requests have used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OriginUse {
    /// The number of places.
    pub(crate) places: usize,
    /// The time of all requests that were no comparisons, since the start.
    pub(crate) visitors: Duration,
}

/// The rest of the budget.
#[derive(Debug)]
pub(crate) struct RenderBudget {
    left: Duration,
    /// The rest of the share of the visitors' time; `None` if that is no bound.
    left_of_visitors: Option<Duration>,
    /// The time in which answers of visitors were compared, without what the places' time has earned for it since.
    answered_by_places: Duration,
    /// The same without what the visitors' time has earned; zero if that is no bound.
    answered_by_visitors: Duration,
    /// The visitors' time at `at`.
    visitors: Duration,
    at: Duration,
    /// The mean cost of a render.
    mean: Duration,
    percent: u32,
}

impl RenderBudget {
    /// Begins at this monotonic time, for an audit: a part of the hits bounds it already.
    pub(crate) fn new(now: Duration) -> RenderBudget {
        RenderBudget {
            left: LEAST * AT_FIRST,
            left_of_visitors: None,
            answered_by_places: Duration::ZERO,
            answered_by_visitors: Duration::ZERO,
            visitors: Duration::ZERO,
            at: now,
            mean: LEAST,
            percent: SHARE,
        }
    }

    /// The same for a trial, with a share of the places' time in percent. Without one, the visitors' time is a bound, too.
    pub(crate) fn of_trial(now: Duration, percent: Option<u32>) -> RenderBudget {
        let left_of_visitors = percent.is_none().then_some(LEAST * AT_FIRST);
        let percent = percent.unwrap_or(SHARE);
        RenderBudget { percent, left_of_visitors, ..RenderBudget::new(now) }
    }

    /// Whether a render may begin, at an origin with this use.
    pub(crate) fn may_begin(&mut self, now: Duration, used: OriginUse) -> bool {
        let most = self.earn(now, used);
        self.left() >= self.mean.min(most)
    }

    /// Whether an answer of a visitor may be compared.
    pub(crate) fn may_compare(&mut self, now: Duration, used: OriginUse) -> bool {
        self.earn(now, used);
        let answered = self.answered_by_places.max(self.answered_by_visitors);
        answered < LEAST * AT_FIRST * ANSWER_SHARE / 100
    }

    /// Adds the shares of the time since the last call. Returns the most that may be left.
    fn earn(&mut self, now: Duration, used: OriginUse) -> Duration {
        let since = now.saturating_sub(self.at);
        let by_visitors = used.visitors.saturating_sub(self.visitors);
        (self.at, self.visitors) = (now, used.visitors);
        let places = u32::try_from(used.places).unwrap_or(u32::MAX);
        let least = since * SHARE_OF_ONE / 100;
        let most = (LEAST * AT_FIRST).max(self.mean * 2);
        let share = since.saturating_mul(places).saturating_mul(self.percent) / 100;
        let share = share.max(least);
        self.left = (self.left + share).min(most);
        let mut share_of_visitors = Duration::MAX;
        if let Some(left) = &mut self.left_of_visitors {
            // Their time is known when they end: so neither share may be lost for a moment in which the other is smaller.
            share_of_visitors = by_visitors.saturating_mul(SHARE_OF_VISITORS) / 100 + least;
            *left = left.saturating_add(share_of_visitors).min(most);
        }
        let part = |share: Duration| share.saturating_mul(ANSWER_SHARE) / 100;
        self.answered_by_places = self.answered_by_places.saturating_sub(part(share));
        self.answered_by_visitors =
            self.answered_by_visitors.saturating_sub(part(share_of_visitors));
        most
    }

    fn left(&self) -> Duration {
        self.left_of_visitors.map_or(self.left, |left| left.min(self.left))
    }

    /// Subtracts the time that comparing took: it is the machine's, as that of a render.
    pub(crate) fn compared(&mut self, took: Duration) {
        self.left = self.left.saturating_sub(took);
        self.left_of_visitors = self.left_of_visitors.map(|left| left.saturating_sub(took));
    }

    /// Subtracts the time that comparing an answer of a visitor took.
    pub(crate) fn compared_answer(&mut self, took: Duration) {
        self.compared(took);
        self.answered_by_places = self.answered_by_places.saturating_add(took);
        self.answered_by_visitors = self.answered_by_visitors.saturating_add(took);
    }

    /// Subtracts the cost of a render.
    pub(crate) fn spent(&mut self, took: Duration) {
        let cost = took.max(LEAST);
        self.compared(cost);
        self.mean = (self.mean * 7 + cost) / 8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    const fn milliseconds(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    /// The renders in 100 seconds, after those of the start. `visitors`: their time in each second.
    fn begun(
        mut budget: RenderBudget,
        (places, visitors): (usize, Duration),
        (took, compare): (Duration, Duration),
    ) -> u32 {
        let used = |second: u32| OriginUse { places, visitors: visitors * second };
        while budget.may_begin(seconds(0), used(0)) {
            budget.spent(took);
        }
        let mut count = 0;
        for second in 1..=100 {
            while budget.may_begin(seconds(second.into()), used(second)) && count < 100_000 {
                budget.spent(took);
                budget.compared(compare);
                count += 1;
            }
        }
        count
    }

    #[test]
    fn a_budget_is_a_share_of_the_places_and_of_one_place_at_least() {
        let of_audit = || RenderBudget::new(seconds(0));
        // 40 places for 100 seconds, a twentieth of it, in renders of 100 ms.
        let shared = begun(of_audit(), (40, seconds(0)), (milliseconds(100), seconds(0)));
        assert!((1_900..=2_100).contains(&shared), "{shared}");
        // The time of comparing counts, too.
        let large = begun(of_audit(), (40, seconds(0)), (milliseconds(100), milliseconds(100)));
        assert!((900..=1_100).contains(&large), "{large}");
        // A tenth of 100 seconds, in renders of 2 s.
        let slow = begun(of_audit(), (1, seconds(0)), (seconds(2), seconds(0)));
        assert!((5..=10).contains(&slow), "{slow}");
    }

    #[test]
    fn a_trial_uses_a_quarter_of_the_visitors_time_at_most() {
        let renders = (milliseconds(100), seconds(0));
        let default = || RenderBudget::of_trial(seconds(0), None);
        // 64 places have 320 s of budget. The visitors' share is 25 s, and 10 s more.
        let few = begun(default(), (64, seconds(1)), renders);
        assert!((330..=360).contains(&few), "{few}");
        let none = begun(default(), (64, seconds(0)), renders);
        assert!((90..=110).contains(&none), "{none}");
        // The places' share is the smaller one: 20 s.
        let many = begun(default(), (4, seconds(4)), renders);
        assert!((190..=210).contains(&many), "{many}");
        // The operator's own share is of the places alone.
        let own = RenderBudget::of_trial(seconds(0), Some(100));
        let own = begun(own, (4, seconds(0)), renders);
        assert!((3_900..=4_100).contains(&own), "{own}");
    }

    #[test]
    fn comparing_answers_uses_half_of_the_budget_and_renders_get_the_rest() {
        let mut budget = RenderBudget::of_trial(seconds(0), Some(5));
        let used = OriginUse { places: 40, visitors: seconds(0) };
        let (mut answers, mut renders) = (0, 0);
        for second in 0..=100 {
            // There are always more answers than may be compared.
            while budget.may_compare(seconds(second), used) && answers < 100_000 {
                budget.compared_answer(milliseconds(100));
                answers += 1;
            }
            while budget.may_begin(seconds(second), used) && renders < 100_000 {
                budget.spent(milliseconds(100));
                renders += 1;
            }
        }
        // Each gets half of the first ten seconds, and of two seconds in each second.
        assert!((1_040..=1_060).contains(&answers), "{answers}");
        assert!((1_030..=1_060).contains(&renders), "{renders}");
    }

    #[test]
    fn a_long_comparison_is_earned_before_the_next_one() {
        let used = |visitors| OriginUse { places: 40, visitors: seconds(visitors) };
        let mut own = RenderBudget::of_trial(seconds(0), Some(5));
        own.compared_answer(seconds(9));
        assert!(!own.may_compare(seconds(3), used(0)), "6 s of 9 s are left");
        assert!(own.may_compare(seconds(5), used(0)), "4 s of 9 s are left");
        let mut default = RenderBudget::of_trial(seconds(0), None);
        default.compared_answer(seconds(9));
        assert!(!default.may_compare(seconds(40), used(0)), "7 s of 9 s are left by visitors");
        assert!(default.may_compare(seconds(40), used(40)), "and then 2 s");
    }

    #[test]
    fn an_origin_that_was_replaced_takes_nothing_away() {
        let mut budget = RenderBudget::of_trial(seconds(0), None);
        let used = |visitors| OriginUse { places: 64, visitors };
        assert!(budget.may_begin(seconds(1), used(seconds(1_000))));
        assert!(budget.may_begin(seconds(2), used(seconds(0))));
        budget.spent(seconds(60));
        assert!(!budget.may_begin(seconds(10), used(seconds(4))), "1.8 s is less than a render");
        assert!(budget.may_begin(seconds(10), used(seconds(80))));
    }
}
