//! `pagewell trial`: the reports of the sites that are under trial as text, and the exit status.
//!
//! The exit status is that of the worst site: 0 safe, 1 not safe, 2 not enough yet. Invariant: no text depends on this
//! machine's clock; the running Pagewell counts the seconds.

use super::lasted;
use page_comparison::{TrialOutcome, TrialReport};
use serde::Deserialize;
use serde_json::Value;

/// The exit status of an error: no answer, or no trial.
pub const TRIAL_ERROR: u8 = 3;

/// The answer of `GET /v1/trial`.
#[derive(Deserialize)]
struct TrialAnswer {
    trials: Vec<SiteReport>,
}

/// The report of one site.
#[derive(Deserialize)]
struct SiteReport {
    site: Option<String>,
    running_seconds: u64,
    serve_percent: f64,
    #[serde(default)]
    is_share_refused: bool,
    notices: Vec<String>,
    #[serde(flatten)]
    report: TrialReport,
}

/// The text of the answer of `GET /v1/trial`, and the exit status.
pub(super) fn shown(answer: &Value, as_json: bool) -> Result<(String, u8), String> {
    let TrialAnswer { trials } =
        serde_json::from_value(answer.clone()).map_err(|error| error.to_string())?;
    let worst =
        trials.iter().map(|trial| trial.report.outcome).max_by_key(|outcome| match outcome {
            TrialOutcome::Safe => 0,
            TrialOutcome::NotEnough => 1,
            TrialOutcome::NotSafe => 2,
        });
    let worst = worst.ok_or_else(none)?;
    let text = if as_json {
        serde_json::to_string_pretty(answer).map_err(|error| error.to_string())?
    } else {
        trials.iter().map(SiteReport::text).collect::<Vec<_>>().join("\n\n")
    };
    Ok((text, worst.exit_status()))
}

/// The text after `--restart`.
pub(super) fn restarted(answer: &Value) -> Result<String, String> {
    let names = answer["restarted"].as_array().map(Vec::as_slice).unwrap_or_default();
    if names.is_empty() {
        return Err(none());
    }
    let names = names.iter().map(|name| name.as_str().unwrap_or("the site"));
    Ok(format!("a new record begins: {}", names.collect::<Vec<_>>().join(", ")))
}

fn none() -> String {
    "no site is under trial: write mode = \"trial\" into the configuration and run pagewell reload, or start with \
     pagewell serve --trial"
        .into()
}

impl SiteReport {
    fn text(&self) -> String {
        let of = self.site.as_ref().map(|site| format!(" of {site}")).unwrap_or_default();
        let since = lasted(self.running_seconds);
        let mut text = format!("Trial{of}, for {since}: {}\n\n", self.served());
        for notice in &self.notices {
            text.push_str(&format!("note: {notice}\n\n"));
        }
        (text + &self.report.text()).trim_end().to_owned()
    }

    fn served(&self) -> String {
        match self.serve_percent {
            0.0 => "visitors get the answers of the origin".into(),
            percent if self.is_share_refused => {
                format!("visitors get the answers of the origin, not {percent} % cache hits")
            }
            percent => format!("{percent} % of the visitors get cache hits"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use page_comparison::TrialRecord;
    use serde_json::json;

    fn answer(record: &TrialRecord, serve_percent: f64) -> Value {
        let mut trial = serde_json::to_value(TrialReport::of(record, &[])).expect("it is JSON");
        trial["site"] = "example.org".into();
        trial["running_seconds"] = 7_300.into();
        trial["serve_percent"] = serve_percent.into();
        trial["notices"] = json!(["The record is in memory only."]);
        json!({ "trials": [trial] })
    }

    #[test]
    fn the_text_begins_with_the_site_and_ends_with_the_sentence() {
        let mut record = TrialRecord::new(0, 7);
        record.unjudged("/a", page_comparison::UnjudgedReason::NoBudget, false);
        let (text, status) = shown(&answer(&record, 0.0), false).expect("a report");
        assert!(
            text.starts_with("Trial of example.org, for 2 h: visitors get the answers of"),
            "{text}"
        );
        assert!(text.contains("\nnote: The record is in memory only.\n"), "{text}");
        assert!(text.contains("1 (no-budget 1)"), "{text}");
        assert!(
            text.ends_with("Not enough yet: 0 of 300 versions of pages were compared."),
            "{text}"
        );
        assert_eq!(status, 2);
        (0..300).for_each(|_| record.compared("/", true));
        let (text, status) = shown(&answer(&record, 5.0), false).expect("a report");
        assert!(text.contains(": 5 % of the visitors get cache hits"), "{text}");
        assert_eq!(status, 0);
        let mut refused = answer(&record, 5.0);
        refused["trials"][0]["is_share_refused"] = true.into();
        let (text, _) = shown(&refused, false).expect("a report");
        assert!(text.contains(": visitors get the answers of the origin, not 5 %"), "{text}");
    }

    #[test]
    fn the_guide_is_short_and_shows_a_report_as_it_is_written() {
        let guide = include_str!("../../../../../docs/guide/trial.md");
        assert!(guide.split_whitespace().count() <= 900);
        let (text, _) = shown(&answer(&TrialRecord::new(0, 7), 0.0), false).expect("a report");
        let rows = [
            "requests for shared pages",
            "would-be hit ratio, at least",
            "PHP time saved, at least",
            "compared",
            "PHP time used",
        ];
        for row in rows {
            let begin = format!("\n{row:<30}");
            assert!(guide.contains(&begin) && text.contains(&begin), "{row}: {text}");
        }
    }

    #[test]
    fn the_worst_site_decides() {
        let (empty, mut safe) = (TrialRecord::new(0, 7), TrialRecord::new(0, 7));
        (0..300).for_each(|_| safe.compared("/", true));
        let one = |record| answer(record, 0.0)["trials"][0].clone();
        let both = json!({ "trials": [one(&safe), one(&empty)] });
        let (text, status) = shown(&both, true).expect("a report");
        assert!(text.contains("\"outcome\": \"safe\""), "{text}");
        assert_eq!(status, 2);
        assert!(shown(&json!({ "trials": [] }), false).unwrap_err().contains("mode = \"trial\""));
        assert!(restarted(&json!({ "restarted": [] })).is_err());
        let told = restarted(&json!({ "restarted": ["a.org", null] })).unwrap();
        assert_eq!(told, "a new record begins: a.org, the site");
    }
}
