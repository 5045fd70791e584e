//! One site with everything that its requests need. These are its run-time state ([`SiteState`]),
//! the renders in progress, the origin, the files, the followed databases, and the limits on
//! connections.
//!
//! This is composition only; other modules implement the behaviour. Those that need only the state
//! get that ([`Site::state`]). The configuration can be reloaded while Pagewell runs (`reload`).
//! Then a new [`Site`] is created, which shares all parts with the previous one and gets all later
//! requests.

mod failed_reload;
mod table;

pub use failed_reload::FailedReload;
pub use table::SiteTable;

use crate::audit::AuditQueue;
use crate::coding_queue;
use crate::file_cache::FileCache;
use crate::redirect_forms::RedirectForms;
use crate::searches::Searches;
use crate::services::OutsideServices;
use crate::trial::{self, TrialQueue};
use crate::waiter::Waiter;
use certificates::Certificates;
use change_sources::ChangeSources;
use config::{Config, FilesConfig};
use miss_control::SiteRates;
use origin::Origin;
use origin::routes::{PathCache, Root};
use origin::spool::Spool;
use page_store::{FillLimits, Fills};
use passwords::PasswordQueue;
use site_rules::Load;
use site_state::SiteState;
use site_state::signed_in_marks::SignedInMarks;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use telemetry::access_log::AccessLog;
use telemetry::clock::Clock;
use telemetry::per_address::PerAddress;
use telemetry::request_tap::RequestTap;
use tokio::sync::Semaphore;
use trial_record::{SavedRecord, SiteTrial};

/// A site with one version of the configuration. A request keeps the version with which it began,
/// so that all its decisions are consistent.
#[derive(Clone)]
pub struct Site {
    state: Arc<SiteState>,
    /// The other sites of this process, if this is the default site.
    pub other_sites: Arc<SiteTable>,
    /// The renders in progress.
    pub fills: Arc<Fills<Waiter>>,
    /// Marks of signed-in visitors and of the pages that they can share (LiteSpeed's ESI).
    pub signed_in: Arc<SignedInMarks>,
    /// The origin, which renders the pages.
    pub origin: Arc<Origin>,
    /// The document root, if there is one.
    pub files: Option<Arc<(FilesConfig, FileCache)>>,
    /// Cache of recently resolved script paths.
    resolved: Arc<PathCache>,
    /// Pages that wait for compression.
    pub coding_queue: Arc<coding_queue::Queue>,
    /// The access log, if there is one and this is the default site.
    pub access_log: Option<Arc<AccessLog>>,
    /// Shows requests to operators who watch them; that of the default site is used.
    pub request_tap: Arc<RequestTap>,
    /// The hits that an audit compares, its decisions and its results.
    pub audit: Arc<AuditQueue>,
    /// The answers that a trial compares.
    pub trial_queue: Arc<TrialQueue>,
    /// The trial of the site: what would have been answered, and whether that was right.
    pub trial: Arc<SiteTrial>,
    /// Limits concurrent searches of the pages for an expression.
    pub searches: Arc<Searches>,
    /// The databases and nodes whose changes invalidate pages.
    pub sources: Arc<ChangeSources>,
    /// Temporary files for responses that are too long for memory while their clients read them.
    pub response_files: Arc<Spool>,
    /// Limits the number of connections.
    pub connections: Arc<Semaphore>,
    /// The number of connections per client address.
    pub per_address: Arc<PerAddress>,
    /// The certificates of the TLS listeners, set at the start if there are such listeners.
    pub certificates: Arc<OnceLock<Arc<Certificates>>>,
    /// The checks of passwords; that of the default site is used.
    pub passwords: Arc<PasswordQueue>,
    /// The failure of the last reload; that of the default site is used.
    pub failed_reload: Arc<FailedReload>,
    /// The rates of verified crawlers, and of rules.
    pub rates: Arc<SiteRates>,
    /// The resolver and the challenge, which are asked about clients in the background.
    pub services: Arc<OutsideServices>,
    /// Limits the number of upgraded connections.
    pub upgrades: Arc<Semaphore>,
    /// The responses to redirects, laid out under this configuration.
    pub redirect_forms: Arc<RedirectForms>,
    /// The site with the current configuration. The lock guards only this value.
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
    /// Creates a site. `is_default`: it is the default site, to which connections come first. `per_address` of another
    /// site is [made for it](PerAddress::of_other_site).
    pub fn new(
        config: Arc<Config>,
        clock: Clock,
        origin: Origin,
        other_sites: SiteTable,
        per_address: PerAddress,
        is_default: bool,
    ) -> Arc<Site> {
        let limits = &config.limits;
        let log = config.access_log.as_ref().filter(|_| is_default);
        let files_bytes = SiteState::files_bytes(&config) as u64;
        let files = config.site.files.clone();
        let fill_limits = FillLimits { followers_max: limits.followers, ..FillLimits::default() };
        let sources = Arc::new(ChangeSources::new(&config));
        let site = Arc::new(Site {
            other_sites: Arc::new(other_sites),
            fills: Arc::new(Fills::new(fill_limits)),
            signed_in: Arc::default(),
            origin: Arc::new(origin),
            files: files.map(|files| Arc::new((files, FileCache::new(files_bytes)))),
            resolved: Arc::default(),
            coding_queue: Arc::new(coding_queue::Queue::new(limits.coding_queue)),
            access_log: log.map(|log| Arc::new(AccessLog::new(log))),
            request_tap: Arc::default(),
            audit: Arc::default(),
            trial_queue: Arc::default(),
            trial: Arc::default(),
            searches: Arc::default(),
            response_files: Arc::new(Spool::for_responses(&config)),
            connections: Arc::new(Semaphore::new(limits.connections)),
            per_address: Arc::new(per_address),
            certificates: Arc::default(),
            passwords: Arc::new(PasswordQueue::new(limits.password_checks)),
            failed_reload: Arc::default(),
            rates: Arc::default(),
            services: Arc::new(OutsideServices::new(&config)),
            upgrades: Arc::new(Semaphore::new(limits.upgrades)),
            redirect_forms: Arc::default(),
            current: Arc::default(),
            state: SiteState::new(config, clock, sources.cluster(), is_default),
            sources,
        });
        *site.current() = Arc::downgrade(&site);
        site
    }

    /// Creates the same site with a new configuration. It takes effect when it is
    /// [activated](Self::activate).
    pub fn reread(&self, config: Arc<Config>, other_sites: SiteTable) -> Arc<Site> {
        let services = Arc::new(OutsideServices::new(&config));
        let (state, other_sites) = (self.state.reread(config), Arc::new(other_sites));
        let redirect_forms = Arc::default();
        Arc::new(Site { state, other_sites, services, redirect_forms, ..self.clone() })
    }

    /// Makes this configuration current for all later requests.
    pub fn activate(self: &Arc<Site>) {
        *self.current() = Arc::downgrade(self);
        self.origin.places().set_mode(self.config.misses.mode);
        self.state.activate();
        trial::follow(self);
    }

    /// The site with the current configuration.
    pub fn now(self: &Arc<Site>) -> Arc<Site> {
        if self.is_current() {
            return self.clone();
        }
        // While the server stops, there may be none.
        self.current().upgrade().unwrap_or_else(|| self.clone())
    }

    /// The run-time state of the site, without the parts that answer requests.
    #[inline]
    pub fn state(&self) -> &Arc<SiteState> {
        &self.state
    }

    /// The records of this site in files: of its trial, and of its audit.
    pub fn records(&self) -> [&dyn SavedRecord; 2] {
        [&*self.trial, &self.audit.hours]
    }

    /// The document root, with the recently found files; `None` in front of an HTTP origin.
    pub fn root(&self) -> Option<Root<'_>> {
        let (files, _) = self.files.as_deref()?;
        Some(Root { files, resolved: Some((&self.resolved, self.clock.now())) })
    }

    /// The server that answers this path: the origin, or the challenge for its own paths.
    pub fn origin_of(&self, path_and_query: &str) -> &Origin {
        self.services.challenge_of(path_and_query).unwrap_or(&self.origin)
    }

    /// The load of the origin, for rules that depend on it.
    pub fn load(&self) -> Load {
        let watched = self.config.rules.watches_load();
        if watched && self.origin.places().waiting() > 0 { Load::Saturated } else { Load::Normal }
    }

    fn current(&self) -> MutexGuard<'_, Weak<Site>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
