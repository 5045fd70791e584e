//! What a site is while it runs: its configuration, its pages, what it counts and remembers, and the one way in
//! which its pages change ([`SiteState::changes`]). Whatever answers requests or follows a database works on it.
//!
//! The configuration can be read again while Pagewell runs (`reload`). Then there is another [`SiteState`] with
//! the same [`Lasting`] part; nothing in a `SiteState` changes, so a request that holds one is decided by one
//! reading of the configuration. What changes in the lasting part guards itself (see the heads of `page_store`,
//! `history` and `snapshot`).

use crate::changes::Changes;
use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::counters::Counters;
use crate::journal::Snapshots;
use crate::memcached_leases::Leases;
use crate::page::{self, StoredPage};
use crate::pending_changes::PendingChanges;
use crate::successor::{Leaving, SuccessorProcess};
use crate::terms::Terms;
use crate::traces::Exporter;
use crate::uncovered_tags::UncoveredTags;
use crate::why::Why;
use config::target::Target as UriTarget;
use config::{Config, Limits};
use http_cache::StoredFacts;
use page_store::{Dependencies, Number, Store};
use std::borrow::Cow;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::Notify;

/// The share of the page budget that files may take: one part in so many.
const FILES_SHARE: usize = 8;

/// A site by one reading of the configuration.
pub struct SiteState {
    /// The configuration as used.
    pub config: Arc<Config>,
    /// Its bounds.
    pub limits: Arc<Limits>,
    /// Which reading of the configuration it is, from 0.
    reading: u64,
    lasting: Arc<Lasting>,
}

/// The part of a site that outlives a reading of the configuration.
pub struct Lasting {
    /// The one clock.
    pub clock: Clock,
    /// The pages.
    pub store: Store<StoredPage>,
    /// The site's counters.
    pub counters: Counters,
    /// Notified when a change has left entries of the index that need tidying.
    pub untidy: Notify,
    /// Notified when a change has left pages to be rendered again.
    pub rewarm: Notify,
    /// Leases for the memcached port, where there is one.
    pub leases: Option<Arc<Leases>>,
    /// The searches that pages depend on.
    pub terms: Terms,
    /// Tags of pages that no rule for the databases covers.
    pub uncovered_tags: UncoveredTags,
    /// The history from which the site explains itself.
    pub why: Why,
    /// The snapshots and their journal, where the pages outlive the process.
    pub snapshots: Option<Arc<Snapshots>>,
    /// The other nodes of the cluster, where there are any.
    pub cluster: Option<Arc<dyn Cluster>>,
    /// Operations in flight that may announce a change.
    pub pending: Arc<PendingChanges>,
    /// The namespace of its keys and tags in the store.
    pub name: page_store::Site,
    /// Where spans go, where requests are traced and this is the default site.
    pub exporter: Option<Exporter>,
    /// Whether this process still answers from memory, and which process does instead.
    pub leaving: Leaving,
    /// The reading of the configuration that counts; `u64::MAX` once another process has the pages.
    current_reading: AtomicU64,
    /// The site by that reading. Guards that one value.
    current: Mutex<Weak<SiteState>>,
}

impl Deref for SiteState {
    type Target = Lasting;

    #[inline]
    fn deref(&self) -> &Lasting {
        &self.lasting
    }
}

impl SiteState {
    /// The state of a site that starts. `cluster`: how its changes reach other nodes; `is_door`: it is the default
    /// site, to which connections come first.
    pub fn new(
        config: Arc<Config>,
        clock: Clock,
        cluster: Option<Arc<dyn Cluster>>,
        is_door: bool,
    ) -> Arc<SiteState> {
        let limits = Arc::new(config.limits.clone());
        let lasting = Arc::new(Lasting::new(&config, clock, cluster, is_door));
        let state = Arc::new(SiteState { config, limits, reading: 0, lasting });
        *state.lasting.current() = Arc::downgrade(&state);
        state
    }

    /// The same site by another reading of the configuration. It counts once it is [activated](Self::activate).
    pub fn reread(&self, config: Arc<Config>) -> Arc<SiteState> {
        let limits = Arc::new(config.limits.clone());
        let (reading, lasting) = (self.reading + 1, self.lasting.clone());
        Arc::new(SiteState { config, limits, reading, lasting })
    }

    /// From now on this reading counts, for every request that comes.
    pub fn activate(self: &Arc<SiteState>) {
        *self.lasting.current() = Arc::downgrade(self);
        self.lasting.current_reading.fetch_max(self.reading, Ordering::AcqRel);
    }

    /// Whether this is the reading of the configuration that counts. Never, once another process has the pages.
    #[inline]
    pub fn is_current(&self) -> bool {
        self.lasting.current_reading.load(Ordering::Acquire) == self.reading
    }

    /// The site by the reading that counts.
    pub fn now(self: &Arc<SiteState>) -> Arc<SiteState> {
        if self.is_current() {
            return self.clone();
        }
        // While the server stops there may be none any more.
        self.lasting.current().upgrade().unwrap_or_else(|| self.clone())
    }

    /// The one way in which the site's pages are invalidated.
    #[inline]
    pub fn changes(&self) -> Changes<'_> {
        Changes::of(self)
    }

    /// From now on nothing is answered from memory, and every change goes to the successor as well.
    pub fn leave(&self, successor: Arc<dyn SuccessorProcess>) {
        self.leaving.to(successor);
        self.lasting.current_reading.store(u64::MAX, Ordering::Release);
    }

    /// From now on nothing is answered from memory, while the server stops: no node has to wait for what is
    /// applied here.
    pub fn leave_alone(&self) {
        self.leaving.alone();
        self.lasting.current_reading.store(u64::MAX, Ordering::Release);
    }

    /// Whether another process has the pages, or none.
    #[inline]
    pub fn is_leaving(&self) -> bool {
        self.leaving.is()
    }

    /// The process that has the pages, while it is there.
    pub fn successor(&self) -> Option<Arc<dyn SuccessorProcess>> {
        self.leaving.successor()
    }

    /// Whether a change did not reach the process that has the pages: nothing is acknowledged any more.
    pub fn has_lost_change(&self) -> bool {
        self.leaving.has_lost_change()
    }

    /// Records for the next process that the other nodes do not have every change, where that is so.
    pub fn mark_untold(&self) {
        if let Some(cluster) = &self.cluster {
            cluster.mark(self.snapshots.as_deref());
        }
    }

    /// The process ends now, with all that is in flight, as if it were killed: nothing is recorded any more.
    pub fn abandon(&self) {
        if let Some(snapshots) = &self.snapshots {
            snapshots.abandon();
        }
    }

    /// Records for the next process that an operation was in flight which may have changed anything.
    pub fn mark_unheard(&self) {
        if let (Some(_), Some(snapshots)) = (&self.cluster, &self.snapshots) {
            snapshots.mark_untold();
        }
    }

    /// Whether pages may be used that are not in the store here: those of a snapshot that is not loaded yet, or
    /// of the process that has taken over.
    pub fn has_pages_elsewhere(&self) -> bool {
        self.is_leaving() || self.snapshots.as_ref().is_some_and(|all| !all.is_taken_up())
    }

    /// The target of a page that may be shared, where it differs from the request's: the site's own
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

    /// The dependencies of a page with this stored response. `since` is the number of its lease; `None`: it is
    /// unknown which changes the page has seen.
    pub fn dependencies(
        &self,
        stored: &StoredFacts,
        path_and_query: &str,
        since: Option<Number>,
    ) -> Dependencies {
        let mut all = page::dependencies(stored, &self.store, self.name, path_and_query);
        self.terms.depend(&mut all, stored.tags().iter(), since, &self.changes());
        all
    }

    /// The bytes of memory that static files may take, out of the site's budget.
    pub fn files_bytes(config: &Config) -> usize {
        config.site.files.as_ref().map_or(0, |_| config.memory_bytes / FILES_SHARE)
    }
}

impl Lasting {
    fn new(
        config: &Config,
        clock: Clock,
        cluster: Option<Arc<dyn Cluster>>,
        is_door: bool,
    ) -> Lasting {
        let limits = &config.limits;
        let pages_bytes = config.memory_bytes - SiteState::files_bytes(config);
        let mut store_limits = page_store::Limits::new(pages_bytes);
        if let Some(private) = &config.private {
            store_limits.owner_pages_max = private.pages_per_owner;
        }
        if let Some(rewarm) = &config.rewarm {
            store_limits.rewarm_pages_max = limits.rewarm_pages;
            store_limits.rewarm_uses_min = rewarm.min_uses;
        }
        let store = Store::new(store_limits);
        let leases = config.memcached.as_ref().map(|memcached| {
            let epoch = clock.now().0 ^ (u64::from(std::process::id()) << 44);
            Arc::new(Leases::new(&store, memcached.render_time, epoch))
        });
        let kinds = config.databases.iter().flat_map(|database| database.rules.searches());
        Lasting {
            store,
            counters: Counters::default(),
            untidy: Notify::new(),
            rewarm: Notify::new(),
            terms: Terms::new(kinds.map(str::to_owned)),
            uncovered_tags: UncoveredTags::default(),
            why: Why::new(config.memory_bytes, clock.now().0),
            snapshots: config.snapshot.clone().map(|config| Arc::new(Snapshots::new(config))),
            cluster,
            name: page_store::Site(0),
            leases,
            clock,
            exporter: config.traces.as_ref().filter(|_| is_door).map(Exporter::new),
            pending: Arc::default(),
            leaving: Leaving::default(),
            current_reading: AtomicU64::new(0),
            current: Mutex::new(Weak::new()),
        }
    }

    fn current(&self) -> MutexGuard<'_, Weak<SiteState>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
