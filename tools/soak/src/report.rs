//! The findings of a run, as a table of the manual, and whether the run may count as passed: no answer was
//! wrong; no honest visitor failed where the fault does not touch the pages of that visitor; every kind of
//! hostile client was there.

use super::Run;
use super::hostile::KINDS;
use super::phases::Fault;
use super::stand::Stand;
use super::tally::Tally;
use harness::Histogram;
use std::fmt::Write as _;

/// The table, and what was done.
pub fn text(run: &Run, seed: u64, stand: &Stand<'_>) -> String {
    let mut text = String::from(
        "| what was wrong | right answers | failures | wrong | pages: median, 99 %, worst | \
         by PHP: median, 99 %, worst | well again after |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for (place, fault) in Fault::ALL.into_iter().enumerate() {
        let tally = run.tally(place);
        if tally.answers == 0 && tally.failed_count() == 0 {
            continue;
        }
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} |",
            fault.title(),
            tally.answers,
            failures(&tally),
            tally.wrong,
            times(&tally.pages),
            times(&tally.rendered),
            millis(tally.recovered_ms),
        );
    }
    text.push('\n');
    for (place, fault) in Fault::ALL.into_iter().enumerate() {
        let tally = run.tally(place);
        for wrong in &tally.wrong_shown {
            let _ = writeln!(text, "wrong ({}): {wrong}", fault.title());
        }
        if !tally.done.is_empty() {
            let done: Vec<String> =
                tally.done.iter().map(|(name, count)| format!("{count} × {name}")).collect();
            if fault == Fault::Hostile {
                let _ = write!(text, "- {} kinds of ", done.len());
            } else {
                text.push_str("- ");
            }
            let _ = writeln!(text, "{}: {}.", fault.title(), done.join("; "));
        }
    }
    let (killed, most) = (stand.killed, stand.resident_max >> 20);
    let _ = writeln!(
        text,
        "\nSeed {seed}. Pagewell was killed {killed} times, and had {most} MB resident at most."
    );
    text
}

fn failures(tally: &Tally) -> String {
    if tally.failures.is_empty() {
        return "0".to_owned();
    }
    let each: Vec<String> =
        tally.failures.iter().map(|(name, count)| format!("{count} × {name}")).collect();
    format!("{}: {}", tally.failed_count(), each.join(", "))
}

fn times(times: &Histogram) -> String {
    if times.count() == 0 {
        return "–".to_owned();
    }
    let [median, most] = [0.5, 0.99].map(|share| shown(times.quantile(share)));
    format!("{median}, {most}, {}", shown(times.worst()))
}

fn shown(nanos: u64) -> String {
    match nanos / 1_000 {
        micros @ 0..1_000 => format!("{micros} µs"),
        micros @ 1_000..100_000 => format!("{}.{} ms", micros / 1_000, micros % 1_000 / 100),
        micros => millis(micros / 1_000),
    }
}

fn millis(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis} ms"),
        _ => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
    }
}

/// Whether it passed.
///
/// # Errors
/// The conditions that do not hold.
pub fn verdict(run: &Run) -> Result<(), String> {
    for (place, fault) in Fault::ALL.into_iter().enumerate() {
        let tally = run.tally(place);
        let title = fault.title();
        if tally.wrong > 0 {
            return Err(format!("soak: {} wrong answers ({title})", tally.wrong));
        }
        let failed = tally.failed_count();
        if failed > 0 && !fault.may_be_noticed() {
            return Err(format!("soak: {failed} honest visitors were not served ({title})"));
        }
        // Pages that PHP has to make may be deferred. Writes may not.
        if fault == Fault::Crawl && tally.failures.keys().any(|name| name != "503") {
            return Err(format!("soak: {} ({title})", failures(&tally)));
        }
        if tally.rounds > 0 && tally.answers == 0 {
            return Err(format!("soak: nobody was served ({title})"));
        }
        let absent = |name: &&str| tally.done.get(name).is_none_or(|count| *count == 0);
        if fault == Fault::Hostile
            && tally.rounds > 0
            && let Some(name) = KINDS.iter().map(|kind| kind.name).find(absent)
        {
            return Err(format!("soak: there was no {name}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn times_are_shown_as_people_read_them() {
        let shown_times: Vec<_> =
            [999_000, 1_500_000, 250_000_000, 2_340_000_000].map(shown).to_vec();
        assert_eq!(shown_times, ["999 µs", "1.5 ms", "250 ms", "2.3 s"]);
    }

    #[test]
    fn there_are_more_than_24_kinds_and_no_two_are_one() {
        let names: BTreeSet<_> = KINDS.iter().map(|kind| kind.name).collect();
        assert!(names.len() == KINDS.len() && names.len() > 24);
    }
}
