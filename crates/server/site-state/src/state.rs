//! The run-time state of a site: its configuration, its pages, its counters and history.
//! [`SiteState::changes`] is the only way in which its pages are invalidated.
//!
//! The configuration can be reloaded while Pagewell runs (`reload`). Then a new [`SiteState`] with
//! the same [`Lasting`] part is created. A `SiteState` never changes, so a request uses one version
//! of the configuration. Mutable values in the lasting part have their own locks (see the openings
//! of `page_store`, `history` and `snapshot`).

use crate::changes::Changes;
use crate::cluster::Cluster;
use crate::journal::Snapshots;
use crate::memcached_leases::Leases;
use crate::pending_changes::PendingChanges;
use crate::successor::{Leaving, SuccessorProcess};
use crate::uncovered_tags::UncoveredTags;
use config::{Config, Limits};
use history::History;
use http_cache::{StoredFacts, Timestamp};
use page_store::{Dependencies, Number, Store};
use request_values::target::TargetUri as UriTarget;
use statements::footprints::{Footprints, PageReads, ReadsRefused, RenderStatements};
use statements::terms::Terms;
use std::borrow::Cow;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use stored_pages::page::{self, StoredPage};
use telemetry::clock::Clock;
use telemetry::counters::Counters;
use telemetry::traces::Exporter;
use tokio::sync::Notify;

/// Static files may use this fraction (1/`FILES_SHARE`) of the page budget.
const FILES_SHARE: usize = 8;
/// The pages that are evicted at a time to make room for statements.
const EVICTED_PAGES: usize = 32;
/// How often that is done for one page.
const EVICTIONS_MAX: usize = 16;
/// The number of no version of the configuration.
const NO_READING: u64 = u64::MAX;
/// The number of the next version of the configuration of any site.
static NEXT_READING: AtomicU64 = AtomicU64::new(1);

fn next_reading() -> u64 {
    NEXT_READING.fetch_add(1, Ordering::Relaxed)
}

/// A site with one version of the configuration.
pub struct SiteState {
    /// The configuration as used.
    pub config: Arc<Config>,
    /// The limits of the configuration.
    pub limits: Arc<Limits>,
    /// The number of this version of the configuration; no two of a process have the same.
    reading: u64,
    lasting: Arc<Lasting>,
}

/// The part of a site that survives a reload of the configuration.
pub struct Lasting {
    /// The clock of the process.
    pub clock: Clock,
    /// The store with the site's pages.
    pub store: Store<StoredPage>,
    /// The counters of the site.
    pub counters: Counters,
    /// Notified when a change has left entries of the index that need tidying.
    pub untidy: Notify,
    /// Notified when a change has left pages for cache warming.
    pub rewarm: Notify,
    /// Leases for the memcached port, if there is one.
    pub leases: Option<Arc<Leases>>,
    /// The search terms on which pages depend.
    pub terms: Terms,
    /// The statements on which pages depend.
    pub footprints: Footprints,
    /// Tags of pages that no rule for the databases covers.
    pub uncovered_tags: UncoveredTags,
    /// Bytes of responses that are being collected for the store.
    pub collected_bytes: AtomicUsize,
    /// The history for `explain`, `misses` and `changes`.
    pub history: Arc<History>,
    /// The snapshots and their journal, if pages survive the process.
    pub snapshots: Option<Arc<Snapshots>>,
    /// The other nodes of the cluster, if there are any.
    pub cluster: Option<Arc<dyn Cluster>>,
    /// Operations in flight that may announce a change.
    pub pending: Arc<PendingChanges>,
    /// The namespace of the site's keys and tags in the store.
    pub name: page_store::Site,
    /// The exporter of spans, if requests are traced and this is the default site.
    pub exporter: Option<Arc<Exporter>>,
    /// Whether this process still answers from its cache, and which process does instead.
    pub leaving: Leaving,
    /// The current version of the configuration; [`NO_READING`] once another process has the pages.
    current_reading: AtomicU64,
    /// The site with that version. The lock guards only this value.
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
    /// Creates the state of a site. `cluster` publishes its changes to other nodes. `is_default`: it
    /// is the default site, to which connections come first.
    pub fn new(
        config: Arc<Config>,
        clock: Clock,
        cluster: Option<Arc<dyn Cluster>>,
        is_default: bool,
    ) -> Arc<SiteState> {
        let limits = Arc::new(config.limits.clone());
        let lasting = Arc::new(Lasting::new(&config, clock, cluster, is_default));
        let reading = next_reading();
        lasting.current_reading.store(reading, Ordering::Release);
        let state = Arc::new(SiteState { config, limits, reading, lasting });
        *state.lasting.current() = Arc::downgrade(&state);
        state
    }

    /// Creates the same site with a new configuration. It takes effect when it is
    /// [activated](Self::activate).
    pub fn reread(&self, config: Arc<Config>) -> Arc<SiteState> {
        let limits = Arc::new(config.limits.clone());
        let (reading, lasting) = (next_reading(), self.lasting.clone());
        Arc::new(SiteState { config, limits, reading, lasting })
    }

    /// The dependencies of a page whose render has run these statements, see [`Footprints::depend`]. If there is no
    /// room for more statements, the least used pages with statements are evicted.
    ///
    /// # Errors
    /// The reads are not known, or a row that they touch has changed since.
    pub fn depend(
        &self,
        statements: RenderStatements<'_>,
        since: Number,
        made: (Timestamp, Timestamp),
    ) -> Result<PageReads, ReadsRefused> {
        for _ in 0..EVICTIONS_MAX {
            let has_reads = |page: &StoredPage| page.reads().is_some();
            if self.footprints.has_room() || self.store.evict_some(EVICTED_PAGES, has_reads) == 0 {
                break;
            }
        }
        self.footprints.depend(statements, since, made)
    }

    /// The number of this version of the configuration, from 1: of this site only, and of no other version that was or
    /// will be read in this process.
    #[inline]
    pub fn reading(&self) -> u64 {
        self.reading
    }

    /// Makes this configuration current for all later requests.
    pub fn activate(self: &Arc<SiteState>) {
        *self.lasting.current() = Arc::downgrade(self);
        self.lasting.current_reading.fetch_max(self.reading, Ordering::AcqRel);
    }

    /// Whether this version of the configuration is current. Always false once another process has
    /// the pages.
    #[inline]
    pub fn is_current(&self) -> bool {
        self.lasting.current_reading.load(Ordering::Acquire) == self.reading
    }

    /// The site with the current configuration.
    pub fn now(self: &Arc<SiteState>) -> Arc<SiteState> {
        if self.is_current() {
            return self.clone();
        }
        // While the server stops, there may be none.
        self.lasting.current().upgrade().unwrap_or_else(|| self.clone())
    }

    /// The only way in which the site's pages are invalidated.
    #[inline]
    pub fn changes(&self) -> Changes<'_> {
        Changes::of(self)
    }

    /// Stops answering from the cache; from now on every change is also sent to the successor.
    pub fn leave(&self, successor: Arc<dyn SuccessorProcess>) {
        self.leaving.to(successor);
        self.lasting.current_reading.store(NO_READING, Ordering::Release);
    }

    /// Stops answering from the cache, while the server stops. Other nodes need not wait for this
    /// one.
    pub fn leave_alone(&self) {
        self.leaving.alone();
        self.lasting.current_reading.store(NO_READING, Ordering::Release);
    }

    /// Whether a reload has activated another version of the configuration. Also false once another
    /// process has the pages: the store of this one is no longer read.
    pub fn is_replaced(&self) -> bool {
        let current = self.lasting.current_reading.load(Ordering::Acquire);
        current != self.reading && current != NO_READING
    }

    /// Whether this process answers from its cache. It stops once another process has the pages, or
    /// when the server stops.
    #[inline]
    pub fn answers_from_cache(&self) -> bool {
        !self.leaving.is()
    }

    /// The process that has the pages, while it exists.
    pub fn successor(&self) -> Option<Arc<dyn SuccessorProcess>> {
        self.leaving.successor()
    }

    /// Whether a change did not reach the process that has the pages; nothing is acknowledged any
    /// more.
    pub fn has_lost_change(&self) -> bool {
        self.leaving.has_lost_change()
    }

    /// Records for the next process that the other nodes lack a change, if they do.
    pub fn mark_unpublished(&self) {
        if let Some(cluster) = &self.cluster {
            cluster.mark(self.snapshots.as_deref());
        }
    }

    /// Ends the process at once, with all operations in flight, as if it were killed: nothing more
    /// is recorded.
    pub fn abandon(&self) {
        if let Some(snapshots) = &self.snapshots {
            snapshots.abandon();
        }
    }

    /// Records for the next process that an operation was in flight whose changes are unknown.
    pub fn mark_change_lost(&self) {
        if let (Some(_), Some(snapshots)) = (&self.cluster, &self.snapshots) {
            snapshots.mark_unpublished();
        }
    }

    /// Whether pages outside this store may be used: of a snapshot that is not loaded yet, or of
    /// the process that has taken over.
    pub fn has_pages_elsewhere(&self) -> bool {
        !self.answers_from_cache() || self.snapshots.as_ref().is_some_and(|all| !all.is_taken_up())
    }

    /// The target of the shared page, if it differs from the request's. It has the canonical host,
    /// and normalised path and query.
    pub fn shared(&self, written: &UriTarget) -> Option<UriTarget> {
        let (host, sent, page) = self.shared_url(&written.host, &written.path_and_query)?;
        let page = (page != sent).then(|| page.into_owned());
        let path = sent.split('?').next().unwrap_or_default();
        let path_written = written.path();
        Some(UriTarget {
            written: (path != path_written).then(|| path_written.to_owned()),
            scheme: written.scheme,
            host: host.to_owned(),
            path_and_query: sent.into_owned(),
            normal: page,
        })
    }

    /// The same of a host and of a path with its query: the host, and path and query for the origin and of the page.
    pub fn shared_url<'a>(
        &'a self,
        host: &'a str,
        path_and_query: &'a str,
    ) -> Option<(&'a str, Cow<'a, str>, Cow<'a, str>)> {
        let normal = self.config.rules.form().normal(path_and_query);
        let hosts = &self.config.hosts;
        let is_alias = || hosts.aliases.iter().any(|alias| alias == host);
        let canonical = hosts.canonical.as_deref().filter(|_| is_alias());
        let same = matches!((&normal.sent, &normal.page), (Cow::Borrowed(_), Cow::Borrowed(_)));
        let differs = !same || canonical.is_some();
        differs.then(|| (canonical.unwrap_or(host), normal.sent, normal.page))
    }

    /// The dependencies of a page with this stored response, and these reads if they are known.
    /// `since` is the number of its lease; `None`: it is unknown which changes the page includes.
    pub fn dependencies(
        &self,
        stored: &StoredFacts,
        reads: Option<&PageReads>,
        path_and_query: &str,
        since: Option<Number>,
    ) -> Dependencies {
        let mut all = page::dependencies(stored, &self.store, self.name, path_and_query);
        for tag in reads.iter().flat_map(|reads| reads.tags()) {
            all.tag(&tag);
        }
        self.terms.depend(&mut all, stored.tags().iter(), since, &self.changes());
        all
    }

    /// The maximum memory for static files in bytes, as a part of the site's budget.
    pub fn files_bytes(config: &Config) -> usize {
        config.site.files.as_ref().map_or(0, |_| config.memory_bytes / FILES_SHARE)
    }
}

impl Lasting {
    fn new(
        config: &Config,
        clock: Clock,
        cluster: Option<Arc<dyn Cluster>>,
        is_default: bool,
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
        let counters = Counters::default();
        let exporter = config.traces.as_ref().filter(|_| is_default);
        let exporter = exporter.map(|to| Arc::new(Exporter::new(to, clock.clone(), &counters)));
        Lasting {
            store,
            counters,
            untidy: Notify::new(),
            rewarm: Notify::new(),
            terms: Terms::new(kinds.map(str::to_owned)),
            footprints: Footprints::new(config.automatic.clone(), config.memory_bytes),
            uncovered_tags: UncoveredTags::default(),
            collected_bytes: AtomicUsize::new(0),
            history: Arc::new(History::new(config.memory_bytes, clock.now().0)),
            snapshots: config.snapshot.clone().map(|config| Arc::new(Snapshots::new(config))),
            cluster,
            name: page_store::Site(0),
            leases,
            clock,
            exporter,
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
