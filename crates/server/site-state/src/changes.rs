//! The steps of a change. Every invalidation of a site's pages uses this module. Sources are
//! writes, purges, the control API, databases, other nodes, and a process that hands over.
//!
//! | step | `apply` | `apply_where` | `open` | `drop_local` | `ended_elsewhere` |
//! |---|---|---|---|---|---|
//! | 1. the store: the change gets its number, pages go | yes | yes | yes, and it stays open | yes | |
//! | 2. the history, for `explain` | yes | yes | yes | | |
//! | 3. the journal, for the next process | yes | as everything | | | yes |
//! | 4. the cluster | where the source is this node's | the same, as everything | | | |
//! | 5. the successor, after the journal: one that is closed has a successor | where the source is not the predecessor | as everything | | | yes |
//! | 6. memcached leases, tidying, cache warming | yes | yes | warming when it is settled | leases | |
//!
//! When a call returns, no later request gets a page from before the change, in this process or in
//! its successor. The other nodes are waited for when the change is acknowledged
//! (`pending_changes`). No lock is held between two steps. A render that began before step 1 is
//! refused by the store (rule 1). A page that is stored between two steps is from after the change.

use crate::SiteState;
use crate::propagation::Propagation;
use crate::successor::HandOver;
use history::{ChangeRecorder, ChangeSource};
use page_store::{
    AppliedChange, Change, ChangeTarget, Keys, Lease, Number, OpenChange, PagePredicate,
    ReportedPage, Strength,
};
use statements::terms::SearchedPages;
use std::time::Duration;
use stored_pages::page::{SharedPage, StoredPage};
use telemetry::runtime::off_the_way;

/// Looks for a page that gets another form while it is ended.
const END_ROUNDS_MAX: usize = 8;

/// A change that purges this many pages leaves entries of the index to be tidied.
const UNTIDY_PAGES: u64 = 1_000;

/// Why pages of this process alone are purged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalCause {
    /// The journal of the process before has changes that its snapshot does not contain.
    Snapshot,
    /// There are too many different searches.
    SearchesForgotten,
    /// Changes of a database or of the cluster may have been missed.
    Gap,
}

impl LocalCause {
    /// The source in the log.
    fn as_str(self) -> &'static str {
        match self {
            LocalCause::Snapshot => "snapshot",
            LocalCause::SearchesForgotten => "searches-forgotten",
            LocalCause::Gap => "gap",
        }
    }
}

/// The changes of one site.
pub struct Changes<'s> {
    site: &'s SiteState,
}

impl<'s> Changes<'s> {
    /// The changes of this site.
    #[inline]
    pub fn of(site: &'s SiteState) -> Changes<'s> {
        Changes { site }
    }

    /// Applies a change: after it returns, no request gets a page from before the change.
    pub fn apply(
        &self,
        targets: &[ChangeTarget<'_>],
        strength: Strength,
        by: ChangeSource,
    ) -> AppliedChange {
        self.apply_to(targets, Keys::All, strength, by)
    }

    /// Applies a change to the pages with these keys. The journal, other nodes and a successor do
    /// not get the keys. There the change affects all pages that depend on these targets.
    pub fn apply_to(
        &self,
        targets: &[ChangeTarget<'_>],
        keys: Keys<'_>,
        strength: Strength,
        by: ChangeSource,
    ) -> AppliedChange {
        let site = self.site;
        let change = Change { site: site.name, targets };
        let (now_ms, source) = (site.clock.now().0, Source::of(&by));
        let mut telling = ChangeRecorder::new(&site.history, by, targets, strength, now_ms);
        let mut tell =
            |told: ReportedPage<'_, StoredPage>| telling.page(&site.store, site.name, &told);
        let how = (strength, now_ms);
        let applied = site.store.change_telling(&change, keys, how, &mut tell, &off_the_way);
        telling.end(&applied);
        if let Some(snapshots) = &site.snapshots {
            snapshots.note(targets);
        }
        self.announce(targets, strength, &source);
        self.finish(&applied, targets.len(), source.kind);
        self.warm();
        applied
    }

    /// Applies a change to every page that `touches` selects, whatever the page depends on. All
    /// pages are examined: call it on a thread that may block. Lookups continue in the meantime.
    pub fn apply_where(
        &self,
        touches: &PagePredicate<StoredPage>,
        strength: Strength,
        by: ChangeSource,
    ) -> AppliedChange {
        let site = self.site;
        let (now_ms, source) = (site.clock.now().0, Source::of(&by));
        let mut telling = ChangeRecorder::new(&site.history, by, &[], strength, now_ms);
        let mut tell =
            |told: ReportedPage<'_, StoredPage>| telling.page(&site.store, site.name, &told);
        let (store, name) = (&site.store, site.name);
        let applied = store.change_where_telling(name, touches, strength, now_ms, &mut tell);
        telling.end(&applied);
        if let Some(snapshots) = &site.snapshots {
            snapshots.note_everything();
        }
        self.announce(&[ChangeTarget::Everything], strength, &source);
        self.finish(&applied, 1, source.kind);
        self.warm();
        applied
    }

    /// Applies a change that not every reader of the data sees yet. Until it is settled, no page
    /// that depends on these targets is stored.
    pub fn open(&self, targets: &[ChangeTarget<'_>], by: ChangeSource) -> OpenChange {
        let site = self.site;
        let change = Change { site: site.name, targets };
        let (now_ms, kind) = (site.clock.now().0, by.kind());
        let mut telling = ChangeRecorder::new(&site.history, by, targets, Strength::Drop, now_ms);
        let mut tell =
            |told: ReportedPage<'_, StoredPage>| telling.page(&site.store, site.name, &told);
        let opened = site.store.open_telling(&change, Strength::Drop, &mut tell, &off_the_way);
        telling.end(&opened.applied());
        self.finish(&opened.applied(), targets.len(), kind);
        opened
    }

    /// Opens a change on which no page depends. Its settlement has a number all the same: a page of a
    /// render that began before may not have seen the data.
    pub fn open_nothing(&self) -> OpenChange {
        let change = Change { site: self.site.name, targets: &[] };
        self.site.store.open(&change, Strength::Drop)
    }

    /// Settles such a change: every reader of the data sees it. The pages that it purged may be
    /// fetched again. Returns the number of the settlement.
    pub fn settle(&self, opened: OpenChange) -> Number {
        let number = self.site.store.settle(opened);
        self.keep_lease();
        self.warm();
        number
    }

    /// Purges pages of this process only, because they may be outdated.
    pub fn drop_local(&self, targets: &[ChangeTarget<'_>], because: LocalCause) {
        let change = Change { site: self.site.name, targets };
        let applied = self.site.store.change(&change, Strength::Drop);
        self.keep_lease();
        log(&applied, targets.len(), because.as_str());
    }

    /// Ends pages that another process may have under these targets: in a snapshot that is not
    /// loaded yet, or in a successor. The origin has given a later answer for them, which this
    /// store has already applied.
    pub fn ended_elsewhere(&self, targets: &[ChangeTarget<'_>]) {
        if let Some(snapshots) = &self.site.snapshots {
            snapshots.note(targets);
        }
        self.hand_on(targets, Strength::Drop);
    }

    /// Ends exactly one page: a render with this lease, begun when everything was settled, has shown that it is wrong.
    /// Other nodes and later processes purge its URL. Returns whether it was still stored.
    ///
    /// | interleaving | what happens |
    /// |---|---|
    /// | the page was replaced by a later render | its lease or content is another: nothing is removed here |
    /// | it gets another form of the same response (compression) before the removal | the look is repeated, and finds it by key, variant and lease |
    /// | a render with an older lease wants to be stored afterwards | the store refuses it (rule 9): it may have read the same old data |
    /// | a change purges the page at the same time | one of both removes it |
    pub fn end_page(&self, page: &SharedPage, lease: &Lease, url: &[u8], by: ChangeSource) -> bool {
        let (site, mut has_ended) = (self.site, false);
        for _ in 0..END_ROUNDS_MAX {
            let is_it = |other: &&SharedPage| {
                other.variant() == page.variant() && other.lease() == page.lease()
            };
            let Some(stored) = site.store.peek(page.key()).iter().find(is_it).cloned() else {
                break;
            };
            let ended = site.store.supersede(page.key(), &[page.variant()], lease, &[stored]);
            for removed in &ended.removed {
                let (number, now_ms) = (ended.number.get(), site.clock.now().0);
                site.history.superseded(removed, number, now_ms, by.clone());
            }
            has_ended |= !ended.removed.is_empty();
        }
        let targets = [ChangeTarget::Url(url)];
        self.ended_elsewhere(&targets);
        self.publish(&targets, Strength::Drop);
        has_ended
    }

    /// Waits until everything that the site's databases have committed is applied by the process that
    /// answers from its cache. `here` waits for this process. If another one has taken over, it is
    /// asked, and waits for at most `bound`.
    pub async fn committed(
        &self,
        here: impl Future<Output = Propagation>,
        bound: Duration,
    ) -> Propagation {
        let site = self.site;
        let applied = if site.answers_from_cache() { here.await } else { Propagation::TimedOut };
        match site.successor() {
            // It may have taken over while this process waited.
            Some(successor) if applied == Propagation::TimedOut => {
                successor.barrier(site.config.hosts.canonical.as_deref(), bound).await
            }
            // Nothing is answered from the cache any more.
            None if !site.answers_from_cache() => Propagation::NotNeeded,
            _ => applied,
        }
    }

    /// Publishes a change only to the other nodes, because it has been applied here already.
    pub fn publish(&self, targets: &[ChangeTarget<'_>], strength: Strength) {
        if let Some(cluster) = &self.site.cluster {
            cluster.publish(targets, strength);
        }
    }

    fn announce(&self, targets: &[ChangeTarget<'_>], strength: Strength, source: &Source) {
        if source.is_for_others {
            self.publish(targets, strength);
        }
        if source.is_for_successor {
            self.hand_on(targets, strength);
        }
    }

    /// Sends a change to the successor, if there is one. If it does not arrive and the successor
    /// has not served yet, the pages left for it must not be used. If it has served, the pages
    /// belong to it or to a later process, and the change must not be acknowledged.
    fn hand_on(&self, targets: &[ChangeTarget<'_>], strength: Strength) {
        let site = self.site;
        if site.answers_from_cache() {
            return;
        }
        let Some(successor) = site.successor() else { return };
        let (host, mut handed) = (site.config.hosts.canonical.as_deref(), HandOver::Lost);
        // The successor answers once it serves. Before that, tasks that wait for this thread may
        // have to end.
        off_the_way(&mut || handed = successor.change(host, targets, strength));
        match (handed, &site.snapshots) {
            (HandOver::Lost, _) if successor.has_served() => site.leaving.change_lost(),
            (HandOver::Lost, Some(snapshots)) => snapshots.start_over(),
            (HandOver::Applied, _) | (HandOver::Lost, None) => {}
        }
    }

    fn finish(&self, applied: &AppliedChange, targets: usize, by: &'static str) {
        self.site.counters.invalidations.add();
        self.keep_lease();
        if applied.dropped >= UNTIDY_PAGES {
            self.site.untidy.notify_one();
        }
        log(applied, targets, by);
    }

    /// Wakes cache warming, if the site has it.
    fn warm(&self) {
        if self.site.config.rewarm.is_some() {
            self.site.rewarm.notify_one();
        }
    }

    /// Stores a lease for pages of the memcached port, for which the beginning of their render is
    /// unknown.
    fn keep_lease(&self) {
        if let Some(leases) = &self.site.leases {
            leases.changed(&self.site.store, || self.site.clock.now().0);
        }
    }
}

impl SearchedPages for Changes<'_> {
    fn number(&self) -> Number {
        self.site.store.number()
    }

    fn drop_pages(&self, targets: &[ChangeTarget<'_>]) {
        self.drop_local(targets, LocalCause::SearchesForgotten);
    }
}

/// The source of a change: its name, and the recipients to which the change is announced.
struct Source {
    kind: &'static str,
    is_for_others: bool,
    is_for_successor: bool,
}

impl Source {
    fn of(by: &ChangeSource) -> Source {
        let (is_for_others, is_for_successor) = (by.is_for_others(), by.is_for_successor());
        Source { kind: by.kind(), is_for_others, is_for_successor }
    }
}

fn log(applied: &AppliedChange, targets: usize, by: &'static str) {
    tracing::debug!(
        event = "invalidated",
        by,
        targets,
        number = applied.number.get(),
        dropped = applied.dropped,
        marked = applied.marked
    );
}
