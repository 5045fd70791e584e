//! Reports the pages that a change has affected to an observer: for explanations, never for decisions.
//!
//! Each page is reported after it was dropped or marked and before the change is acknowledged, in batches
//! and under no lock. The observer can delay only the change itself and cannot affect the store. At most
//! [`REPORTED_PAGES_MAX`] pages of a change are reported.
//!
//! | change | name reported with each page |
//! |---|---|
//! | of targets | the name that reached the page first; a page and a change may both have several |
//! | by predicate | none |

use crate::hash::Id;
use crate::lease::Number;
use crate::page::Page;

/// The maximum number of pages reported for one change.
pub const REPORTED_PAGES_MAX: usize = 4_096;

/// The hash of a name that a page can depend on, for comparison with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DependencyName(pub(crate) Id);

/// A page that a change has just affected.
#[derive(Debug)]
pub struct ReportedPage<'t, P> {
    /// The page. If it was dropped, it is no longer in the store.
    pub page: &'t Page<P>,
    /// The number of the change.
    pub number: Number,
    /// The name through which the change affected the page; `None` for a change by predicate.
    pub name: Option<DependencyName>,
}

/// The observer, called for each affected page.
type Tell<'t, P> = &'t mut dyn FnMut(ReportedPage<'_, P>);

/// The affected pages that are to be reported, and the observer.
pub(crate) struct Reporter<'t, P> {
    tell: Option<Tell<'t, P>>,
    waiting: Vec<(Page<P>, Option<DependencyName>)>,
    left: usize,
}

impl<'t, P> Reporter<'t, P> {
    /// Without an observer.
    pub(crate) fn silent() -> Self {
        Self { tell: None, waiting: Vec::new(), left: 0 }
    }

    pub(crate) fn to(tell: Tell<'t, P>) -> Self {
        Self { tell: Some(tell), waiting: Vec::new(), left: REPORTED_PAGES_MAX }
    }

    /// Records a page to be reported later. Under the index lock.
    pub(crate) fn note(&mut self, page: &Page<P>, name: Option<Id>) {
        if self.left > 0 {
            self.left -= 1;
            self.waiting.push((page.clone(), name.map(DependencyName)));
        }
    }

    /// Reports the recorded pages. Not under the index lock, because the observer is the caller's code.
    pub(crate) fn tell(&mut self, number: Number) {
        let Some(tell) = &mut self.tell else { return };
        for (page, name) in self.waiting.drain(..) {
            tell(ReportedPage { page: &page, number, name });
        }
    }
}
