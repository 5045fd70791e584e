//! A running server: it binds its sockets, starts its origin, serves, and shuts down gracefully. On
//! shutdown it stops accepting, finishes the requests in flight within a limit, and then stops
//! php-fpm.

use crate::automatic_https::AutomaticHttps;
use crate::memcached::{self, Keeper, PartialRequests};
use crate::periodic;
use crate::script_environment;
use crate::snapshot;
use crate::take_over::{Doorway, Following, Open, Predecessor, StartedProcess, SuccessorPid};
use certificates::Certificates;
use config::{Address, Config};
use control::api::ControlParts;
use control::history::MetricsHistory;
use control::reload::{Reload, warn_of_loops};
use delivery::site::Site;
use delivery::site::SiteTable;
use front::listen;
use origin::Origin;
use origin::php_fpm::PhpFpm;
use site_state::journal::Snapshots;
use sockets::accept::{BoundSocket, Listener, NotOpened, PassedSockets};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use telemetry::access_log::{self, Sink, Writing};
use telemetry::clock::Clock;
use telemetry::per_address::PerAddress;
use telemetry::phase::{Phase, PhaseWatch};
use telemetry::traces;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How often the shutdown checks whether the last connection has ended.
const DRAIN_LOOK: Duration = Duration::from_millis(10);

/// How long closing the last idle connections may take after a zero-downtime restart.
const LAST_CLOSED: Duration = Duration::from_secs(1);

/// How long a new process waits for a database during a zero-downtime restart. No process accepts
/// connections then.
const IN_BETWEEN: Duration = Duration::from_millis(500);

/// The timeout for writing the last lines of the access log.
const LAST_LINES: Duration = Duration::from_secs(5);
/// The timeout for exporting the last spans.
const LAST_SPANS: Duration = Duration::from_secs(5);

/// Sockets and files that are opened before the process changes its user and starts other threads.
pub struct OpenedResources {
    listen: Vec<BoundSocket>,
    listen_tls: Vec<BoundSocket>,
    items: Vec<BoundSocket>,
    admin: BoundSocket,
    tls: Option<Arc<Certificates>>,
    sink: Option<Sink>,
}

impl OpenedResources {
    /// Binds all addresses, or uses the sockets that were passed for them. Reads the certificates
    /// and opens the access log.
    ///
    /// # Errors
    /// An address is in use, a file cannot be read, or a passed socket matches no address.
    pub fn open(config: &Config, mut passed: PassedSockets) -> Result<OpenedResources, NotOpened> {
        let mut taken = Vec::new();
        let mut opened = |bound: Result<BoundSocket, NotOpened>| match bound {
            // All of them are named, so that one attempt shows every conflict.
            Err(error) if error.is_taken => {
                taken.push(error.sentence);
                Ok(None)
            }
            bound => bound.map(Some),
        };
        let mut bind = |all: &[Address]| {
            let each = all.iter().map(|at| opened(BoundSocket::open_for_visitors(at, &mut passed)));
            each.filter_map(Result::transpose).collect::<Result<Vec<_>, NotOpened>>()
        };
        let tls = if config.listen_tls.is_empty() {
            None
        } else {
            Some(Arc::new(certificates_of(config)?))
        };
        let (listen, listen_tls) = (bind(&config.listen)?, bind(&config.listen_tls)?);
        let items = config
            .memcached
            .iter()
            .flat_map(|port| port.listen.iter().map(|address| (port.socket_mode, address)));
        let items = items.map(|(mode, at)| opened(BoundSocket::open_for(mode, at, &mut passed)));
        let items = items.filter_map(Result::transpose).collect::<Result<Vec<_>, NotOpened>>()?;
        let admin = opened(BoundSocket::open(&config.admin, &mut passed))?;
        let Some(admin) = admin.filter(|_| taken.is_empty()) else {
            return Err(NotOpened { sentence: taken.join("\n"), is_taken: true });
        };
        passed.all_used()?;
        let sink = config.access_log.as_ref().map(|log| Sink::open(&log.to)).transpose()?;
        Ok(OpenedResources { listen, listen_tls, items, admin, tls, sink })
    }
}

/// The certificates of the files; those of `[acme]` follow when the sites are there.
fn certificates_of(config: &Config) -> Result<Certificates, String> {
    if config.acme.is_some() && config.tls.is_empty() {
        return Certificates::load(Vec::new());
    }
    Certificates::of_files(&config.tls)
}

/// A running Pagewell with its sockets, sites and tasks.
pub struct Server {
    site: Arc<Site>,
    addresses: Vec<Address>,
    tls_addresses: Vec<Address>,
    memcached: Vec<Address>,
    admin: Address,
    control: JoinHandle<()>,
    /// Reloads the configuration, once it is set and if there is a file.
    reload: Arc<OnceLock<Reload>>,
    phase: Arc<watch::Sender<Phase>>,
    doorway: Arc<Doorway>,
    /// Completes when another process has taken over.
    leaving: JoinHandle<SuccessorPid>,
    /// The process that this one replaces, which may still have requests in flight.
    following: Option<Following>,
    php: Vec<PhpFpm>,
    /// Writes the access log, if there is one.
    writing: Option<Writing>,
    /// Exports spans to the collector, if there is one.
    exporting: JoinHandle<()>,
}

impl Server {
    /// Starts the server.
    ///
    /// # Errors
    /// A sentence for the operator, for example: an address is in use, or PHP does not start.
    pub async fn start(config: Arc<Config>, clock: Clock) -> Result<Server, String> {
        let prepared = OpenedResources::open(&config, PassedSockets::default())
            .map_err(|error| error.sentence)?;
        Server::start_with(config, clock, prepared, None).await
    }

    /// Starts the server with sockets and files opened before. Takes the place of `predecessor`, if
    /// given. The future is boxed, so that its code is compiled in this crate alone, and not again in
    /// the program and in each test.
    ///
    /// # Errors
    /// As for [`Server::start`].
    pub fn start_with(
        config: Arc<Config>,
        clock: Clock,
        prepared: OpenedResources,
        predecessor: Option<Predecessor>,
    ) -> Pin<Box<dyn Future<Output = Result<Server, String>>>> {
        Box::pin(Server::start_opened(config, clock, prepared, predecessor))
    }

    async fn start_opened(
        config: Arc<Config>,
        clock: Clock,
        prepared: OpenedResources,
        predecessor: Option<Predecessor>,
    ) -> Result<Server, String> {
        let OpenedResources { listen, listen_tls, items, admin, tls, sink } = prepared;
        let on = |all: Vec<BoundSocket>| {
            all.into_iter().map(Listener::on).collect::<Result<Vec<_>, _>>()
        };
        let (listeners, tls_listeners, items) = (on(listen)?, on(listen_tls)?, on(items)?);
        let admin = Listener::on(admin)?;
        let mut php = Vec::new();
        let site = match start_sites(config.clone(), clock, &admin.address(), &mut php).await {
            Ok(site) => site,
            Err(error) => {
                stop_all(php).await;
                return Err(error);
            }
        };
        let (phase, stopped) = watch::channel(Phase::default());
        let https = AutomaticHttps::begin(&site, tls.as_ref()).await;
        let following = match take_place(&site, predecessor, &stopped).await {
            Ok(following) => following,
            Err(error) => {
                stop_all(php).await;
                return Err(error);
            }
        };
        let log = sink.zip(site.access_log.as_ref());
        let dropped = &site.state().counters.access_log_dropped;
        let writing = log.map(|(sink, log)| access_log::start(log, sink, dropped.clone()));
        let writing = match writing.transpose() {
            Ok(writing) => writing,
            Err(error) => {
                stop_all(php).await;
                return Err(error);
            }
        };
        let phase = Arc::new(phase);
        let all = listeners.iter().chain(&tls_listeners).chain(&items).chain([&admin]);
        let doorway = Arc::new(Doorway::new(site.clone(), phase.clone(), copies(all)?));
        let (reload, history) = (Arc::new(OnceLock::new()), MetricsHistory::begin(&site));
        let parts = ControlParts::new(&site, &reload, &history);
        let server = Server {
            writing,
            exporting: tokio::spawn(traces::run(site.state().exporter.clone())),
            following,
            leaving: tokio::spawn(doorway.clone().wait(admin.address())),
            doorway,
            phase,
            addresses: listeners.iter().map(Listener::address).collect(),
            tls_addresses: tls_listeners.iter().map(Listener::address).collect(),
            memcached: items.iter().map(Listener::address).collect(),
            admin: admin.address(),
            control: tokio::spawn(control::api::serve(admin, parts, stopped.clone())),
            reload,
            site: site.clone(),
            php,
        };
        let plain = config.listen.iter().zip(listeners).map(|both| (both, None));
        let over_tls = config.listen_tls.iter().zip(tls_listeners).map(|both| (both, tls.clone()));
        for ((address, listener), tls) in plain.chain(over_tls) {
            let begin = config.begin_at(address);
            tokio::spawn(listen::serve(listener, begin, tls, site.clone(), stopped.clone()));
        }
        serve_items(items, &config, &site, &stopped);
        periodic::start(&site, (tls, https), (history, server.reload.clone()), &stopped);
        Ok(server)
    }

    /// Returns the addresses of the HTTP listeners.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Returns the addresses of the HTTPS listeners.
    pub fn tls_addresses(&self) -> &[Address] {
        &self.tls_addresses
    }

    /// Returns the addresses of the memcached port.
    pub fn memcached(&self) -> &[Address] {
        &self.memcached
    }

    /// Returns the address of the control interface.
    pub fn admin(&self) -> &Address {
        &self.admin
    }

    /// Reopens log files after a rotation.
    pub fn reopen(&self) {
        if let Some(log) = &self.site.access_log {
            log.reopen();
        }
    }

    /// The configuration is reloaded in this way, by a signal and by the control API. Without it, there is no file.
    pub fn reload_with(&self, reload: Reload) {
        // It is set once, at the start.
        let _ = self.reload.set(reload);
    }

    /// Reloads the configuration, if there is a file. The result is logged.
    pub fn reload(&self) -> impl Future<Output = ()> + use<> {
        let (site, reload) = (self.site.clone(), self.reload.clone());
        async move {
            if let Some(reload) = reload.get() {
                let _ = reload.run(&site).await;
            }
        }
    }

    /// Returns the default site.
    pub fn site(&self) -> &Arc<Site> {
        &self.site
    }

    /// Lets a process take over that this one has started.
    ///
    /// # Errors
    /// Another one is about to take over: a sentence for the operator.
    pub fn hand_over_to(&self, started: StartedProcess) -> Result<(), String> {
        let is_first = self.doorway.expect(started);
        if is_first { Ok(()) } else { Err("another process is about to take over".into()) }
    }

    /// Waits until another process has taken over.
    pub async fn left(&mut self) -> SuccessorPid {
        match (&mut self.leaving).await {
            Ok(left) => left,
            // A panic is in the log already.
            Err(_) => std::future::pending().await,
        }
    }

    /// Shuts down gracefully, within `limits.drain`.
    pub async fn stop(mut self) {
        self.leaving.abort();
        // A hand-over in progress is completed first, and may have succeeded just now.
        if (&mut self.leaving).await.is_ok() {
            return self.finish().await;
        }
        self.doorway.close();
        let default_site = self.site.now();
        let last: Vec<_> = default_site.all_sites().map(snapshot::begin_last).collect();
        // Nobody waits for what is not answered from memory any more.
        default_site
            .all_sites()
            .filter(|site| site.cluster.is_some())
            .for_each(|site| site.leave_alone());
        self.phase.send_replace(Phase::Stopping);
        let mut leaves = Vec::new();
        for site in default_site.all_sites() {
            change_sources::ended(&site.sources).await;
            leaves.push(change_sources::gone(&site.sources));
        }
        self.drain(&default_site).await;
        for leave in leaves {
            // A panic is in the log already.
            let _ = leave.await;
        }
        default_site.all_sites().for_each(|site| site.mark_unpublished());
        for site in default_site.all_sites() {
            periodic::save_records(site).await;
        }
        let ends = self.close(&default_site);
        for ((site, last), end) in default_site.all_sites().zip(last).zip(&ends) {
            match (end, last) {
                (End::AllHeard, Some(last)) => snapshot::write_last(site, last).await,
                (End::AllHeard, None) => {}
                (End::NotAll, _) => {
                    site.mark_change_lost();
                    snapshot::forget(site);
                }
            }
        }
        say_over(&default_site, &ends);
        end(&self.site, self.writing, self.exporting, self.php).await;
    }

    /// Ends after another process has taken over: finishes the requests in flight, within
    /// `limits.drain`.
    pub async fn finish(mut self) {
        self.doorway.close();
        let default_site = self.site.now();
        self.drain(&default_site).await;
        self.phase.send_replace(Phase::Ended);
        // Idle connections are closed now.
        let _ = tokio::time::timeout(LAST_CLOSED, no_connections(&default_site)).await;
        // Without this report the new process purges every page when this one ends.
        let ends = self.close(&default_site);
        // If changes are not published to the other nodes, the new process must do it. No change is
        // queued after this.
        if pending_publications(&default_site) == 0 {
            say_over(&default_site, &ends);
        }
        end(&self.site, self.writing, self.exporting, self.php).await;
    }

    /// Waits until no operation is in flight here or in the previous process, for at most
    /// `limits.drain`. It stops waiting once a change cannot be acknowledged any more.
    async fn drain(&mut self, default_site: &Arc<Site>) {
        let all = async {
            no_connections(default_site).await;
            // It ends when all running calls are answered.
            let _ = (&mut self.control).await;
            if let Some(following) = &mut self.following {
                following.ended().await;
            }
            // Some operations have no connected client any more.
            while writes_in_flight(default_site) + pending_publications(default_site) > 0 {
                tokio::time::sleep(DRAIN_LOOK).await;
            }
        };
        let drained = tokio::select! {
            drained = tokio::time::timeout(default_site.limits.drain, all) => drained.is_ok(),
            () = warn_uncovered_tags(default_site) => false,
        };
        let (connections, in_flight) =
            (default_site.counters.connections.get(), writes_in_flight(default_site));
        // After a hand-over, idle connections are closed later (`finish`), so they are no reason to
        // warn.
        if !drained && (in_flight > 0 || default_site.successor().is_none()) {
            tracing::warn!(event = "drain-ended", connections, in_flight);
        }
        match pending_publications(default_site) {
            0 => {}
            changes => tracing::error!(event = "cluster-not-published", changes),
        }
    }

    /// Prevents further operations that may lead to a change. Returns what is known about the
    /// changes of each site.
    fn close(&self, default_site: &Arc<Site>) -> Vec<End> {
        let all_told = self.following.as_ref().is_none_or(Following::has_ended);
        let of_site = |site: &Arc<Site>| {
            let is_idle = site.pending.close() == 0;
            if is_idle && all_told && !site.has_lost_change() { End::AllHeard } else { End::NotAll }
        };
        default_site.all_sites().map(of_site).collect()
    }
}

/// The state of a site's changes, after no operation can begin any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Every change is known, and no further one is possible.
    AllHeard,
    /// An operation is still in flight, so an unknown change is possible.
    NotAll,
}

/// Reports the last change to the successor process, if all changes are known.
fn say_over(default_site: &Arc<Site>, ends: &[End]) {
    if let Some(successor) = default_site.successor()
        && !ends.contains(&End::NotAll)
    {
        successor.over();
    }
}

/// Returns how many operations in flight may still lead to a change, over all sites.
fn writes_in_flight(default_site: &Arc<Site>) -> usize {
    default_site.all_sites().map(|site| site.pending.count()).sum()
}

/// Returns how many changes are not published to the other nodes yet, over all sites.
fn pending_publications(default_site: &Arc<Site>) -> usize {
    let of_site = |site: &Arc<Site>| site.sources.pending_publications();
    default_site.all_sites().map(of_site).sum::<u64>() as usize
}

/// Waits until a change cannot be acknowledged.
async fn warn_uncovered_tags(default_site: &Arc<Site>) {
    while !default_site.all_sites().any(|site| site.has_lost_change()) {
        tokio::time::sleep(DRAIN_LOOK).await;
    }
}

async fn no_connections(default_site: &Arc<Site>) {
    while default_site.counters.connections.get() > 0 {
        tokio::time::sleep(DRAIN_LOOK).await;
    }
}

/// Stops everything that remains after the connections have ended.
async fn end(
    default_site: &Arc<Site>,
    writing: Option<Writing>,
    exporting: JoinHandle<()>,
    php: Vec<PhpFpm>,
) {
    if let Some(exporter) = &default_site.exporter {
        exporter.end();
        let _ = tokio::time::timeout(LAST_SPANS, exporting).await;
    }
    if let Some(writing) = writing {
        // This takes longer only if the reader of a pipe is stuck.
        let _ = tokio::time::timeout(LAST_LINES, writing.end()).await;
    }
    stop_all(php).await;
}

/// Starts to answer from the cache. A predecessor, if given, has released its databases and
/// snapshots by then.
async fn take_place(
    default_site: &Arc<Site>,
    predecessor: Option<Predecessor>,
    stopped: &PhaseWatch,
) -> Result<Option<Following>, String> {
    let placed = match predecessor {
        Some(predecessor) => {
            // Errors here must be found before the running process gives up its cache.
            change_sources::check::before_following(&default_site.config).await?;
            Some(predecessor.take_place().await?)
        }
        None => None,
    };
    let Some(placed) = placed else {
        start_all(default_site, snapshot::Before::Ended, Duration::MAX, stopped).await?;
        return Ok(None);
    };
    // The old process reports its pending changes, and all of them must arrive.
    let snapshots = default_site.all_sites().filter_map(|site| site.snapshots.as_ref());
    let in_flight = snapshots.map(Snapshots::begin_in_flight).collect();
    // No process accepts connections now, so an unresponsive database is not waited for.
    start_all(default_site, snapshot::Before::HandedOver, IN_BETWEEN, stopped).await?;
    placed.serve(default_site, in_flight).await.map(Some)
}

/// Duplicates the listening sockets for a process that takes over.
fn copies<'a>(listeners: impl Iterator<Item = &'a Listener>) -> Result<Vec<Open>, String> {
    let copy = |listener: &Listener| {
        let socket = listener.copy().map_err(|error| format!("{}: {error}", listener.address()))?;
        Ok(Open { socket, is_ours: listener.is_ours() })
    };
    listeners.map(copy).collect()
}

/// Opens the snapshot of each site, then follows their databases, and begins their trials and audits. It waits for
/// each database for at most `first_timeout`.
async fn start_all(
    default_site: &Arc<Site>,
    before: snapshot::Before,
    first_timeout: Duration,
    stopped: &PhaseWatch,
) -> Result<(), String> {
    let begin = |site: &Arc<Site>| Ok((site.clone(), snapshot::begin(site, before)?));
    let loading = default_site.all_sites().map(begin).collect::<Result<Vec<_>, String>>()?;
    let sites = default_site.all_sites().map(|site| (site.state(), &*site.sources));
    change_sources::start(sites, first_timeout, stopped).await?;
    for (site, loading) in loading {
        delivery::trial::follow(&site);
        delivery::audit::follow(&site);
        tokio::spawn(snapshot::run(site, loading, stopped.clone()));
    }
    Ok(())
}

/// Starts the origins of all sites, and creates the sites. Returns the default site, which refers
/// to the others.
async fn start_sites(
    config: Arc<Config>,
    clock: Clock,
    admin: &Address,
    php: &mut Vec<PhpFpm>,
) -> Result<Arc<Site>, String> {
    warn_of_loops(&config);
    let (mut others, per_address) = (Vec::new(), PerAddress::default());
    let token_file = config.admin_token_file.as_deref();
    let environment = |site: &Config| script_environment::of(site, admin, token_file);
    for config in &config.other_sites {
        let (origin, own) = Origin::start_with(config, environment(config)).await?;
        php.extend(own);
        let other_sites = SiteTable::default();
        let own = per_address.of_other_site();
        others.push(Site::new(config.clone(), clock.clone(), origin, other_sites, own, false));
    }
    let (origin, own) = Origin::start_with(&config, environment(&config)).await?;
    php.extend(own);
    Ok(Site::new(config, clock, origin, SiteTable::new(others), per_address, true))
}

async fn stop_all(php: Vec<PhpFpm>) {
    for php in php {
        php.stop().await;
    }
}

/// Serves the memcached port, if there is one.
fn serve_items(items: Vec<Listener>, config: &Config, site: &Arc<Site>, stopped: &PhaseWatch) {
    let (Some(port), Some(leases)) = (&config.memcached, &site.leases) else { return };
    let keeper = Arc::new(Keeper::new(site.clone(), leases.clone()));
    let limits = memcache::Limits { item_bytes_max: port.item_bytes_max };
    let begun = Arc::new(PartialRequests::new(config.memory_bytes));
    for listener in items {
        let (keeper, begun) = (keeper.clone(), begun.clone());
        tokio::spawn(memcached::serve(listener, limits, keeper, begun, stopped.clone()));
    }
}
