//! The goals of the decision on rationed misses, and which of them a run has reached.
//!
//! Times are compared with those of the quiet site. A goal may be below what the machine can reach: a request that
//! enters at once still shares the cores with a render that the crawler may have beside it. [`RenderTimes`] measures
//! that, and each time has its lower bound beside the goal. A goal is missed all the same.

use super::ServerRuns;
use super::crawler::Crawler;
use super::figures::{PageKind, RunFigures};
use super::servers::Protection;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The most renders at a time that are measured.
const RENDERS_MAX: usize = 3;

/// The usual time of a render in milliseconds, alone and beside one and two others: medians, through the server.
#[derive(Debug, Clone, Copy, Default)]
pub struct RenderTimes(pub [f64; RENDERS_MAX]);

impl RenderTimes {
    /// The least time of a visitor's render beside those that the crawler may have: half of them take longer.
    fn beside(&self, crawler: Crawler) -> f64 {
        self.0[crawler.places().min(RENDERS_MAX - 1)]
    }
}

/// A figure that a run has to keep below.
struct Goal {
    crawler: Crawler,
    name: &'static str,
    value: f64,
    most: f64,
    time: Option<ComparedTime>,
}

/// The times behind a ratio, in milliseconds.
#[derive(Clone, Copy)]
struct ComparedTime {
    now: f64,
    quiet: f64,
    /// The lower bound of `now`.
    least: Option<f64>,
}

impl Goal {
    fn is_met(&self) -> bool {
        self.value <= self.most
    }

    /// Its name without the unit.
    fn short_name(&self) -> &'static str {
        self.name.split(',').next().unwrap_or(self.name)
    }

    /// The row of the table.
    fn row(&self) -> String {
        let Goal { crawler, name, value, most, time } = self;
        let met = if self.is_met() { "met" } else { "**missed**" };
        let [mut measured, mut goal, mut least] =
            [format!("{value:.1}"), format!("{most:.1}"), String::new()];
        if let Some(ComparedTime { now, quiet, least: bound }) = time {
            let _ = write!(measured, " ({now:.1} ms, quiet {quiet:.1} ms)");
            let _ = write!(goal, " ({:.1} ms)", most * quiet);
            if let Some(bound) = bound {
                least = format!("{:.1} ({bound:.1} ms)", bound / quiet);
            }
        }
        format!("| {} | {name} | {measured} | {goal} | {least} | {met} |\n", crawler.name())
    }

    /// How far it is missed.
    fn shortfall(&self) -> String {
        let Goal { crawler, name, value, most, time } = self;
        let mut text =
            format!("- {}: {name}: {value:.1}, {:.1} above the goal", crawler.name(), value - most);
        if let Some(ComparedTime { now, quiet, least }) = time {
            let _ = write!(text, " ({:.1} ms above {:.1} ms)", now - most * quiet, most * quiet);
            if let Some(least) = least.filter(|least| *least > most * quiet) {
                let _ = write!(text, "; the goal is below the lower bound of {least:.1} ms");
            }
        }
        text + "\n"
    }
}

/// The table of goals, and a line for each that is missed. Empty without the quiet site.
pub fn text(measured: &[(Crawler, RunFigures)], renders: &RenderTimes) -> String {
    let goals = goals(measured, renders);
    let mut text = String::from(
        "| Crawler | Goal | Measured | At most | Lower bound | |\n|---|---|---|---|---|---|\n",
    );
    goals.iter().for_each(|goal| text.push_str(&goal.row()));
    let missed: Vec<&Goal> = goals.iter().filter(|goal| !goal.is_met()).collect();
    let _ = writeln!(text, "\n{} of {} goals missed.", missed.len(), goals.len());
    let [alone, beside_one, beside_two] = renders.0;
    let _ = writeln!(
        text,
        "A render takes {alone:.1} ms, beside another {beside_one:.1} ms, beside two {beside_two:.1} ms.\n"
    );
    missed.iter().for_each(|goal| text.push_str(&goal.shortfall()));
    text
}

/// The goals, for the file of figures.
pub fn json(measured: &[(Crawler, RunFigures)], renders: &RenderTimes) -> Value {
    let goals = goals(measured, renders);
    let goals = goals.iter().map(|goal| {
        json!({
            "crawler": goal.crawler.name(),
            "goal": goal.name,
            "value": goal.value,
            "most": goal.most,
            "least_ms": goal.time.and_then(|time| time.least),
        })
    });
    goals.collect()
}

/// The last table: which goals each server meets with each crawler. Times are compared with those of the same server
/// before the quiet site.
pub fn summary(servers: &[(Protection, ServerRuns)], renders: &RenderTimes) -> String {
    let crawlers = || Crawler::ALL.into_iter().filter(|crawler| *crawler != Crawler::None);
    let names: Vec<_> = crawlers().map(Crawler::name).collect();
    let mut text = format!(
        "### Goals met\n\n| Server | {} |\n|---|{}\n",
        names.join(" | "),
        "---|".repeat(names.len())
    );
    for (kind, measured) in servers {
        let goals = goals(measured, renders);
        let cells = crawlers().map(|crawler| {
            let own: Vec<_> = goals.iter().filter(|goal| goal.crawler == crawler).collect();
            let missed: Vec<_> = own.iter().filter(|goal| !goal.is_met()).collect();
            let names: Vec<_> = missed.iter().map(|goal| goal.short_name()).collect();
            match (own.len(), missed.len()) {
                (0, _) => "not measured".to_owned(),
                (all, 0) => format!("all {all}"),
                (all, count) => format!("{} of {all}; missed: {}", all - count, names.join(", ")),
            }
        });
        let cells: Vec<_> = cells.collect();
        let _ = writeln!(text, "| {} | {} |", kind.name(), cells.join(" | "));
    }
    text
}

/// The goals of all crawlers.
fn goals(measured: &[(Crawler, RunFigures)], renders: &RenderTimes) -> Vec<Goal> {
    let Some((_, quiet)) = measured.iter().find(|(crawler, _)| *crawler == Crawler::None) else {
        return Vec::new();
    };
    let quiet = quiet.times_ms();
    let crawled = measured.iter().filter(|(crawler, _)| *crawler != Crawler::None);
    crawled.flat_map(|(crawler, figures)| of_run(*crawler, figures, quiet, renders)).collect()
}

fn of_run(
    crawler: Crawler,
    figures: &RunFigures,
    quiet: [f64; 3],
    renders: &RenderTimes,
) -> Vec<Goal> {
    let is_adapted = crawler.is_adapted();
    let times = figures.times_ms();
    let (session_most, all_most) = if is_adapted { (2.0, 3.5) } else { (1.4, 1.8) };
    let lost = figures.lost_percent(|kind| !is_adapted || kind != PageKind::Crawled);
    let deferred_most = if is_adapted { 25.0 } else { 6.0 };
    let goal = |name, value, most| Goal { crawler, name, value, most, time: None };
    let compared = |name, at: usize, most, least| {
        let (now, quiet) = (times[at], quiet[at].max(0.001));
        let time = Some(ComparedTime { now, quiet, least });
        Goal { crawler, name, value: now / quiet, most, time }
    };
    let least = Some(renders.beside(crawler));
    let mut goals = vec![
        goal("page views lost, %", lost, 0.0),
        goal("misses deferred, %", figures.deferred_percent(), deferred_most),
        compared("signed in, p95, times the quiet site", 0, session_most, least),
        compared("all views, p95, times the quiet site", 1, all_most, least),
        compared("files, p99, times the quiet site", 2, 1.2, None),
    ];
    if !is_adapted {
        let pages = 20.0 - figures.crawler_per_second().0;
        goals.push(goal("PHP cores", figures.php_cores, 1.4));
        goals.push(goal("20 pages/s less the crawler's", pages, 0.0));
    }
    goals
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crawl::figures::ViewEnd;
    use std::time::Duration;

    fn run(session_ms: u64) -> RunFigures {
        let mut figures = RunFigures::default();
        figures.seconds = 1.0;
        figures.crawler.came = 30;
        let took = Duration::from_millis(session_ms);
        figures.view(PageKind::Session, ViewEnd::Came, took, false);
        figures.file(true, Duration::from_millis(1));
        figures
    }

    #[test]
    fn a_missed_goal_says_by_how_much_and_what_is_possible() {
        let measured = [(Crawler::None, run(40)), (Crawler::A, run(88)), (Crawler::C, run(72))];
        let text = text(&measured, &RenderTimes([60.0, 85.0, 90.0]));
        let rows = [
            "| A | signed in, p95, times the quiet site | 2.2 (88.0 ms, quiet 40.0 ms) | 1.4 (56.0 ms) | 1.5 (60.0 ms) | **missed** |",
            "- A: signed in, p95, times the quiet site: 2.2, 0.8 above the goal (32.0 ms above 56.0 ms); the goal is below the lower bound of 60.0 ms",
            "| C | signed in, p95, times the quiet site | 1.8 (72.0 ms, quiet 40.0 ms) | 2.0 (80.0 ms) | 2.1 (85.0 ms) | met |",
            "2 of 12 goals missed.",
        ];
        for row in rows {
            assert!(text.contains(row), "{row}\n{text}");
        }
        assert!(!text.contains("- C:"), "{text}");
    }

    #[test]
    fn the_last_table_has_each_server_and_crawler() {
        let measured = vec![(Crawler::None, run(40)), (Crawler::A, run(88)), (Crawler::C, run(72))];
        let servers = [(Protection::Pagewell, measured), (Protection::Varnish, Vec::new())];
        let text = summary(&servers, &RenderTimes::default());
        let rows = [
            "| Server | A | B | C | E |\n|---|---|---|---|---|\n",
            "| Pagewell, `protect` | 5 of 7; missed: signed in, all views | not measured | all 5 | not measured |\n",
            "| Varnish, `vsthrottle` 1/s of misses | not measured | not measured | not measured | not measured |\n",
        ];
        for row in rows {
            assert!(text.contains(row), "{row}\n{text}");
        }
    }

    #[test]
    fn without_the_quiet_site_there_are_no_goals() {
        assert!(goals(&[(Crawler::A, run(40))], &RenderTimes::default()).is_empty());
    }
}
