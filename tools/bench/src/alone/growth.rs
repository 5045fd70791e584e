//! Does a hit cost more when there are many pages? Several Pagewells with a thousand to a million pages,
//! asked in turn; the pages are drawn by Zipf's law, the nth 1/n as often as the first, from a seed.
//! None may be rendered again while it is measured: then all were in memory.

use super::super::figures::{Round, Series, shown, shown_bytes};
use super::super::{Amount, CaseResult};
use super::{Subject, micros_each, target};
use harness::Chance;
use harness::{Load, LoadEnd};
use serde_json::json;
use std::fmt::Write as _;
use std::path::Path;

/// How many draws each load makes before it begins again.
const DRAWS: usize = 100_000;

/// Measures.
///
/// # Errors
/// A server that did not start; pages that were not stored.
pub fn growth(amount: &Amount, binary: &Path) -> Result<CaseResult, String> {
    let sizes: &[u32] =
        if amount.short { &[1000, 10_000] } else { &[1000, 10_000, 100_000, 1_000_000] };
    let mut subjects = Vec::new();
    for pages in sizes {
        eprintln!("bench: {pages} pages are stored");
        let subject = Subject::start(binary, "6G")?;
        subject.fill(*pages)?;
        let mut load = subject.load(50, LoadEnd::Elapsed(amount.slice()));
        load.targets = drawn(*pages);
        subjects.push((subject, load, Series::new(&format!("{pages} pages"))));
    }
    for _ in 0..amount.rounds {
        for (subject, load, series) in &mut subjects {
            one_round(subject, load, series)?;
        }
    }
    let title = "Pages by the thousand to the million, drawn by Zipf's law";
    let mut text = format!(
        "### {title}\n\n| Pages | Server CPU | × that of the fewest | Hits/s | Memory |\n|---|---|---|---|---|\n"
    );
    let fewest = subjects[0].2.clone();
    for (subject, _, series) in &subjects {
        let _ = writeln!(
            text,
            "| {} | {:.2} µs | {} | {:.0} | {} |",
            series.name,
            series.cpu_micros().median,
            shown(series.ratio_to(&fewest)),
            series.per_second().median,
            shown_bytes(subject.pagewell.rss_bytes()),
        );
    }
    let servers: Vec<_> = subjects.iter().map(|(_, _, series)| series.json(&fewest)).collect();
    Ok(CaseResult {
        name: "growth".into(),
        text,
        figures: json!({ "title": title, "sizes": servers }),
    })
}

fn one_round(subject: &Subject, load: &Load, series: &mut Series) -> Result<(), String> {
    let (before, renders) = (subject.pagewell.cpu_seconds(), subject.stat("renders")?);
    let report = load.run().map_err(|error| format!("bench: {error}"))?;
    let used = subject.pagewell.cpu_seconds() - before;
    if subject.stat("renders")? != renders {
        return Err("bench: pages were rendered again: they were not all in memory".into());
    }
    let cpu_micros = micros_each(used, report.requests);
    series.rounds.push(Round { cpu_micros, per_second: report.per_second() });
    series.times.merge(&report.times);
    series.failures += report.failures + report.unexpected;
    Ok(())
}

/// Pages drawn by Zipf's law, from a seed.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers of pages"
)]
fn drawn(pages: u32) -> Vec<String> {
    let mut chance = Chance::new(1, u64::from(pages));
    let most = f64::from(pages).ln();
    let draw = |_| {
        // The sum of 1/n up to a page is about its logarithm, so the page is the exponential of a share.
        let share = chance.below(1 << 40) as f64 / (1_u64 << 40) as f64;
        target(((share * most).exp() as u32).min(pages) - 1)
    };
    (0..DRAWS).map(draw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_asked_for_most_and_the_last_too() {
        let drawn = drawn(1000);
        let times = |page| drawn.iter().filter(|one| **one == target(page)).count();
        assert!(times(0) > times(9) && times(9) > times(99));
        assert!((900..1000).map(times).sum::<usize>() > 0);
        assert_eq!(times(1000), 0);
    }
}
