//! The reason for which most responses of a site were not stored, with its remedy.
//!
//! The finding `pages-not-stored`, a trial in which nothing may be stored and the next steps name it. The counts are
//! those of `pagewell misses`, since the start of the process. Tags are advised only if the reason is that a response
//! declares no lifetime: they change nothing about a cookie that each page sets (`next_steps`). Failures of the
//! origin and server errors are left out, because they say nothing about the pages; they have findings of their own.

use delivery::site::Site;
use history::misses::NameKind;
use history::{MissCauses, refusals};
use reasons::{Reason, ReasonTable};
use std::sync::Arc;

/// The remedy if there is no better one.
pub(super) const SEE_LIST: &str = "pagewell misses lists the reasons.";

/// The causes of all sites together.
pub(super) fn causes_of_all(default_site: &Arc<Site>) -> MissCauses {
    let mut causes = default_site.history.miss_causes();
    let others = default_site.all_sites().skip(1);
    others.for_each(|site| causes.merge(site.history.miss_causes()));
    causes
}

/// The URL of the last server error that was not stored.
pub(super) fn url_of_error(causes: &MissCauses) -> Option<&str> {
    let is_error = |kind: NameKind| {
        matches!(
            kind,
            NameKind::Reason(Reason::ServerError) | NameKind::CodeWith(Reason::ServerError)
        )
    };
    let all = causes.not_stored.worst();
    all.into_iter().find(|top| is_error(top.kind)).map(|top| &*top.url)
}

/// Whether the origin has failed, or answered with a server error.
fn is_failure(reason: Reason) -> bool {
    reason == Reason::ServerError || reason.sections().contains(&ReasonTable::Failed)
}

/// The most frequent reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MainReason {
    /// The name of the reason, or the code of the application if it gave one.
    pub(super) name: String,
    /// The next thing to do about it, in a sentence.
    pub(super) remedy: &'static str,
    /// Whether the responses declare no lifetime, and the application gave no other reason.
    pub(super) is_undeclared: bool,
}

impl MainReason {
    /// The most frequent reason of those that `counts` selects, without failures of the origin; `None` if there is none.
    pub(super) fn of(causes: &MissCauses, counts: impl Fn(Reason) -> bool) -> Option<MainReason> {
        causes.not_stored.worst().into_iter().find_map(|top| {
            let (reason, remedy) = match top.kind {
                NameKind::Reason(reason) => (reason, reason.advice()),
                NameKind::CodeWith(reason) => (reason, Some(refusals::remedy(&top.name))),
                _ => return None,
            };
            (!is_failure(reason) && counts(reason)).then(|| MainReason {
                name: top.name.to_string(),
                remedy: remedy.unwrap_or(SEE_LIST),
                is_undeclared: top.kind == NameKind::Reason(Reason::NoLifetime),
            })
        })
    }

    /// The same without the reasons that hold for single renders.
    pub(super) fn of_pages(causes: &MissCauses) -> Option<MainReason> {
        MainReason::of(causes, |reason| !reason.is_of_this_render())
    }

    /// The reason in a sentence.
    pub(super) fn sentence(&self) -> String {
        format!("The most frequent reason is `{}`.", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use history::{History, RenderRecord, StoreOutcome};
    use request_values::target::TargetUri;

    #[test]
    fn failures_of_the_origin_are_no_reason() {
        let history = History::new(1 << 20, 0);
        let note = |url: &str, reason| {
            let target = TargetUri::of_key(url.as_bytes()).unwrap();
            history.rendered(RenderRecord {
                key: url.as_bytes(),
                target: &target,
                times: (0, 1),
                status: None,
                cookies: Vec::new(),
                outcome: StoreOutcome::NotStored(reason),
                refusal: None,
                visitor_cookies: Vec::new(),
                is_new: false,
            });
        };
        for reason in [Reason::ServerError, Reason::ServerError, Reason::OriginRefused] {
            note("http://a.test/down", reason);
        }
        assert_eq!(MainReason::of(&history.miss_causes(), |_| true), None);
        note("http://a.test/own", Reason::SetCookie);
        let causes = history.miss_causes();
        let main = MainReason::of(&causes, |_| true).unwrap();
        assert_eq!(main.name, "set-cookie");
        assert_eq!(url_of_error(&causes), Some("http://a.test/down"));
    }
}
