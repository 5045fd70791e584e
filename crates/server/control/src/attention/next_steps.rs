//! The next steps after the first start, as far as they have not been done: requests have to arrive, pages have to be
//! stored and to say what they depend on, and changes have to purge them. The dashboard shows it below the findings.
//!
//! It is read from the counters since the start, from the configuration and from the files of the site. A process
//! that has loaded a snapshot is not the first one, so it has no next steps. Another one has to see some responses
//! before it says that something is missing.

use super::figures::RESPONSES_MIN;
use super::main_reason::{MainReason, SEE_LIST, causes_of_all};
use delivery::site::Site;
use serde::Serialize;
use std::borrow::Cow;
use std::sync::Arc;
use telemetry::counters::{Counter, Counters};

/// A step of the installation that has not been done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SetupStep {
    /// The name of the step.
    pub name: &'static str,
    /// The missing part and its consequence, in a sentence.
    pub what: Cow<'static, str>,
    /// The next action, and the page of the manual about it if there is one.
    pub how: Cow<'static, str>,
}

const SEND_REQUESTS: SetupStep = SetupStep {
    name: "send-requests",
    what: Cow::Borrowed("No request has arrived yet."),
    how: Cow::Borrowed(
        "Open the site through Pagewell, or lead its visitors here (manual: Install).",
    ),
};
const INSTALL_PLUGIN: SetupStep = SetupStep {
    name: "install-plugin",
    what: Cow::Borrowed(
        "The pages of WordPress do not say what they depend on, so a change cannot purge them.",
    ),
    how: Cow::Borrowed(
        "Install the plugin in WordPress, or let Pagewell read the SQL of its pages (manual: WordPress).",
    ),
};
const DECLARE_TAGS: SetupStep = SetupStep {
    name: "declare-tags",
    what: Cow::Borrowed(
        "No page says what it depends on, so a change cannot purge the pages that show it.",
    ),
    how: Cow::Borrowed(
        "Declare tags by the PHP library or by a header field (manual: Tags), or let Pagewell read the SQL of the \
         pages (manual: Automatic dependencies).",
    ),
};
const FOLLOW_DATABASE: SetupStep = SetupStep {
    name: "follow-database",
    what: Cow::Borrowed("No change has purged a page yet."),
    how: Cow::Borrowed(
        "Follow the database (manual: Database), or let the application purge by tag after each write (manual: \
         Purging).",
    ),
};

/// The step while no page has been stored, for another reason than that none declares a lifetime.
fn store_pages(main: &MainReason) -> SetupStep {
    SetupStep {
        name: "store-pages",
        what: format!("No page has been stored. {}", main.sentence()).into(),
        how: main.remedy.into(),
    }
}

/// Why no page of a site may be stored, and the next thing to do, in sentences.
pub(crate) fn why_nothing_is_stored(site: &Site) -> String {
    match MainReason::of_pages(&site.history.miss_causes()) {
        Some(main) if main.is_undeclared => format!("{} {}", main.sentence(), undeclared(site)),
        Some(main) => format!("{} {}", main.sentence(), main.remedy),
        None => SEE_LIST.into(),
    }
}

/// The missing part where pages declare no lifetime, and the next action. The dashboard has the same sentences.
fn undeclared(site: &Site) -> String {
    let step = if is_wordpress(site) { INSTALL_PLUGIN } else { DECLARE_TAGS };
    format!("{} {}", step.what, step.how)
}

fn is_wordpress(site: &Site) -> bool {
    let files = site.config.site.files.as_ref();
    files.is_some_and(|files| files.root.join("wp-load.php").is_file())
}

/// Returns the steps that have not been done, in their order.
pub fn next_steps(default_site: &Arc<Site>) -> Vec<SetupStep> {
    let sum = |counter: fn(&Counters) -> &Counter| -> u64 {
        default_site.all_sites().map(|site| counter(&site.counters).get()).sum()
    };
    if sum(|all| &all.snapshot_pages) > 0 {
        return Vec::new();
    }
    let main_reason = || MainReason::of_pages(&causes_of_all(default_site));
    let has_database = |site: &Arc<Site>| !site.sources.feeds.is_empty();
    let responses = sum(|all| &all.stored) + sum(|all| &all.not_stored);
    let facts = Facts {
        has_requests: sum(|all| &all.requests) > 0,
        has_responses: responses.saturating_sub(sum(|all| &all.origin_errors)) >= RESPONSES_MIN,
        not_stored: (sum(|all| &all.stored) == 0).then(main_reason).flatten(),
        has_dependencies: sum(|all| &all.stored_with_dependencies) > 0,
        has_changes: sum(|all| &all.invalidations) > 0
            || default_site.all_sites().any(has_database),
        is_wordpress: default_site.all_sites().any(|site| is_wordpress(site)),
    };
    facts.steps()
}

struct Facts {
    has_requests: bool,
    /// Whether enough responses could have been stored; server errors are none.
    has_responses: bool,
    /// The most frequent reason not to store a page, while none has been stored.
    not_stored: Option<MainReason>,
    has_dependencies: bool,
    has_changes: bool,
    is_wordpress: bool,
}

impl Facts {
    fn steps(&self) -> Vec<SetupStep> {
        let declare = match &self.not_stored {
            Some(main) if !main.is_undeclared => store_pages(main),
            _ if self.is_wordpress => INSTALL_PLUGIN,
            _ => DECLARE_TAGS,
        };
        // The plugin purges pages as soon as something is written.
        let purges = self.has_changes || (self.is_wordpress && self.has_dependencies);
        let is_early = !self.has_responses;
        let steps = [
            (self.has_requests, SEND_REQUESTS),
            (is_early || self.has_dependencies, declare),
            (is_early || purges, FOLLOW_DATABASE),
        ];
        steps.into_iter().filter(|(is_done, _)| !is_done).map(|(_, step)| step).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(facts: &Facts) -> Vec<&'static str> {
        facts.steps().iter().map(|step| step.name).collect()
    }

    #[test]
    fn a_finished_step_is_no_next_step() {
        let mut facts = Facts {
            has_requests: false,
            has_responses: false,
            not_stored: None,
            has_dependencies: false,
            has_changes: false,
            is_wordpress: false,
        };
        assert_eq!(names(&facts), ["send-requests"]);
        facts.has_requests = true;
        assert!(facts.steps().is_empty(), "a few responses do not tell");
        facts.has_responses = true;
        assert_eq!(names(&facts), ["declare-tags", "follow-database"]);
        facts.is_wordpress = true;
        assert_eq!(names(&facts), ["install-plugin", "follow-database"]);
        facts.has_dependencies = true;
        assert!(facts.steps().is_empty(), "the plugin purges");
        facts.is_wordpress = false;
        assert_eq!(names(&facts), ["follow-database"]);
        facts.has_changes = true;
        assert!(facts.steps().is_empty());
    }

    #[test]
    fn tags_are_advised_only_where_pages_declare_no_lifetime() {
        let reason = |name: &str, is_undeclared| MainReason {
            name: name.into(),
            remedy: "Do this.",
            is_undeclared,
        };
        let mut facts = Facts {
            has_requests: true,
            has_responses: true,
            not_stored: Some(reason("set-cookie", false)),
            has_dependencies: false,
            has_changes: true,
            is_wordpress: false,
        };
        let steps = facts.steps();
        let [step] = &steps[..] else { panic!("{steps:?}") };
        let right = "No page has been stored. The most frequent reason is `set-cookie`. Do this.";
        assert_eq!(
            (step.name, format!("{} {}", step.what, step.how)),
            ("store-pages", right.into())
        );
        facts.not_stored = Some(reason("no-lifetime", true));
        assert_eq!(names(&facts), ["declare-tags"]);
        facts.is_wordpress = true;
        assert_eq!(names(&facts), ["install-plugin"]);
    }
}
