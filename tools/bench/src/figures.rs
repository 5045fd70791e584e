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
    /// The name of the server.
    pub name: String,
    /// Its rounds, in order.
    pub rounds: Vec<Round>,
    /// The times of all its hits.
    pub times: Histogram,
    /// Requests that failed, or were answered with something else.
    pub failures: u64,
    /// Resident memory of its processes after the last round, in bytes.
    pub rss_bytes: u64,
}

/// The middle, and the range that half of the values lie in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The median of all rounds.
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

    /// Its hits in a second as a multiple of another's in the same round.
    pub fn rate_to(&self, other: &Series) -> Spread {
        let pairs = self.rounds.iter().zip(&other.rounds);
        Spread::of(pairs.map(|(mine, theirs)| mine.per_second / theirs.per_second))
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
            "rss_bytes": self.rss_bytes,
            "rounds": self.rounds.iter().map(|round| json!({
                "cpu_micros_per_hit": round.cpu_micros, "hits_per_second": round.per_second,
            })).collect::<Vec<_>>(),
        })
    }
}

/// The servers as a table of the manual. `floor` and `ours` are the places in the list of the servers to compare
/// with. A server that only renders pages has no cost for a hit to compare.
pub fn table(series: &[Series], floor: Option<usize>, ours: Option<usize>) -> String {
    let mut text = String::from(
        "| Server | Server CPU | × the loop | Pagewell takes of it | Requests/s | Median | 99 % | Worst | Failed | Memory |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
    );
    for (place, one) in series.iter().enumerate() {
        let beside = |other: Option<usize>, ratio: &dyn Fn(&Series) -> Spread| match other {
            Some(other) if other != place => shown(ratio(&series[other])),
            _ => String::new(),
        };
        let bold = if Some(place) == ours { "**" } else { "" };
        text.push_str(&format!(
            "| {bold}{}{bold} | {:.2} µs | {} | {} | {:.0} | {} | {} | {} | {} | {} |\n",
            one.name,
            one.cpu_micros().median,
            beside(floor, &|floor| one.ratio_to(floor)),
            beside(ours, &|ours| ours.ratio_to(one)),
            one.per_second().median,
            shown_time(one.times.quantile(0.5)),
            shown_time(one.times.quantile(0.99)),
            shown_time(one.times.worst()),
            one.failures,
            shown_bytes(one.rss_bytes),
        ));
    }
    text
}

/// `0.32 ms`, `15 ms`, `8.1 s`.
#[allow(clippy::cast_precision_loss, reason = "times of a run stay below 2^52 nanoseconds")]
pub fn shown_time(nanoseconds: u64) -> String {
    match nanoseconds as f64 / 1e6 {
        short if short < 10.0 => format!("{short:.2} ms"),
        long if long < 1000.0 => format!("{long:.0} ms"),
        longer => format!("{:.1} s", longer / 1000.0),
    }
}

/// A number of bytes in words: `12.3 MB`.
#[allow(clippy::cast_precision_loss, reason = "memory stays below 2^52 bytes")]
pub fn shown_bytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

/// `4.10 (3.98–4.31)`: the median and the middle half.
///
/// A dash where there was nothing to divide by: a run too short for the system's ticks of 10 ms.
pub fn shown(spread: Spread) -> String {
    if !spread.median.is_finite() {
        return "–".into();
    }
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
        assert_eq!(other.rate_to(&floor).median, 1.0);
        let text = table(&[floor, other], Some(0), Some(1));
        assert!(text.contains("| **other** | 12.00 µs | 2.00 (2.00–2.50) |  |"), "{text}");
        assert!(text.contains("| floor | 4.00 µs |  | 2.00 (2.00–2.50) |"), "{text}");
        // `cargo xtask gen-docs` draws a chart from such a table of the manual.
        let page = harness::root::repository().join("docs/internals/measurements.md");
        let page = std::fs::read_to_string(page).expect("the page can be read");
        let heading = text.lines().next().expect("a heading");
        assert!(page.contains(&format!("bare\n\n{heading}\n")), "the page has this table");
        assert_eq!(shown(Spread::of([f64::NAN].into_iter())), "–");
    }
}
