//! The reason for which most responses of a site were not stored, with its remedy.
//!
//! The finding `pages-not-stored`, a trial in which nothing may be stored and the next steps name it. The counts are
//! those of `pagewell misses`, since the start of the process. Tags are advised only if the reason is that a response
//! declares no lifetime: they change nothing about a cookie that each page sets (`next_steps`).

use history::misses::NameKind;
use history::{MissCauses, refusals};
use reasons::Reason;

/// The remedy if there is no better one.
pub(super) const SEE_LIST: &str = "pagewell misses lists the reasons.";

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
    /// The most frequent reason of those that `counts` selects; `None` if there is none.
    pub(super) fn of(causes: &MissCauses, counts: impl Fn(Reason) -> bool) -> Option<MainReason> {
        causes.not_stored.worst().into_iter().find_map(|top| {
            let (reason, remedy) = match top.kind {
                NameKind::Reason(reason) => (reason, reason.advice()),
                NameKind::CodeWith(reason) => (reason, Some(refusals::remedy(&top.name))),
                _ => return None,
            };
            counts(reason).then(|| MainReason {
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
