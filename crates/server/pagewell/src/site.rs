//! One site and all that answering for it takes: its configuration, its pages, the renders in
//! progress, its origin, its files, what was counted. Shared by all connections; what changes in it
//! guards itself (see the heads of `page_store`, `static_files` and `origin`).
//!
//! The configuration can be read again while Pagewell runs (`reload`). Then there is another [`Site`] with
//! the same [`Live`] part, and what comes from then on comes to that one; nothing in a `Site` changes.

use crate::access_log::AccessLog;
use crate::clock::Clock;
use crate::codings;
use crate::config::{Config, FilesConfig, Limits};
use crate::counters::Counters;
use crate::database::{Feed, Others, Unheard, Waited};
use crate::in_hand::InHand;
use crate::memcached::Leases;
use crate::origin::Origin;
use crate::page::{self, StoredPage};
use crate::per_address::PerAddress;
use crate::purge::Searches;
use crate::reload::Reload;
use crate::render::Waiter;
use crate::routes::{Resolved, Root};
use crate::sites::Neighbours;
use crate::snapshot::Snapshots;
use crate::spool::Spool;
use crate::static_files::StaticFiles;
use crate::take_over::{Handed, Leaving, Successor};
use crate::target::Target as UriTarget;
use crate::terms::Terms;
use crate::traces::Exporter;
use crate::why::{Cause, Telling, Why};
use http_cache::StoredFacts;
use page_store::{
    AppliedChange, Change, ChangeTarget, Dependencies, FillLimits, Fills, Keys, Number, OpenChange,
    PagePredicate, ReportedPage, Store, Strength,
};
use site_rules::Load;
use std::borrow::Cow;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use tokio::sync::{Notify, Semaphore};

/// The share of the page budget that files may take: one part in so many.
const FILES_SHARE: usize = 8;

/// A change that drops so many pages leaves something to be tidied away.
const UNTIDY_PAGES: u64 = 1_000;

/// A site, as one reading of the configuration has it. A request keeps the one that it came to, so that
/// nothing is decided half by one reading and half by another.
pub struct Site {
    /// The configuration as used.
    pub config: Arc<Config>,
    /// Its bounds.
    pub limits: Arc<Limits>,
    /// The other sites of this process, where this is the one that connections come to first.
    pub neighbours: Neighbours,
    /// Which reading of the configuration it is.
    reading: u64,
    live: Arc<Live>,
}

/// What of a site outlives a reading of its configuration.
pub struct Live {
    /// The one clock.
    pub clock: Clock,
    /// The pages.
    pub store: Store<StoredPage>,
    /// The renders in progress.
    pub fills: Fills<Waiter>,
    /// What renders the pages.
    pub origin: Origin,
    /// The document root, where there is one.
    pub files: Option<(FilesConfig, StaticFiles)>,
    /// Where its scripts lie.
    resolved: Resolved,
    /// What was counted.
    pub counters: Counters,
    /// What waits for its codings.
    pub coding_queue: codings::Queue,
    /// The access log, where there is one and this is the site that connections come to first.
    pub access_log: Option<Arc<AccessLog>>,
    /// Where spans go, where something is traced and this is the site that connections come to first.
    pub exporter: Option<Exporter>,
    /// Told when a change has left something to be tidied away.
    pub untidy: Notify,
    /// Told when a change has left something to be rendered anew.
    pub rewarm: Notify,
    /// Leases for the memcached port, where there is one.
    pub leases: Option<Arc<Leases>>,
    /// Whose turn it is to search the pages for an expression.
    pub searches: Searches,
    /// The databases whose changes drop pages, and the stream by which other machines tell theirs.
    pub feeds: Vec<Arc<Feed>>,
    /// The other machines, where there are any.
    pub others: Option<Arc<Others>>,
    /// What pages look for in texts of theirs.
    pub terms: Terms,
    /// Tags of pages that no rule of theirs could touch.
    pub unheard: Unheard,
    /// What it remembers to explain itself.
    pub why: Why,
    /// The pages that outlive the process, where they do.
    pub snapshots: Option<Arc<Snapshots>>,
    /// Where responses wait for their clients that are too long for memory.
    pub response_files: Spool,
    /// Places for connections.
    pub connections: Arc<Semaphore>,
    /// How many each address has.
    pub per_address: Arc<PerAddress>,
    /// Places for connections that have changed to another protocol.
    pub upgrades: Arc<Semaphore>,
    /// The namespace of its keys and tags.
    pub name: page_store::Site,
    /// What reads the configuration again, where this is the site that connections come to first and there
    /// is a file to be read.
    pub reload: OnceLock<Reload>,
    /// Whether another process has the pages, and who that is.
    leaving: Leaving,
    /// What may still tell of a change.
    pub in_hand: Arc<InHand>,
    /// Which reading of the configuration counts; none any more where another process has the pages.
    reading: AtomicU64,
    /// The site by that reading. Guards that one value.
    current: Mutex<Weak<Site>>,
}

impl Deref for Site {
    type Target = Live;

    fn deref(&self) -> &Live {
        &self.live
    }
}

impl Site {
    /// Puts a site together. `is_door`: connections come to it first.
    pub fn new(
        config: Arc<Config>,
        clock: Clock,
        origin: Origin,
        neighbours: Neighbours,
        is_door: bool,
    ) -> Arc<Site> {
        let limits = Arc::new(config.limits.clone());
        let log = config.access_log.as_ref().filter(|_| is_door);
        let access_log = log.map(|log| Arc::new(AccessLog::new(log)));
        let traces = config.traces.as_ref().filter(|_| is_door);
        let exporter = traces.map(Exporter::new);
        let live = Live::new(&config, clock, origin, access_log, exporter);
        let site = Site { limits, neighbours, reading: 0, live: Arc::new(live), config };
        let site = Arc::new(site);
        *site.live.current() = Arc::downgrade(&site);
        site
    }

    /// The same site by another reading of the configuration. It counts from when it is
    /// [put in the place](Self::take_over) of the one before.
    pub fn read_anew(&self, config: Arc<Config>, neighbours: Neighbours) -> Arc<Site> {
        let (limits, live) = (Arc::new(config.limits.clone()), self.live.clone());
        Arc::new(Site { limits, neighbours, reading: self.reading + 1, live, config })
    }

    /// From now on this reading counts, for every request that comes.
    pub fn take_over(self: &Arc<Site>) {
        *self.live.current() = Arc::downgrade(self);
        self.live.reading.fetch_max(self.reading, Ordering::AcqRel);
    }

    /// From now on nothing is answered from memory, and every change is told to the successor as well
    /// (`take_over`).
    pub fn leave(&self, successor: Arc<Successor>) {
        self.live.leaving.to(successor);
        self.live.reading.store(u64::MAX, Ordering::Release);
    }

    /// From now on nothing is answered from memory, while the server stops: so nobody has to wait for what is
    /// applied here.
    pub fn leave_alone(&self) {
        self.live.leaving.alone();
        self.live.reading.store(u64::MAX, Ordering::Release);
    }

    /// Whether this is the reading of the configuration that counts.
    pub fn is_current(&self) -> bool {
        self.live.reading.load(Ordering::Acquire) == self.reading
    }

    /// The site by the reading that counts.
    pub fn now(self: &Arc<Site>) -> Arc<Site> {
        match self.is_current() {
            true => self.clone(),
            // While the server stops there may be none any more.
            false => self.live.current().upgrade().unwrap_or_else(|| self.clone()),
        }
    }
}

impl Live {
    fn new(
        config: &Arc<Config>,
        clock: Clock,
        origin: Origin,
        access_log: Option<Arc<AccessLog>>,
        exporter: Option<Exporter>,
    ) -> Live {
        let limits = &config.limits;
        let files_bytes = match config.site.files {
            Some(_) => config.memory_bytes / FILES_SHARE,
            None => 0,
        };
        let mut store_limits = page_store::Limits::new(config.memory_bytes - files_bytes);
        if let Some(private) = &config.private {
            store_limits.owner_pages_max = private.pages_per_owner;
        }
        if let Some(rewarm) = &config.rewarm {
            store_limits.rewarm_pages_max = limits.rewarm_pages;
            store_limits.rewarm_uses_min = rewarm.min_uses;
        }
        let fill_limits = FillLimits { followers_max: limits.followers, ..FillLimits::default() };
        let store = Store::new(store_limits);
        let leases = config.memcached.as_ref().map(|memcached| {
            let epoch = clock.now().0 ^ (u64::from(std::process::id()) << 44);
            Arc::new(Leases::new(&store, memcached.render_time, epoch))
        });
        let files = config.site.files.clone();
        let followed = config.databases.iter().chain(&config.stream);
        let kinds = config.databases.iter().flat_map(|database| database.rules.searches());
        Live {
            store,
            fills: Fills::new(fill_limits),
            origin,
            files: files.map(|files| (files, StaticFiles::new(files_bytes as u64))),
            resolved: Resolved::default(),
            counters: Counters::default(),
            coding_queue: codings::Queue::new(limits.coding_queue),
            access_log,
            exporter,
            untidy: Notify::new(),
            rewarm: Notify::new(),
            searches: Searches::default(),
            terms: Terms::new(kinds.map(str::to_owned)),
            unheard: Unheard::default(),
            why: Why::new(config.memory_bytes, clock.now().0),
            feeds: followed.map(|one| Arc::new(Feed::new(one.clone()))).collect(),
            others: config.stream.clone().map(|stream| Arc::new(Others::new(stream))),
            snapshots: config.snapshot.clone().map(|config| Arc::new(Snapshots::new(config))),
            response_files: Spool::for_responses(config),
            per_address: Arc::default(),
            connections: Arc::new(Semaphore::new(limits.connections)),
            upgrades: Arc::new(Semaphore::new(limits.upgrades)),
            name: page_store::Site(0),
            leases,
            clock,
            reload: OnceLock::new(),
            in_hand: Arc::default(),
            reading: AtomicU64::new(0),
            leaving: Leaving::default(),
            current: Mutex::new(Weak::new()),
        }
    }

    fn current(&self) -> MutexGuard<'_, Weak<Site>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Site {
    /// The document root, with what was found in it lately; none in front of an HTTP origin.
    pub fn root(&self) -> Option<Root<'_>> {
        let (files, _) = self.files.as_ref()?;
        Some(Root { files, resolved: Some((&self.resolved, self.clock.now())) })
    }

    /// The target of a page that may be shared, where it is not what was written: the site's own
    /// host, and the normal form of path and query.
    pub fn shared(&self, written: &UriTarget) -> Option<UriTarget> {
        let normal = self.config.rules.form().normal(&written.path_and_query);
        let hosts = &self.config.hosts;
        let canonical = hosts.canonical.as_ref().filter(|_| hosts.aliases.contains(&written.host));
        let same = matches!((&normal.sent, &normal.page), (Cow::Borrowed(_), Cow::Borrowed(_)));
        if same && canonical.is_none() {
            return None;
        }
        let page = (normal.page != normal.sent).then(|| normal.page.into_owned());
        let path = normal.sent.split('?').next().unwrap_or_default();
        let path_written = written.path();
        Some(UriTarget {
            written: (path != path_written).then(|| path_written.to_owned()),
            scheme: written.scheme,
            host: canonical.unwrap_or(&written.host).clone(),
            path_and_query: normal.sent.into_owned(),
            normal: page,
        })
    }

    /// What a page with this stored response depends on. `since` is its lease's number; none: nobody knows which
    /// changes it has seen.
    pub fn dependencies(
        &self,
        stored: &StoredFacts,
        path_and_query: &str,
        since: Option<Number>,
    ) -> Dependencies {
        let mut all = page::dependencies(stored, &self.store, self.name, path_and_query);
        self.terms.depend(&mut all, stored.tags().iter(), since, (&self.store, self.name));
        all
    }

    /// How much the origin has to do, for rules that care.
    pub fn load(&self) -> Load {
        let watched = self.config.rules.watches_load();
        if watched && self.origin.places().waiting() > 0 { Load::Saturated } else { Load::Normal }
    }

    /// Takes in a change: when this returns, nobody gets a page made from what was before.
    pub fn change(
        &self,
        targets: &[ChangeTarget<'_>],
        strength: Strength,
        by: Cause,
    ) -> AppliedChange {
        self.change_of(targets, Keys::All, strength, by)
    }

    /// Takes in a change of the pages with these keys. The journal, other nodes and a process that takes over
    /// are given no keys: there it concerns all pages that depend on these targets.
    pub fn change_of(
        &self,
        targets: &[ChangeTarget<'_>],
        keys: Keys<'_>,
        strength: Strength,
        by: Cause,
    ) -> AppliedChange {
        let change = Change { site: self.name, targets };
        let (now_ms, kind, for_others) = (self.clock.now().0, by.kind(), by.is_for_others());
        let is_handed_on = by.is_for_successor();
        let mut telling = Telling::new(&self.why, by, targets, strength, now_ms);
        let mut tell =
            |told: ReportedPage<'_, StoredPage>| telling.page(&self.store, self.name, &told);
        let how = (strength, now_ms);
        let applied = self.store.change_telling(&change, keys, how, &mut tell, &off_the_way);
        telling.end(&applied);
        if let Some(snapshots) = &self.snapshots {
            snapshots.note(targets);
        }
        if for_others {
            self.tell_others(targets, strength);
        }
        // After it was noted: a journal that is closed has a successor.
        if is_handed_on {
            self.hand_on(targets, strength);
        }
        self.changed(&applied, targets.len(), kind);
        applied
    }

    /// Takes in a change that not every reader of the data sees yet: until it is settled nothing that
    /// depends on it is stored.
    pub fn open(&self, targets: &[ChangeTarget<'_>], by: Cause) -> OpenChange {
        let change = Change { site: self.name, targets };
        let (now_ms, kind) = (self.clock.now().0, by.kind());
        let mut telling = Telling::new(&self.why, by, targets, Strength::Drop, now_ms);
        let mut tell =
            |told: ReportedPage<'_, StoredPage>| telling.page(&self.store, self.name, &told);
        let opened = self.store.open_telling(&change, Strength::Drop, &mut tell, &off_the_way);
        telling.end(&opened.applied());
        self.took(&opened.applied(), targets.len(), kind);
        opened
    }

    /// Settles such a change. What it dropped may be rendered anew from now on.
    pub fn settle(&self, opened: OpenChange) {
        self.store.settle(opened);
        self.keep_lease();
        if self.config.rewarm.is_some() {
            self.rewarm.notify_one();
        }
    }

    /// Takes in a change of every page that `touches` says it touches, whatever the page depends on.
    /// All pages are looked at: on a thread that may be held up. Lookups are not.
    pub fn change_where(
        &self,
        touches: &PagePredicate<StoredPage>,
        strength: Strength,
        by: Cause,
    ) -> AppliedChange {
        let (now_ms, kind, for_others) = (self.clock.now().0, by.kind(), by.is_for_others());
        let mut telling = Telling::new(&self.why, by, &[], strength, now_ms);
        let mut tell =
            |told: ReportedPage<'_, StoredPage>| telling.page(&self.store, self.name, &told);
        let (store, name) = (&self.store, self.name);
        let applied = store.change_where_telling(name, touches, strength, now_ms, &mut tell);
        telling.end(&applied);
        if let Some(snapshots) = &self.snapshots {
            snapshots.note_everything();
        }
        if for_others {
            self.tell_others(&[ChangeTarget::Everything], strength);
        }
        self.hand_on(&[ChangeTarget::Everything], strength);
        self.changed(&applied, 1, kind);
        applied
    }

    /// Whether another process has the pages.
    pub fn is_leaving(&self) -> bool {
        self.leaving.is()
    }

    /// Who has them, where that process is still there.
    pub fn successor(&self) -> Option<Arc<Successor>> {
        self.leaving.successor()
    }

    /// Whether something was changed that the process with the pages was not told: nothing is acknowledged
    /// any more.
    pub fn is_unheard(&self) -> bool {
        self.leaving.is_unheard()
    }

    /// Writes down for the next process that the other machines were not told everything, where that is so.
    pub fn mark_untold(&self) {
        if let Some(others) = &self.others {
            others.mark(self.snapshots.as_deref());
        }
    }

    /// The process ends now, with what it has in hand, as if it were killed: nothing is noted any more.
    pub fn abandon(&self) {
        if let Some(snapshots) = &self.snapshots {
            snapshots.abandon();
        }
    }

    /// Writes down for the next process that something was in hand which may have changed anything.
    pub fn mark_unheard(&self) {
        if let (Some(_), Some(snapshots)) = (&self.others, &self.snapshots) {
            snapshots.mark_untold();
        }
    }

    /// Whether pages may be used that are not in the store here: those of a snapshot that is not loaded yet, or
    /// of the process that has taken over.
    pub fn has_pages_elsewhere(&self) -> bool {
        self.is_leaving() || self.snapshots.as_ref().is_some_and(|all| !all.is_taken_up())
    }

    /// The origin has given a later answer for these pages: whatever was kept of them for another process is over.
    pub fn superseded_elsewhere(&self, targets: &[ChangeTarget<'_>]) {
        if let Some(snapshots) = &self.snapshots {
            snapshots.note(targets);
        }
        self.hand_on(targets, Strength::Drop);
    }

    /// Tells the other machines of a change.
    pub fn tell_others(&self, targets: &[ChangeTarget<'_>], strength: Strength) {
        if let Some(others) = &self.others {
            others.tell(targets, strength);
        }
    }

    /// How many changes were for the other machines.
    pub fn told_others(&self) -> u64 {
        self.others.as_ref().map_or(0, |others| others.last())
    }

    /// Waits until the other machines have applied what was changed here after so many changes for them, for as
    /// long as the site has it; counts where they have not.
    pub async fn heard_by_others(&self, told: u64) -> Waited {
        let Some(others) = &self.others else { return Waited::No };
        let waited = others.heard(told, self.snapshots.as_deref()).await;
        if waited == Waited::Late {
            self.counters.stream_late.add();
        }
        waited
    }

    /// Tells the successor of a change, where there is one. Where it cannot be told and has not served yet, it
    /// never will, and nothing that was left for it may be used. Where it has served, the pages are its own,
    /// or those of whoever came after it: the change must not be acknowledged.
    fn hand_on(&self, targets: &[ChangeTarget<'_>], strength: Strength) {
        if !self.is_leaving() {
            return;
        }
        let Some(successor) = self.successor() else { return };
        let (host, mut told) = (self.config.hosts.canonical.as_deref(), Handed::Lost);
        // It answers when it serves, and before that tasks may have to end which wait for this thread.
        off_the_way(&mut || told = successor.change(host, targets, strength));
        match (told, &self.snapshots) {
            (Handed::Lost, _) if successor.has_served() => self.leaving.unheard(),
            (Handed::Lost, Some(snapshots)) => snapshots.start_over(),
            (Handed::Applied, _) | (Handed::Lost, None) => {}
        }
    }

    fn changed(&self, applied: &AppliedChange, targets: usize, by: &'static str) {
        self.took(applied, targets, by);
        if self.config.rewarm.is_some() {
            self.rewarm.notify_one();
        }
    }

    fn took(&self, applied: &AppliedChange, targets: usize, by: &'static str) {
        self.counters.invalidations.add();
        self.keep_lease();
        if applied.dropped >= UNTIDY_PAGES {
            self.untidy.notify_one();
        }
        tracing::debug!(
            event = "invalidated",
            by,
            targets,
            number = applied.number.get(),
            dropped = applied.dropped,
            marked = applied.marked
        );
    }

    /// For pages of the memcached port, of which nobody says when their render began.
    fn keep_lease(&self) {
        if let Some(leases) = &self.leases {
            leases.changed(&self.store, || self.clock.now().0);
        }
    }
}

/// Does what takes long: the thread's other tasks are handed to another thread first, so that nobody's hit waits
/// for it.
pub fn off_the_way(touch: &mut dyn FnMut()) {
    let runtime = tokio::runtime::Handle::try_current().map(|runtime| runtime.runtime_flavor());
    match runtime {
        Ok(tokio::runtime::RuntimeFlavor::MultiThread) => tokio::task::block_in_place(touch),
        _ => touch(),
    }
}
