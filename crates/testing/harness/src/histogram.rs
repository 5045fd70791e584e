//! Request times in bounded memory: a log-linear histogram, exact to one part in 64.
//!
//! Values are in nanoseconds. Each power of two is divided into 64 equal steps. A quantile is the upper edge of
//! its step, so that it is never better than the measured value.

const STEPS_LOG2: u32 = 6;
const STEPS: u64 = 1 << STEPS_LOG2;

/// A histogram of request times.
#[derive(Debug, Clone, Default)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    worst: u64,
}

impl Histogram {
    /// Records one time, in nanoseconds.
    pub fn record(&mut self, nanoseconds: u64) {
        let index = index(nanoseconds);
        if index >= self.counts.len() {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += 1;
        self.total += 1;
        self.worst = self.worst.max(nanoseconds);
    }

    /// The number of recorded times.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.total
    }

    /// The largest recorded time in nanoseconds; 0 if there is none.
    #[must_use]
    pub fn worst(&self) -> u64 {
        self.worst
    }

    /// The quantile `q` (0 to 1) of the recorded times, in nanoseconds.
    #[must_use]
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts stay below 2^52, the share is between 0 and 1"
    )]
    pub fn quantile(&self, q: f64) -> u64 {
        let wanted = ((self.total as f64 * q.clamp(0.0, 1.0)).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return upper_edge(index as u64).min(self.worst);
            }
        }
        self.worst
    }

    /// Adds the times of another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.total += other.total;
        self.worst = self.worst.max(other.worst);
    }
}

fn index(value: u64) -> usize {
    let power = 63 - (value | STEPS).leading_zeros();
    let shift = power - STEPS_LOG2;
    let step = value >> shift;
    usize::try_from(u64::from(shift) * STEPS + step).unwrap_or(usize::MAX)
}

fn upper_edge(index: u64) -> u64 {
    // The first two powers form one linear range of 2 × STEPS; after it, each power has STEPS indices.
    let shift = (index / STEPS).saturating_sub(1);
    let step = index - shift * STEPS;
    let edge = (u128::from(step) + 1) << shift;
    u64::try_from(edge - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_step_and_steps_are_narrow() {
        let mut value = 0_u64;
        while value < u64::MAX / 3 {
            let edge = upper_edge(index(value) as u64);
            assert!(edge >= value, "{value} is above its edge {edge}");
            assert!(edge - value <= value / STEPS + 1, "{value} lies in a wide step up to {edge}");
            value += 1 + value / 7;
        }
    }

    #[test]
    fn quantiles_of_a_known_set() {
        let mut times = Histogram::default();
        for time in 1..=100 {
            times.record(time);
        }
        assert_eq!((times.quantile(0.5), times.quantile(0.99), times.quantile(1.0)), (50, 99, 100));
        let mut both = Histogram::default();
        both.record(1_000_000);
        both.merge(&times);
        assert_eq!((both.count(), both.worst()), (101, 1_000_000));
    }
}
