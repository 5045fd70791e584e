//! Records one change in the history: it begins before the change, receives each page after its
//! removal, and ends before the change is acknowledged.
//!
//! The names of a change are looked up only when it has matched a page. Of many pages, the store
//! reports the first `page_store::REPORTED_PAGES_MAX`. Of these, [`COUNTED_MAX`] count among the most
//! frequently purged pages.

use super::changes::{Change, ChangeName};
use super::memory::LastDrop;
use super::{ChangeSource, History, shown};
use page_store::{
    AppliedChange, ChangeTarget, DependencyName, ReportedPage, Site, Store, Strength,
};
use std::collections::HashMap;
use std::sync::Arc;
use stored_pages::page::StoredPage;

/// The most pages of one change that count among the most frequently purged pages.
const COUNTED_MAX: usize = 256;

/// A change that is being recorded.
pub struct ChangeRecorder<'a> {
    history: &'a History,
    by: Arc<ChangeSource>,
    targets: &'a [ChangeTarget<'a>],
    strength: Strength,
    at_ms: u64,
    /// The targets by the store's names for them; filled when the first page is matched.
    known: Option<HashMap<DependencyName, usize>>,
    /// The displayed names of the targets; filled on demand.
    named: HashMap<usize, Arc<ChangeName>>,
    pages: usize,
}

impl<'a> ChangeRecorder<'a> {
    /// Begins to record; `targets` is empty for an expression over URLs.
    pub fn new(
        why: &'a History,
        by: ChangeSource,
        targets: &'a [ChangeTarget<'a>],
        strength: Strength,
        at_ms: u64,
    ) -> ChangeRecorder<'a> {
        let (known, named) = (None, HashMap::new());
        ChangeRecorder {
            history: why,
            by: Arc::new(by),
            targets,
            strength,
            at_ms,
            known,
            named,
            pages: 0,
        }
    }

    /// Records a page that the change has purged or marked.
    pub fn page(
        &mut self,
        store: &Store<StoredPage>,
        site: Site,
        told: &ReportedPage<'_, StoredPage>,
    ) {
        let key = told.page.key().bytes();
        if told.page.payload().stored.is_private() || told.page.payload().item().is_some() {
            return;
        }
        let name = match told.name {
            Some(name) => self.name(store, site, name),
            None => Some(self.expression()),
        };
        self.pages += 1;
        let dropped = LastDrop {
            change: told.number.get(),
            at_ms: self.at_ms,
            is_mark: self.strength == Strength::Mark,
            by: self.by.clone(),
            name,
            unchanged: None,
            content: None,
        };
        let url = (self.pages <= COUNTED_MAX).then(|| shown::masked(&shown::address_of(key)));
        let mut inner = self.history.lock();
        inner.memory.dropped(key, told.page.variant(), dropped);
        if let Some(url) = url {
            inner.misses.dropped(&url, &self.by);
        }
    }

    /// Adds the change to the history.
    pub fn end(self, applied: &AppliedChange) {
        let AppliedChange { number, dropped, marked } = *applied;
        let mut change = Change::new(number.get(), self.at_ms, self.by, self.targets);
        change.strength = self.strength;
        change.touched = (dropped, marked);
        self.history.lock().changes.add(Arc::new(change));
    }

    fn name(
        &mut self,
        store: &Store<StoredPage>,
        site: Site,
        name: DependencyName,
    ) -> Option<Arc<ChangeName>> {
        let targets = self.targets;
        let known = self.known.get_or_insert_with(|| {
            let names = |(at, target): (usize, &ChangeTarget<'_>)| {
                store.names(site, target).into_iter().map(move |name| (name, at))
            };
            targets.iter().enumerate().flat_map(names).collect()
        });
        let at = *known.get(&name)?;
        let named = self.named.entry(at).or_insert_with(|| Arc::new(ChangeName::of(&targets[at])));
        Some(named.clone())
    }

    fn expression(&mut self) -> Arc<ChangeName> {
        self.named.entry(usize::MAX).or_insert_with(|| Arc::new(ChangeName::expression())).clone()
    }
}
