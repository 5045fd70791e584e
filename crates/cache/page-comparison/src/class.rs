//! The classes of a difference, what they mean for the operator, and the circumstances that decide between them.
//!
//! A class is decided once, in `inquiry.rs`. Here are its names as they are shown, written and counted.

use crate::cause::{BYPASS_IN_A_RULE, DifferenceCause};
use serde::{Deserialize, Serialize};

/// The remedy of a page that is refused although all get the same, where a cache in front would store it, too.
pub(crate) const SHARED_WITH_PAGEWELL: &str = "declare the page as shared with Pagewell alone: tags or \
    `Pagewell-Cache-Control: max-age=600`. `s-maxage` and `public` also hold for the cache in front, which Pagewell does \
    not purge";

/// The class of a difference between a stored page and a render.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DifferenceClass {
    /// The page has dependencies, and none of them reported the change.
    BrokenPromise,
    /// The page was made for its first visitor.
    Leak,
    /// One of two: the page was made for its first visitor, or its data changed soon after it was made. An audit knows no
    /// more about a young page; a trial does.
    LeakOrAged,
    /// The page has a lifetime and no dependencies, and is older than its data.
    Aged,
    /// The page was purged, but some time after the change was visible.
    Late,
    /// The differing text goes on with time.
    ByTheClock,
    /// A visitor gets less than from the origin, because Pagewell removes fields or parameters by design; or gets a
    /// page, although the origin refuses this one visitor.
    Loses,
    /// The text is drawn again at each render.
    Random,
    /// Only text that is new at each render differs: a nonce.
    Noise,
    /// The application answers with older data than the stored page has.
    OldApplication,
    /// The page was not stored although all got the same.
    RefusedButSame,
}

impl DifferenceClass {
    /// All classes, in the order of the report.
    pub const ALL: [DifferenceClass; 11] = [
        DifferenceClass::BrokenPromise,
        DifferenceClass::Leak,
        DifferenceClass::LeakOrAged,
        DifferenceClass::Aged,
        DifferenceClass::Late,
        DifferenceClass::ByTheClock,
        DifferenceClass::Loses,
        DifferenceClass::Random,
        DifferenceClass::Noise,
        DifferenceClass::OldApplication,
        DifferenceClass::RefusedButSame,
    ];

    /// The name in metrics, logs and JSON.
    pub fn name(self) -> &'static str {
        match self {
            DifferenceClass::BrokenPromise => "broken-promise",
            DifferenceClass::Leak => "leak",
            DifferenceClass::LeakOrAged => "leak-or-aged",
            DifferenceClass::Aged => "aged",
            DifferenceClass::Late => "late",
            DifferenceClass::ByTheClock => "by-the-clock",
            DifferenceClass::Loses => "loses",
            DifferenceClass::Random => "random",
            DifferenceClass::Noise => "noise",
            DifferenceClass::OldApplication => "old-application",
            DifferenceClass::RefusedButSame => "refused-but-same",
        }
    }

    /// The class of this name.
    pub fn of_name(name: &str) -> Option<DifferenceClass> {
        DifferenceClass::ALL.into_iter().find(|class| class.name() == name)
    }

    /// Whether a visitor would have received a wrong page: the site is not safe to turn on until it is dealt with or
    /// accepted. The others are notices.
    pub fn is_wrong(self) -> bool {
        use DifferenceClass::{Aged, BrokenPromise, ByTheClock, Late, Leak, LeakOrAged};
        matches!(self, BrokenPromise | Leak | LeakOrAged | Aged | Late | ByTheClock)
    }

    /// The meaning, as the heading of the report.
    pub fn meaning(self) -> &'static str {
        match self {
            DifferenceClass::BrokenPromise => "out of date: no dependency reported the change",
            DifferenceClass::Leak => "made for its first visitor and sent to others",
            DifferenceClass::LeakOrAged => {
                "made for its first visitor, or out of date within its first 10 seconds"
            }
            DifferenceClass::Aged => "out of date within the lifetime that the application gave it",
            DifferenceClass::Late => "purged some seconds after the change",
            DifferenceClass::ByTheClock => "a number grows with the time of day or with each visit",
            DifferenceClass::Loses => {
                "a visitor gets less than from the origin, or a page that it refuses to this visitor"
            }
            DifferenceClass::Random => "drawn at each render: all visitors get the same draw",
            DifferenceClass::Noise => "a nonce is shared by all visitors",
            DifferenceClass::OldApplication => "the application itself answers with older data",
            DifferenceClass::RefusedButSame => "not stored, but the same for all",
        }
    }

    /// The remedy for the operator, with the line of the configuration where one helps. `pattern`: the paths.
    pub fn remedy(self, cause: Option<&DifferenceCause>, pattern: &str) -> String {
        let accepted = || self.accept_line(pattern);
        let by = cause.and_then(DifferenceCause::setting);
        match (self, by) {
            (DifferenceClass::Leak, Some(setting)) => setting,
            (DifferenceClass::Leak, None) => format!("bypass: {BYPASS_IN_A_RULE}"),
            (DifferenceClass::Loses, Some(setting)) => {
                format!("if all may get the same, {}; if not, {setting}", accepted())
            }
            (DifferenceClass::RefusedButSame, _)
                if matches!(cause, Some(DifferenceCause::OtherCache(_))) =>
            {
                "let the cache between Pagewell and PHP pass the page, and declare it by tags or \
                 `Pagewell-Cache-Control: max-age=600`: that cache would follow `s-maxage` and `public`, and Pagewell does \
                 not purge it"
                    .into()
            }
            (DifferenceClass::Random, _) => format!("{}, or {}", accepted(), self.plain_remedy()),
            (DifferenceClass::Aged | DifferenceClass::Late | DifferenceClass::Noise, _) => {
                format!("{}, or accept it: {}", self.plain_remedy(), accepted())
            }
            (class, _) => class.plain_remedy().into(),
        }
    }

    /// The line of the configuration that accepts differences of this class at these paths.
    pub(crate) fn accept_line(self, pattern: &str) -> String {
        // Beyond the bound of patterns, paths have none in common.
        let path = if pattern.starts_with('/') { pattern } else { "/path" };
        let line = format!("{} {path}", self.name());
        format!("`trial.accept = [{line:?}]`")
    }

    fn plain_remedy(self) -> &'static str {
        match self {
            DifferenceClass::BrokenPromise => {
                "follow or declare the table, file or option that the page was made from; until then, `bypass = true` in a \
                 rule for this path"
            }
            DifferenceClass::Aged => {
                "give the page a tag or a shorter lifetime, in PHP `header('Pagewell-Cache-Control: max-age=60');`"
            }
            DifferenceClass::Late => "commit and announce the change before the rest of the work",
            DifferenceClass::ByTheClock => {
                "send a lifetime as short as its clock's step, in PHP `header('Pagewell-Cache-Control: max-age=60');` \
                 (`store` in a rule counts only without one); if it counts visits, bypass the path"
            }
            DifferenceClass::Random => {
                "do not store the page: `bypass = true` in a rule for this path"
            }
            DifferenceClass::Noise => {
                "give the page a lifetime below the nonce's, in PHP `header('Pagewell-Cache-Control: max-age=43200');`"
            }
            DifferenceClass::OldApplication => {
                "nothing in Pagewell: look at replicas and caches of the application"
            }
            DifferenceClass::RefusedButSame => {
                "declare the page as shared: tags or `Pagewell-Cache-Control: max-age=600`. `s-maxage` and `public` also \
                 hold for other caches, which Pagewell does not purge"
            }
            DifferenceClass::LeakOrAged => "find out which by a trial: `mode = \"trial\"`",
            DifferenceClass::Leak | DifferenceClass::Loses => {
                "add the field to the key, or bypass the path"
            }
        }
    }
}

/// Why a comparison ended without a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnjudgedReason {
    /// The page was purged, marked or replaced while it was compared.
    ChangedMeanwhile,
    /// A write in flight or a database did not come to rest within 60 seconds.
    NotSettled,
    /// The budget of renders was used, or the memory of comparisons.
    NoBudget,
    /// Fewer than two places at the origin were free.
    NoPlace,
    /// The render failed, was limited, or was refused by the application.
    RenderFailed,
    /// The page was not stored when it was made last, so it is not rendered for a while.
    NotStored,
    /// Pagewell does not request the URL: it names an action, may have a secret, or is in `trial.never`.
    NotRequested,
    /// The page writes to the database at each view.
    WritesAtEachView,
    /// The cause was not found: a control render did not show the difference.
    CauseUnknown,
    /// The page as a whole is another at each render.
    Random,
}

impl UnjudgedReason {
    /// The name in metrics, logs and JSON.
    pub fn name(self) -> &'static str {
        match self {
            UnjudgedReason::ChangedMeanwhile => "changed-meanwhile",
            UnjudgedReason::NotSettled => "not-settled",
            UnjudgedReason::NoBudget => "no-budget",
            UnjudgedReason::NoPlace => "no-place",
            UnjudgedReason::RenderFailed => "render-failed",
            UnjudgedReason::NotStored => "not-stored",
            UnjudgedReason::NotRequested => "not-requested",
            UnjudgedReason::WritesAtEachView => "writes-at-each-view",
            UnjudgedReason::CauseUnknown => "cause-unknown",
            UnjudgedReason::Random => "random",
        }
    }

    /// Whether no render was possible, so that nothing is known about the page or the origin.
    pub fn is_without_render(self) -> bool {
        use UnjudgedReason::{NoBudget, NoPlace, NotRequested, NotStored};
        matches!(self, NoBudget | NoPlace | NotRequested | NotStored)
    }

    /// Whether waiting alone may never end it: the operator looks at the page, and can accept its differences.
    pub(crate) fn stays(self) -> bool {
        use UnjudgedReason::{CauseUnknown, NotRequested, NotStored, RenderFailed};
        matches!(self, CauseUnknown | NotRequested | NotStored | RenderFailed)
    }

    /// The meaning in the report, with what the operator can do.
    pub fn meaning(self) -> &'static str {
        match self {
            UnjudgedReason::ChangedMeanwhile => "the page was purged while it was compared: wait",
            UnjudgedReason::NotSettled => {
                "a write or a database did not come to rest within 60 seconds: wait"
            }
            UnjudgedReason::NoBudget => {
                "the time or the memory for comparisons was used up: wait, or raise trial.budget"
            }
            UnjudgedReason::NoPlace => {
                "fewer than two origin connections were free, and visitors come first: wait, or allow more \
                 (limits.origin_connections; with a private php-fpm also php.children)"
            }
            UnjudgedReason::RenderFailed => {
                "the origin failed or refused the render, or its answer is not compared: look at the page"
            }
            UnjudgedReason::NotStored => {
                "the page was not stored when it was made last: `pagewell explain URL` says why; it is made again after 10 \
                 minutes"
            }
            UnjudgedReason::NotRequested => {
                "Pagewell requests no URL with an action or a possible secret, and none of trial.never: look at the page"
            }
            UnjudgedReason::WritesAtEachView => "the page writes to the database at each view",
            UnjudgedReason::CauseUnknown => {
                "the same request, sent again, did not show it: look at the page"
            }
            UnjudgedReason::Random => "the page is another at each render",
        }
    }
}

/// The kind of data on which a stored page depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageDependence {
    /// Tags or statements: a change of these purges it.
    Followed,
    /// Nothing that Pagewell knows: only its lifetime ends it.
    LifetimeOnly,
}

/// The events around the samples, and the facts about the page.
#[derive(Clone, Debug, PartialEq)]
pub struct Circumstances {
    /// The kind of data on which the page depends.
    pub dependence: PageDependence,
    /// Whether the page was purged, marked or replaced by other content since the first sample began.
    pub was_replaced: bool,
    /// Whether a neutral render right after the page was stored was equal to it, if there was one.
    pub matched_when_stored: Option<bool>,
    /// Whether the application says that the page shows how long ago something was: its ages are not judged.
    pub may_lag: bool,
}

impl Circumstances {
    /// The circumstances of a page about which only its dependence is known.
    pub fn of(dependence: PageDependence) -> Circumstances {
        Circumstances { dependence, was_replaced: false, matched_when_stored: None, may_lag: false }
    }
}
