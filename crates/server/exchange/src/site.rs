//! One site as requests meet it: what it is while it runs ([`SiteState`]), and all that answering for it takes: the
//! renders in progress, the origin, the files, the databases that it follows, the places for connections.
//!
//! This is composition only. What a site does stands in the modules that are given it; those that need its state
//! alone are given that ([`Site::state`]). The configuration can be read again while Pagewell runs (`reload`). Then
//! there is another [`Site`] that shares all parts with the one before, and requests from then on come to that one.

use crate::access_log::AccessLog;
use crate::codings;
use crate::purge::Searches;
use crate::render::Waiter;
use crate::sites::Neighbours;
use crate::static_files::StaticFiles;
use change_sources::ChangeSources;
use config::{Config, FilesConfig};
use origin::Origin;
use origin::routes::{Resolved, Root};
use origin::spool::Spool;
use page_store::{FillLimits, Fills};
use site_rules::Load;
use site_state::SiteState;
use site_state::clock::Clock;
use site_state::per_address::PerAddress;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::Semaphore;

/// A site by one reading of the configuration. A request keeps the one that it came to, so that nothing is
/// decided half by one reading and half by another.
#[derive(Clone)]
pub struct Site {
    state: Arc<SiteState>,
    /// The other sites of this process, where this is the default site.
    pub neighbours: Arc<Neighbours>,
    /// The renders in progress.
    pub fills: Arc<Fills<Waiter>>,
    /// What renders the pages.
    pub origin: Arc<Origin>,
    /// The document root, where there is one.
    pub files: Option<Arc<(FilesConfig, StaticFiles)>>,
    /// Where its scripts lie, as found lately.
    resolved: Arc<Resolved>,
    /// Pages that wait for compression.
    pub coding_queue: Arc<codings::Queue>,
    /// The access log, where there is one and this is the default site.
    pub access_log: Option<Arc<AccessLog>>,
    /// Turns to search the pages for an expression.
    pub searches: Arc<Searches>,
    /// The databases and nodes whose changes invalidate pages.
    pub sources: Arc<ChangeSources>,
    /// Where responses wait for their clients that are too long for memory.
    pub response_files: Arc<Spool>,
    /// Places for connections.
    pub connections: Arc<Semaphore>,
    /// How many connections each address has.
    pub per_address: Arc<PerAddress>,
    /// Places for connections that have changed to another protocol.
    pub upgrades: Arc<Semaphore>,
    /// The site by the reading that counts. Guards that one value.
    current: Arc<Mutex<Weak<Site>>>,
}

impl Deref for Site {
    type Target = SiteState;

    #[inline]
    fn deref(&self) -> &SiteState {
        &self.state
    }
}

impl Site {
    /// Puts a site together. `is_door`: it is the default site, to which connections come first.
    pub fn new(
        config: Arc<Config>,
        clock: Clock,
        origin: Origin,
        neighbours: Neighbours,
        is_door: bool,
    ) -> Arc<Site> {
        let limits = &config.limits;
        let log = config.access_log.as_ref().filter(|_| is_door);
        let files_bytes = SiteState::files_bytes(&config) as u64;
        let files = config.site.files.clone();
        let fill_limits = FillLimits { followers_max: limits.followers, ..FillLimits::default() };
        let sources = Arc::new(ChangeSources::new(&config));
        let site = Arc::new(Site {
            neighbours: Arc::new(neighbours),
            fills: Arc::new(Fills::new(fill_limits)),
            origin: Arc::new(origin),
            files: files.map(|files| Arc::new((files, StaticFiles::new(files_bytes)))),
            resolved: Arc::default(),
            coding_queue: Arc::new(codings::Queue::new(limits.coding_queue)),
            access_log: log.map(|log| Arc::new(AccessLog::new(log))),
            searches: Arc::default(),
            response_files: Arc::new(Spool::for_responses(&config)),
            connections: Arc::new(Semaphore::new(limits.connections)),
            per_address: Arc::default(),
            upgrades: Arc::new(Semaphore::new(limits.upgrades)),
            current: Arc::default(),
            state: SiteState::new(config, clock, sources.cluster(), is_door),
            sources,
        });
        *site.current() = Arc::downgrade(&site);
        site
    }

    /// The same site by another reading of the configuration. It counts once it is [activated](Self::activate).
    pub fn reread(&self, config: Arc<Config>, neighbours: Neighbours) -> Arc<Site> {
        let (state, neighbours) = (self.state.reread(config), Arc::new(neighbours));
        Arc::new(Site { state, neighbours, ..self.clone() })
    }

    /// From now on this reading counts, for every request that comes.
    pub fn activate(self: &Arc<Site>) {
        *self.current() = Arc::downgrade(self);
        self.state.activate();
    }

    /// The site by the reading that counts.
    pub fn now(self: &Arc<Site>) -> Arc<Site> {
        if self.is_current() {
            return self.clone();
        }
        // While the server stops there may be none any more.
        self.current().upgrade().unwrap_or_else(|| self.clone())
    }

    /// What the site is while it runs, without what answers its requests.
    #[inline]
    pub fn state(&self) -> &Arc<SiteState> {
        &self.state
    }

    /// The document root, with what was found in it lately; none in front of an HTTP origin.
    pub fn root(&self) -> Option<Root<'_>> {
        let (files, _) = self.files.as_deref()?;
        Some(Root { files, resolved: Some((&self.resolved, self.clock.now())) })
    }

    /// How busy the origin is, for rules that depend on it.
    pub fn load(&self) -> Load {
        let watched = self.config.rules.watches_load();
        if watched && self.origin.places().waiting() > 0 { Load::Saturated } else { Load::Normal }
    }

    fn current(&self) -> MutexGuard<'_, Weak<Site>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
