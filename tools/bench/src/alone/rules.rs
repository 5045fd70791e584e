//! The cost of rules: hits of a site with rules, hits behind a password, and redirects, beside hits of a site without
//! rules. All stand before the same origin, on the same core, and are asked in turn.
//!
//! The password is checked once and remembered, as that of a visitor who reads on. A redirect has no content; its status
//! is the expected one.

use super::super::figures::{Round, Series, Spread, shown, table};
use super::super::{Amount, CaseResult, error_text, save};
use super::{PAGE_BYTES, Subject, micros_each, target};
use harness::{Histogram, LoadEnd, PrivateDir, page_origin};
use serde_json::json;
use std::path::Path;

/// Pages that are requested in turn.
const PAGES: u32 = 100;
/// Denied paths and a redirect, as sites have them.
const RULES: &str = "[[rule]]\npath_regex = \"\\\\.(sql|bak|log)$\"\ndeny = 403\n\
    [[rule]]\npath = \"/xmlrpc.php\"\ndeny = 403\n\
    [[rule]]\npath_regex = \"^/archives/(\\\\d+)$\"\nredirect = \"/?p=$1\"\n";
/// The user `anna` with the password `secret`, as a client sends it, and as a line of a password file.
const PASSWORD: [(&str, &str); 1] = [("Authorization", "Basic YW5uYTpzZWNyZXQ=")];
const PASSWORD_LINE: &str = "anna:$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/\n";

/// A site, and how it is asked.
struct AskedSite<'a> {
    name: &'a str,
    config: &'a str,
    fields: &'a [(&'a str, &'a str)],
    is_redirect: bool,
}

/// Measures hits of sites with rules beside plain ones.
///
/// # Errors
/// A server that did not start, an answer that is wrong.
pub fn rules(amount: &Amount, binary: &Path) -> Result<CaseResult, String> {
    let title = "Hits of a site with rules, hits behind a password, and redirects";
    let dir = PrivateDir::temporary("rules").map_err(error_text)?;
    let passwords = dir.path().join("staff.htpasswd");
    save(&passwords, PASSWORD_LINE)?;
    let guarded = format!("[[rule]]\nauth_file = {:?}\n", passwords.display().to_string());
    let site = |name, config, fields, is_redirect| AskedSite { name, config, fields, is_redirect };
    let sites = [
        site("no rules", "", &[], false),
        site("rules", RULES, &[], false),
        site("a password", &guarded, &PASSWORD, false),
        site("a redirect", RULES, &[], true),
    ];
    let origin = page_origin(PAGE_BYTES).map_err(|error| format!("bench: {error}"))?;
    let origin = format!("http://{origin}");
    let mut subjects = Vec::new();
    for (place, site) in sites.iter().enumerate() {
        let file = dir.path().join(format!("{place}.toml"));
        save(&file, site.config)?;
        let file = file.display().to_string();
        let subject = Subject::start_before(&origin, binary, &["--config", &file])?;
        if !site.is_redirect {
            subject.ask_for_all(PAGES, site.fields)?;
        }
        subjects.push(subject);
    }
    let mut series: Vec<Series> = sites.iter().map(|site| Series::new(site.name)).collect();
    for round in 0..=amount.rounds {
        for ((site, subject), series) in sites.iter().zip(&subjects).zip(&mut series) {
            let (figures, times) = ask(site, subject, amount)?;
            // The first round only warms up.
            if round > 0 {
                series.rounds.push(figures);
                series.times.merge(&times);
            }
            series.rss_bytes = subject.pagewell.rss_bytes();
        }
    }
    for (site, subject) in sites.iter().zip(&subjects).filter(|(site, _)| !site.is_redirect) {
        if subject.stat("hits")? == 0 {
            return Err(format!("bench: {}: there were no hits", site.name));
        }
    }
    Ok(CaseResult {
        name: "rules".into(),
        text: text(title, &series),
        figures: json!({
            "title": title,
            "sites": series.iter().map(|one| one.json(&series[0])).collect::<Vec<_>>(),
        }),
    })
}

/// One round of a site: its figures, and the times of its answers.
fn ask(
    site: &AskedSite<'_>,
    subject: &Subject,
    amount: &Amount,
) -> Result<(Round, Histogram), String> {
    let mut load = subject.load(50, LoadEnd::Elapsed(amount.slice()));
    load.targets = if site.is_redirect {
        vec!["/archives/12".to_owned()]
    } else {
        (0..PAGES).map(target).collect()
    };
    load.headers = site.fields.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    let before = subject.pagewell.cpu_seconds();
    let report = load.run().map_err(|error| format!("bench: {error}"))?;
    let used = subject.pagewell.cpu_seconds() - before;
    let (right, wrong) = if site.is_redirect {
        (report.unexpected, report.requests)
    } else {
        (report.requests, report.unexpected)
    };
    if report.failures + wrong > 0 {
        let name = site.name;
        return Err(format!("bench: {name}: {} failed, {wrong} are wrong", report.failures));
    }
    let cpu_micros = micros_each(used, right);
    Ok((Round { cpu_micros, per_second: report.per_second() }, report.times))
}

fn text(title: &str, series: &[Series]) -> String {
    let table = table(series, Some(0), None)
        .replace("× the loop", "× without rules")
        .replace("| Server |", "| Site |");
    let plain = &series[0];
    let more = |one: &Series| {
        let pairs = one.rounds.iter().zip(&plain.rounds);
        shown(Spread::of(pairs.map(|(one, plain)| one.cpu_micros - plain.cpu_micros)))
    };
    format!(
        "### {title}\n\n{table}\nRules add {} µs to a hit, a password {} µs. A redirect takes {} of a hit without \
         rules.\n",
        more(&series[1]),
        more(&series[2]),
        shown(series[3].ratio_to(plain))
    )
}
