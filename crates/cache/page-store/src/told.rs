//! What a change has touched, told to whoever wants to know: for explanations, never for decisions.
//!
//! Each page is told after it is gone (or marked) and before the change is acknowledged, in batches, under
//! no lock: what is done with it can hold nobody up but the one who changed something, and cannot change
//! what the store does. Bounded: of a change that touches more than [`TOLD_MAX`] pages the rest is not told.
//!
//! | change | told with each page |
//! |---|---|
//! | of things that have names | the name that reached it first; a page has several, a change may too |
//! | by predicate | no name |

use crate::change::{Applied, Aside, Keys, Opened};
use crate::hash::Id;
use crate::lease::Number;
use crate::names::{Change, Site, Strength, Target};
use crate::page::{Page, Payload};
use crate::predicate::Touches;
use crate::store::Store;

/// How many pages of one change are told.
pub const TOLD_MAX: usize = 4_096;

/// The name of something a page depends on, as the store knows it: to be compared with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Name(pub(crate) Id);

/// A page that a change has just touched.
#[derive(Debug)]
pub struct Told<'t, P> {
    /// The page; dropped, it is in the store no more.
    pub page: &'t Page<P>,
    /// The change's number.
    pub number: Number,
    /// By which of its names the change came to the page.
    pub name: Option<Name>,
}

impl<P: Payload> Store<P> {
    /// The names that a change of `target` has.
    pub fn names(&self, site: Site, target: &Target<'_>) -> Vec<Name> {
        let mut ids = Vec::new();
        target.ids(site, &self.shared.seeds, &mut ids);
        ids.into_iter().map(Name).collect()
    }

    /// [`change_at`](Self::change_at) for pages with these keys, and tells what it touched. One that touches
    /// many goes on `aside`.
    pub fn change_telling(
        &self,
        change: &Change<'_>,
        keys: Keys<'_>,
        (strength, now_ms): (Strength, u64),
        tell: &mut dyn FnMut(Told<'_, P>),
        aside: Aside<'_>,
    ) -> Applied {
        self.change_by(change, keys, (strength, now_ms), Teller::to(tell), aside)
    }

    /// [`open`](Self::open), and tells what it touched. One that touches many goes on `aside`.
    pub fn open_telling(
        &self,
        change: &Change<'_>,
        strength: Strength,
        tell: &mut dyn FnMut(Told<'_, P>),
        aside: Aside<'_>,
    ) -> Opened {
        self.open_by(change, strength, Teller::to(tell), aside)
    }

    /// [`change_where`](Self::change_where), and tells what it touched.
    pub fn change_where_telling(
        &self,
        site: Site,
        touches: &Touches<P>,
        strength: Strength,
        now_ms: u64,
        tell: &mut dyn FnMut(Told<'_, P>),
    ) -> Applied {
        self.change_where_by(site, touches, strength, now_ms, Teller::to(tell))
    }
}

/// Who is told of each page.
type Tell<'t, P> = &'t mut dyn FnMut(Told<'_, P>);

/// What is to be told, and to whom.
pub(crate) struct Teller<'t, P> {
    tell: Option<Tell<'t, P>>,
    waiting: Vec<(Page<P>, Option<Name>)>,
    left: usize,
}

impl<'t, P> Teller<'t, P> {
    /// Nobody wants to know.
    pub(crate) fn nobody() -> Self {
        Self { tell: None, waiting: Vec::new(), left: 0 }
    }

    fn to(tell: Tell<'t, P>) -> Self {
        Self { tell: Some(tell), waiting: Vec::new(), left: TOLD_MAX }
    }

    /// Notes a page, to be told later. Under the index lock.
    pub(crate) fn note(&mut self, page: &Page<P>, name: Option<Id>) {
        if self.left > 0 {
            self.left -= 1;
            self.waiting.push((page.clone(), name.map(Name)));
        }
    }

    /// Tells what was noted. Not under the index lock: this is the caller's code.
    pub(crate) fn tell(&mut self, number: Number) {
        let Some(tell) = &mut self.tell else { return };
        for (page, name) in self.waiting.drain(..) {
            tell(Told { page: &page, number, name });
        }
    }
}
