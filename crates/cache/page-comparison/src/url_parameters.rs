//! The parameters of URLs in the report of a trial: those that change no page, and those that were not judged.
//!
//! A parameter is advised for `keys.drop_also` only after enough different visitors, and if no value of it is without a
//! comparison, because the next value may be the one with an effect. With values that have no end (`?q=…`) this never comes: then the report says that nothing is
//! advised, and why.
//! Not here: the comparison of the values (the crate `audit`), and their counts (`record`).

use crate::record::{SeenParameter, TrialRecord};
use crate::visitors::ComparedVisitors;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// Values of a parameter after which it is known to change nothing, if none of them did.
const ENOUGH_VALUES: u64 = 20;
/// Values that were not compared after which a parameter is reported as not judged, if none was compared either.
const MANY_VALUES: u64 = 100;

/// A parameter of URLs that changes no page, so that its values only make more pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleParameter {
    /// The name of the parameter, decoded.
    pub name: String,
    /// The values that were compared, each with the page without the parameter.
    pub values: u64,
    /// The pages without it.
    pub pages: u64,
    /// The visitors whose answers were compared.
    #[serde(default)]
    pub visitors: ComparedVisitors,
}

/// A parameter that has changed no page so far. Some of its values were not compared, so nothing is advised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnjudgedParameter {
    /// The name of the parameter, decoded.
    pub name: String,
    /// The values that changed nothing.
    pub values: u64,
    /// The values that were not compared, each on one page, at least.
    pub open: u64,
}

/// The parameters with enough values that changed nothing for enough visitors, and no page that was left out.
pub(crate) fn idle_parameters(record: &TrialRecord) -> Vec<IdleParameter> {
    let is_idle = |seen: &SeenParameter| {
        !seen.has_effect
            && seen.open == 0
            && seen.values >= ENOUGH_VALUES
            && seen.visitors.are_enough(record.has_cookies)
    };
    let idle = record.parameters().iter().filter(|(_, seen)| is_idle(seen));
    idle.map(|(name, seen)| IdleParameter {
        name: name.clone(),
        values: seen.values,
        pages: seen.pages,
        visitors: seen.visitors,
    })
    .collect()
}

/// The parameters about which something is known, and not enough: with values that have no end, that stays so.
pub(crate) fn unjudged_parameters(record: &TrialRecord) -> Vec<UnjudgedParameter> {
    let is_known = |seen: &SeenParameter| seen.values >= ENOUGH_VALUES || seen.open >= MANY_VALUES;
    let is_unjudged = |seen: &SeenParameter| !seen.has_effect && seen.open > 0 && is_known(seen);
    let unjudged = record.parameters().iter().filter(|(_, seen)| is_unjudged(seen));
    unjudged
        .map(|(name, seen)| UnjudgedParameter {
            name: name.clone(),
            values: seen.values,
            open: seen.open,
        })
        .collect()
}

/// Writes both lists, as far as they have entries.
pub(crate) fn write_parameters(
    text: &mut String,
    idle: &[IdleParameter],
    unjudged: &[UnjudgedParameter],
) {
    write_idle(text, idle);
    write_unjudged(text, unjudged);
}

fn write_idle(text: &mut String, parameters: &[IdleParameter]) {
    if parameters.is_empty() {
        return;
    }
    let _ =
        writeln!(text, "\nParameters that change no page, so their values make copies of pages");
    let mut names = Vec::new();
    for IdleParameter { name, values, pages, visitors } in parameters {
        let plural = if *pages == 1 { "" } else { "s" };
        let visitors = visitors.text();
        let _ = writeln!(
            text,
            "  {name}: {values} values of {pages} page{plural} compared, for {visitors}"
        );
        names.push(format!("{name:?}"));
    }
    let names = names.join(", ");
    let _ = writeln!(
        text,
        "    remedy:     `keys.drop_also = [{names}]`, beside the names that are there"
    );
}

fn write_unjudged(text: &mut String, parameters: &[UnjudgedParameter]) {
    if parameters.is_empty() {
        return;
    }
    let _ =
        writeln!(text, "\nParameters that were not judged, because of values without a comparison");
    for UnjudgedParameter { name, values, open } in parameters {
        let _ = writeln!(
            text,
            "  {name}: values that changed no page: {values}; not compared: at least {open}"
        );
    }
    let _ = writeln!(
        text,
        "    remedy:     `keys.drop_also` for a parameter that the application does not read"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::TrialReport;

    #[test]
    fn a_parameter_is_advised_only_if_enough_values_and_no_page_show_an_effect() {
        let mut record = TrialRecord::new(0, 7);
        let visitors = ComparedVisitors { clients: 12, agents: 4, cookies: 3, without_cookies: 5 };
        let seen =
            |values| SeenParameter { values, pages: 3, visitors, ..SeenParameter::default() };
        let few = ComparedVisitors { clients: 2, ..visitors };
        record.parameter("one-visitor", SeenParameter { visitors: few, ..seen(90) });
        record.parameter("few", seen(ENOUGH_VALUES - 1));
        record.parameter("open", SeenParameter { open: 257, ..seen(90) });
        record.parameter("first", SeenParameter { open: 3, ..seen(2) });
        record.parameter("page", SeenParameter { has_effect: true, ..seen(90) });
        record.parameter("page", seen(90));
        let report = TrialReport::of(&record, &[]);
        assert!(report.idle_parameters.is_empty() && !report.text().contains("few:"));
        let open = UnjudgedParameter { name: "open".into(), values: 90, open: 257 };
        assert_eq!(report.unjudged_parameters, [open]);
        let line =
            "  open: values that changed no page: 90; not compared: at least 257\n    remedy:  ";
        assert!(report.text().contains(line), "{}", report.text());
        record.parameter("ref", seen(ENOUGH_VALUES));
        record.parameter("from", SeenParameter { pages: 1, ..seen(25) });
        let text = TrialReport::of(&record, &[]).text();
        for part in [
            "  from: 25 values of 1 page compared, for 12 visitors (4 browsers or languages, 3 values of cookies)\n",
            "\n  ref: 20 values of 3 pages compared, for 12 visitors",
            "remedy:     `keys.drop_also = [\"from\", \"ref\"]`, beside",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        record.has_cookies = true;
        record.parameter("ref", SeenParameter { visitors: few, ..seen(90) });
        let same = ComparedVisitors { cookies: 1, ..visitors };
        record.parameter("from", SeenParameter { visitors: same, ..seen(90) });
        assert!(TrialReport::of(&record, &[]).idle_parameters.is_empty(), "all had the same");
        let after = TrialRecord::read(record.written().as_bytes(), 7).expect("a record");
        assert!(
            TrialReport::of(&after, &[]).idle_parameters.is_empty(),
            "its values are counted again"
        );
        assert!(after.parameters()["page"].has_effect && after.parameters().len() == 1);
    }
}
