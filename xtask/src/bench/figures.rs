//! Figures of a run with several servers in turn: medians, spread, ratios round by round.
//!
//! A machine has moods that last for minutes. So servers are measured in turn, in many short rounds;
//! each is compared with another within a round, and the median of those ratios is what counts.

use harness::Histogram;
use serde_json::{Value, json};

/// One server in one round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Round {
    /// CPU of the server for each hit, in microseconds.
    pub cpu_micros: f64,
    /// Hits in a second.
    pub per_second: f64,
}

/// One server over all rounds.
#[derive(Debug, Clone, Default)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Its rounds, in order.
    pub rounds: Vec<Round>,
    /// The times of all its hits.
    pub times: Histogram,
    /// Requests that failed, or were answered with something else.
    pub failures: u64,
}

/// The middle, and the range that half of the values lie in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// A quarter of the values lies below.
    pub low: f64,
    /// A quarter of the values lies above.
    pub high: f64,
}

impl Spread {
    /// The spread of some values; zeros if there are none.
    pub fn of(values: impl Iterator<Item = f64>) -> Spread {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        Spread { median: at(&values, 0.5), low: at(&values, 0.25), high: at(&values, 0.75) }
    }

    fn json(self) -> Value {
        json!({ "median": self.median, "low": self.low, "high": self.high })
    }
}

/// The value at a share of a sorted list, between two neighbours where it falls between.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "lists of a few values"
)]
fn at(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = share * last as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * (place - place.floor())
}

impl Series {
    /// A server that has no rounds yet.
    pub fn new(name: &str) -> Series {
        Series { name: name.to_owned(), ..Series::default() }
    }

    /// CPU for each hit, in microseconds.
    pub fn cpu_micros(&self) -> Spread {
        Spread::of(self.rounds.iter().map(|round| round.cpu_micros))
    }

    /// Hits in a second.
    pub fn per_second(&self) -> Spread {
        Spread::of(self.rounds.iter().map(|round| round.per_second))
    }

    /// Its CPU for each hit as a multiple of another's in the same round.
    pub fn ratio_to(&self, other: &Series) -> Spread {
        let pairs = self.rounds.iter().zip(&other.rounds);
        Spread::of(pairs.map(|(mine, theirs)| mine.cpu_micros / theirs.cpu_micros))
    }

    /// All of it, with its ratio to `floor`.
    pub fn json(&self, floor: &Series) -> Value {
        json!({
            "name": self.name,
            "cpu_micros_per_hit": self.cpu_micros().json(),
            "ratio_to_floor": self.ratio_to(floor).json(),
            "hits_per_second": self.per_second().json(),
            "latency_micros": {
                "median": self.times.quantile(0.5) / 1000,
                "p99": self.times.quantile(0.99) / 1000,
                "worst": self.times.worst() / 1000,
            },
            "failures": self.failures,
            "rounds": self.rounds.iter().map(|round| json!({
                "cpu_micros_per_hit": round.cpu_micros, "hits_per_second": round.per_second,
            })).collect::<Vec<_>>(),
        })
    }
}

/// The servers as a table; the first is the floor.
pub fn table(series: &[Series]) -> String {
    let mut text = format!(
        "{:<22} {:>22} {:>22} {:>9} {:>8} {:>8} {:>9} {:>8}\n",
        "server", "CPU µs/hit", "× floor", "hits/s", "p50 µs", "p99 µs", "worst ms", "failures"
    );
    for one in series {
        let cpu = one.cpu_micros();
        let ratio = series.first().map_or(cpu, |floor| one.ratio_to(floor));
        text.push_str(&format!(
            "{:<22} {:>22} {:>22} {:>9.0} {:>8} {:>8} {:>9} {:>8}\n",
            one.name,
            shown(cpu),
            shown(ratio),
            one.per_second().median,
            one.times.quantile(0.5) / 1000,
            one.times.quantile(0.99) / 1000,
            one.times.worst() / 1_000_000,
            one.failures,
        ));
    }
    text
}

/// `4.10 (3.98–4.31)`: the median and the middle half.
pub fn shown(spread: Spread) -> String {
    format!("{:.2} ({:.2}–{:.2})", spread.median, spread.low, spread.high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_quarters_lie_between_values() {
        let spread = Spread::of([4.0, 1.0, 2.0, 3.0].into_iter());
        assert_eq!(spread, Spread { median: 2.5, low: 1.75, high: 3.25 });
        assert_eq!(Spread::of(std::iter::empty()).median, 0.0);
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        let round = |cpu_micros| Round { cpu_micros, per_second: 1.0 };
        let mut floor = Series::new("floor");
        let mut other = Series::new("other");
        floor.rounds = vec![round(4.0), round(8.0), round(4.0)];
        other.rounds = vec![round(8.0), round(16.0), round(12.0)];
        assert_eq!(other.ratio_to(&floor).median, 2.0);
        assert!(table(&[floor, other]).contains("2.00 (2.00–2.50)"));
    }
}
