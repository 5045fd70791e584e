//! A running Pagewell: binds its sockets, starts its origin, serves, and stops in good order: it
//! accepts nobody any more, finishes what it has in hand within a bound, then ends php-fpm. What has
//! to be done now and then in the background is started here as well.

use crate::access_log::{self, Sink, Writing};
use crate::clock::Clock;
use crate::codings::{self, Compressor};
use crate::config::{Address, Config};
use crate::control;
use crate::database;
use crate::keep_time;
use crate::let_go;
use crate::listen::{self, Bound, Listener, NotOpened, Passed};
use crate::memcached::{self, Begun, Keeper};
use crate::origin::Origin;
use crate::origin::php_fpm::PhpFpm;
use crate::phase::{Phase, Told};
use crate::rewarm;
use crate::site::Site;
use crate::sites::Neighbours;
use crate::snapshot::{self, Snapshots};
use crate::take_over::{Doorway, Following, Left, Open, Predecessor};
use crate::tls::Tls;
use crate::traces;
use crate::unused;
use crate::wake;
use page_store::TidyOutcome;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How often what is idle is looked through.
const SWEEP: Duration = Duration::from_secs(5);
/// So many connections that rest leave something behind that is worth giving back to the system,
const CROWD: u64 = 1000;
/// when fewer than so many more of them come between two looks: as long as they do, it is used again.
const CALM: u64 = 50;
/// How often it is looked whether the last connection has ended.
const DRAIN_LOOK: Duration = Duration::from_millis(10);

/// How long the last idle connections may take to be closed, once another process has taken over.
const LAST_CLOSED: Duration = Duration::from_secs(1);

/// How long a process that takes over waits for a database, when the old one has let go: nobody accepts visitors.
const IN_BETWEEN: Duration = Duration::from_millis(500);

/// Between two batches of tidying up.
pub(crate) const BETWEEN_BATCHES: Duration = Duration::from_millis(1);

/// How long the last lines of the access log may take.
const LAST_LINES: Duration = Duration::from_secs(5);
/// How long the last spans may take.
const LAST_SPANS: Duration = Duration::from_secs(2);

/// What is opened by whoever has started Pagewell, before it becomes somebody else and has any other thread.
pub struct Prepared {
    listen: Vec<Bound>,
    listen_tls: Vec<Bound>,
    items: Vec<Bound>,
    admin: Bound,
    tls: Option<Arc<Tls>>,
    sink: Option<Sink>,
}

impl Prepared {
    /// Binds all addresses, or takes the sockets that were handed over for them; reads the certificates;
    /// opens the access log.
    ///
    /// # Errors
    /// An address is taken, a file cannot be read, a socket was handed over that no address names.
    pub fn open(config: &Config, mut passed: Passed) -> Result<Prepared, NotOpened> {
        let mut bind = |all: &[Address]| {
            let each = all.iter().map(|address| Bound::open_for_visitors(address, &mut passed));
            each.collect::<Result<Vec<_>, NotOpened>>()
        };
        let tls = match config.listen_tls.is_empty() {
            true => None,
            false => Some(Arc::new(Tls::load(&config.tls)?)),
        };
        let (listen, listen_tls) = (bind(&config.listen)?, bind(&config.listen_tls)?);
        let items = config
            .memcached
            .iter()
            .flat_map(|port| port.listen.iter().map(|address| (port.socket_mode, address)));
        let items = items.map(|(mode, address)| Bound::open_for(mode, address, &mut passed));
        let items = items.collect::<Result<Vec<_>, NotOpened>>()?;
        let admin = Bound::open(&config.admin, &mut passed)?;
        passed.all_used()?;
        let sink = config.access_log.as_ref().map(|log| Sink::open(&log.to)).transpose()?;
        Ok(Prepared { listen, listen_tls, items, admin, tls, sink })
    }
}

/// A running Pagewell.
pub struct Server {
    site: Arc<Site>,
    addresses: Vec<Address>,
    tls_addresses: Vec<Address>,
    memcached: Vec<Address>,
    admin: Address,
    control: JoinHandle<()>,
    phase: Arc<watch::Sender<Phase>>,
    doorway: Arc<Doorway>,
    /// Ends when another process has taken over.
    leaving: JoinHandle<Left>,
    /// The process whose place this one has taken, and which may still have something in hand.
    following: Option<Following>,
    php: Vec<PhpFpm>,
    /// What writes the access log, where there is one.
    writing: Option<Writing>,
    /// What sends spans to the collector, where there is one.
    exporting: JoinHandle<()>,
}

impl Server {
    /// Starts serving.
    ///
    /// # Errors
    /// A sentence for the operator: an address is taken, PHP does not start.
    pub async fn start(config: Arc<Config>, clock: Clock) -> Result<Server, String> {
        let prepared =
            Prepared::open(&config, Passed::default()).map_err(|error| error.sentence)?;
        Server::start_with(config, clock, prepared, None).await
    }

    /// Starts serving, with what was opened before; in the place of another process, where one is given.
    ///
    /// # Errors
    /// As for [`Server::start`].
    pub async fn start_with(
        config: Arc<Config>,
        clock: Clock,
        prepared: Prepared,
        predecessor: Option<Predecessor>,
    ) -> Result<Server, String> {
        let Prepared { listen, listen_tls, items, admin, tls, sink } = prepared;
        let on = |all: Vec<Bound>| all.into_iter().map(Listener::on).collect::<Result<Vec<_>, _>>();
        let (listeners, tls_listeners, items) = (on(listen)?, on(listen_tls)?, on(items)?);
        let admin = Listener::on(admin)?;
        let mut php = Vec::new();
        let site = match start_sites(config.clone(), clock, &mut php).await {
            Ok(site) => site,
            Err(error) => {
                stop_all(php).await;
                return Err(error);
            }
        };
        let (phase, stopped) = watch::channel(Phase::default());
        let following = match take_place(&site, predecessor, &stopped).await {
            Ok(following) => following,
            Err(error) => {
                stop_all(php).await;
                return Err(error);
            }
        };
        let log = sink.zip(site.access_log.as_ref());
        let writing = log.map(|(sink, log)| access_log::start(log, sink, site.clone()));
        let writing = match writing.transpose() {
            Ok(writing) => writing,
            Err(error) => {
                stop_all(php).await;
                return Err(error);
            }
        };
        let phase = Arc::new(phase);
        let all = listeners.iter().chain(&tls_listeners).chain(&items).chain([&admin]);
        let doorway = Doorway::new(site.clone(), phase.clone(), copies(all)?);
        let doorway = Arc::new(doorway);
        let server = Server {
            writing,
            exporting: tokio::spawn(traces::run(site.clone())),
            following,
            leaving: tokio::spawn(doorway.clone().wait(admin.address())),
            doorway,
            phase,
            addresses: listeners.iter().map(Listener::address).collect(),
            tls_addresses: tls_listeners.iter().map(Listener::address).collect(),
            memcached: items.iter().map(Listener::address).collect(),
            admin: admin.address(),
            control: tokio::spawn(control::serve(admin, site.clone(), stopped.clone())),
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
        if let Some(tls) = tls {
            tokio::spawn(follow_certificates(tls, site.clone(), stopped.clone()));
        }
        begin_chores(&site, &stopped);
        Ok(server)
    }

    /// Where visitors are served.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Where visitors are served over TLS.
    pub fn tls_addresses(&self) -> &[Address] {
        &self.tls_addresses
    }

    /// Where memcached's protocols are spoken.
    pub fn memcached(&self) -> &[Address] {
        &self.memcached
    }

    /// Where the control interface is.
    pub fn admin(&self) -> &Address {
        &self.admin
    }

    /// Opens files again that are written to, because they were moved away.
    pub fn reopen(&self) {
        if let Some(log) = &self.site.access_log {
            log.reopen();
        }
    }

    /// The site that connections come to first.
    pub fn site(&self) -> &Arc<Site> {
        &self.site
    }

    /// Waits until another process has taken over.
    pub async fn left(&mut self) -> Left {
        match (&mut self.leaving).await {
            Ok(left) => left,
            // A panic has been logged.
            Err(_) => std::future::pending().await,
        }
    }

    /// Stops in good order; bounded by the configured time.
    pub async fn stop(mut self) {
        self.leaving.abort();
        // Not while it gives its place away; and it may have done so just now.
        if (&mut self.leaving).await.is_ok() {
            return self.finish().await;
        }
        self.doorway.close();
        let door = self.site.now();
        let last: Vec<_> = door.all_or(None).map(snapshot::begin_last).collect();
        // Nobody waits for what is not answered from memory any more.
        door.all_or(None).filter(|site| site.others.is_some()).for_each(|site| site.leave_alone());
        self.phase.send_replace(Phase::Stopping);
        let mut leaves = Vec::new();
        for site in door.all_or(None) {
            database::ended(site).await;
            leaves.push(database::gone(site));
        }
        self.drain(&door).await;
        for leave in leaves {
            // A panic has been logged.
            let _ = leave.await;
        }
        door.all_or(None).for_each(|site| site.mark_untold());
        let ends = self.close(&door);
        for ((site, last), end) in door.all_or(None).zip(last).zip(&ends) {
            match (end, last) {
                (End::AllHeard, Some(last)) => snapshot::write_last(site, last).await,
                (End::AllHeard, None) => {}
                (End::NotAll, _) => {
                    site.mark_unheard();
                    snapshot::forget(site);
                }
            }
        }
        say_over(&door, &ends);
        end(&self.site, self.writing, self.exporting, self.php).await;
    }

    /// Ends after another process has taken over: what is in hand is finished, within the configured time.
    pub async fn finish(mut self) {
        self.doorway.close();
        let door = self.site.now();
        self.drain(&door).await;
        self.phase.send_replace(Phase::Ended);
        // Those who have not asked for anything since are told so.
        let _ = tokio::time::timeout(LAST_CLOSED, no_connections(&door)).await;
        // Without a word the other process drops every page when this one has ended, and its php-fpm with it.
        let ends = self.close(&door);
        // Where the other machines were not told, the other process has to. Nothing is put in any more.
        if untold(&door) == 0 {
            say_over(&door, &ends);
        }
        end(&self.site, self.writing, self.exporting, self.php).await;
    }

    /// Waits until nothing is in hand any more, here and in the process whose place was taken; bounded. Where
    /// something cannot be acknowledged any more it is not waited for.
    async fn drain(&mut self, door: &Arc<Site>) {
        let all = async {
            no_connections(door).await;
            // It ends when the calls in hand have been answered.
            let _ = (&mut self.control).await;
            if let Some(following) = &mut self.following {
                following.ended().await;
            }
            // Some have no visitor any more.
            while in_hand(door) + untold(door) > 0 {
                tokio::time::sleep(DRAIN_LOOK).await;
            }
        };
        let drained = tokio::select! {
            drained = tokio::time::timeout(door.limits.drain, all) => drained.is_ok(),
            () = unheard(door) => false,
        };
        let (connections, in_hand) = (door.counters.connections.get(), in_hand(door));
        // Who kept his connection to a process that has handed over is told so in the end.
        if !drained && (in_hand > 0 || door.successor().is_none()) {
            tracing::warn!(event = "drain-ended", connections, in_hand);
        }
        match untold(door) {
            0 => {}
            changes => tracing::error!(event = "stream-not-told", changes),
        }
    }

    /// From now on nothing is begun that could tell of a change; what is known of each site's.
    fn close(&self, door: &Arc<Site>) -> Vec<End> {
        let all_told = self.following.as_ref().is_none_or(Following::has_ended);
        let of_site = |site: &Arc<Site>| {
            let is_idle = site.in_hand.close() == 0;
            match is_idle && all_told && !site.is_unheard() {
                true => End::AllHeard,
                false => End::NotAll,
            }
        };
        door.all_or(None).map(of_site).collect()
    }
}

/// What is known of a site's changes, once nothing is begun any more that could tell of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// There will be none that was not heard.
    AllHeard,
    /// Something is still in hand: there may be one of which nobody will hear.
    NotAll,
}

/// Tells the process that has taken over that this was all, where that is so.
fn say_over(door: &Arc<Site>, ends: &[End]) {
    if let Some(successor) = door.successor()
        && !ends.contains(&End::NotAll)
    {
        successor.over();
    }
}

/// What may still tell of a change, at all sites.
fn in_hand(door: &Arc<Site>) -> usize {
    door.all_or(None).map(|site| site.in_hand.count()).sum()
}

/// How many changes the other machines have not been told yet, of all sites.
fn untold(door: &Arc<Site>) -> usize {
    let of_site = |site: &Arc<Site>| site.others.as_ref().map_or(0, |others| others.untold());
    door.all_or(None).map(of_site).sum::<u64>() as usize
}

/// Waits until there is something that cannot be acknowledged.
async fn unheard(door: &Arc<Site>) {
    while !door.all_or(None).any(|site| site.is_unheard()) {
        tokio::time::sleep(DRAIN_LOOK).await;
    }
}

async fn no_connections(door: &Arc<Site>) {
    while door.counters.connections.get() > 0 {
        tokio::time::sleep(DRAIN_LOOK).await;
    }
}

/// The end of what is there besides connections.
async fn end(
    door: &Arc<Site>,
    writing: Option<Writing>,
    exporting: JoinHandle<()>,
    php: Vec<PhpFpm>,
) {
    if let Some(exporter) = &door.exporter {
        exporter.end();
        let _ = tokio::time::timeout(LAST_SPANS, exporting).await;
    }
    if let Some(writing) = writing {
        // Longer only where nobody reads what is written.
        let _ = tokio::time::timeout(LAST_LINES, writing.end()).await;
    }
    stop_all(php).await;
}

/// Begins to answer from memory: in the place of another process where one is given, which has let go of it
/// then.
async fn take_place(
    door: &Arc<Site>,
    predecessor: Option<Predecessor>,
    stopped: &Told,
) -> Result<Option<Following>, String> {
    let placed = match predecessor {
        Some(predecessor) => {
            // What is wrong here must not cost the other one's memory.
            database::check::before_following(&door.config).await?;
            Some(predecessor.take_place().await?)
        }
        None => None,
    };
    let Some(placed) = placed else {
        start_all(door, snapshot::Before::Ended, Duration::MAX, stopped).await?;
        return Ok(None);
    };
    // What that one still has in hand is heard, and must be.
    let snapshots = door.all_or(None).filter_map(|site| site.snapshots.as_ref());
    let in_hand = snapshots.map(Snapshots::in_hand).collect();
    // While nobody accepts, nobody is waited for who does not answer.
    start_all(door, snapshot::Before::HandedOver, IN_BETWEEN, stopped).await?;
    placed.serve(door, in_hand).await.map(Some)
}

/// The same sockets once more, for a process that takes over.
fn copies<'a>(listeners: impl Iterator<Item = &'a Listener>) -> Result<Vec<Open>, String> {
    let copy = |listener: &Listener| {
        let socket = listener.copy().map_err(|error| format!("{}: {error}", listener.address()))?;
        Ok(Open { socket, is_ours: listener.is_ours() })
    };
    listeners.map(copy).collect()
}

/// Begins with what an earlier process has left of each site, then with the changes of their databases, for
/// each of which it waits so long at most.
async fn start_all(
    door: &Arc<Site>,
    before: snapshot::Before,
    patience: Duration,
    stopped: &Told,
) -> Result<(), String> {
    let begin = |site: &Arc<Site>| Ok((site.clone(), snapshot::begin(site, before)?));
    let loading = door.all_or(None).map(begin).collect::<Result<Vec<_>, String>>()?;
    database::start(door.all_or(None), patience, stopped).await?;
    for (site, loading) in loading {
        tokio::spawn(snapshot::run(site, loading, stopped.clone()));
    }
    Ok(())
}

/// Starts the origins of all sites, and puts the sites together: the one that connections come to,
/// which knows the others.
async fn start_sites(
    config: Arc<Config>,
    clock: Clock,
    php: &mut Vec<PhpFpm>,
) -> Result<Arc<Site>, String> {
    let mut others = Vec::new();
    for config in &config.other_sites {
        let (origin, own) = Origin::start(config).await?;
        php.extend(own);
        let neighbours = Neighbours::default();
        others.push(Site::new(config.clone(), clock.clone(), origin, neighbours, false));
    }
    let (origin, own) = Origin::start(&config).await?;
    php.extend(own);
    Ok(Site::new(config, clock, origin, Neighbours::new(others), true))
}

async fn stop_all(php: Vec<PhpFpm>) {
    for php in php {
        php.stop().await;
    }
}

/// Serves the memcached port, where there is one.
fn serve_items(items: Vec<Listener>, config: &Config, site: &Arc<Site>, stopped: &Told) {
    let (Some(port), Some(leases)) = (&config.memcached, &site.leases) else { return };
    let keeper = Arc::new(Keeper::new(site.clone(), leases.clone()));
    let limits = memcache::Limits { item_bytes_max: port.item_bytes_max };
    let begun = Arc::new(Begun::new(config.memory_bytes));
    for listener in items {
        let (keeper, begun) = (keeper.clone(), begun.clone());
        tokio::spawn(memcached::serve(listener, limits, keeper, begun, stopped.clone()));
    }
}

/// What each site has to have done now and then.
fn begin_chores(door: &Arc<Site>, stopped: &Told) {
    let compressor = Arc::new(Compressor::default());
    for site in door.all_or(None) {
        tokio::spawn(sweep(site.clone(), stopped.clone()));
        tokio::spawn(tidy(site.clone(), stopped.clone()));
        tokio::spawn(codings::run(site.clone(), compressor.clone(), stopped.clone()));
        tokio::spawn(rewarm::run(site.clone(), stopped.clone()));
        wake::begin(site, stopped);
    }
    tokio::spawn(let_go(door.clone(), stopped.clone()));
    tokio::spawn(keep_time::run(door.clone(), stopped.clone()));
    tokio::spawn(unused::run(door.clone(), stopped.clone()));
}

/// Tidies up after large changes, a batch at a time.
async fn tidy(site: Arc<Site>, mut stop: Told) {
    loop {
        tokio::select! {
            _ = stop.wait_for(Phase::is_leaving) => return,
            () = site.untidy.notified() => {}
        }
        while site.store.tidy() == TidyOutcome::MoreToDo {
            tokio::time::sleep(BETWEEN_BATCHES).await;
        }
    }
}

/// Reads the certificates again when their files have changed.
async fn follow_certificates(tls: Arc<Tls>, site: Arc<Site>, mut stop: Told) {
    let mut seen = tls.look();
    loop {
        tokio::select! {
            _ = stop.wait_for(Phase::is_leaving) => return,
            () = tokio::time::sleep(site.now().limits.certificate_look) => {}
        }
        let now = tls.look();
        if now == seen {
            continue;
        }
        match tls.reload() {
            Ok(()) => tracing::info!(event = "certificates-read"),
            Err(error) => tracing::error!(event = "certificates-unusable", %error),
        }
        // What was written while it was read is looked at next time.
        seen = now;
    }
}

/// After a crowd: what many connections needed at the same moment goes back to the system, once they rest.
async fn let_go(door: Arc<Site>, mut stop: Told) {
    let (mut seen, mut waiting) = (0, 0);
    loop {
        tokio::select! {
            _ = stop.wait_for(Phase::is_leaving) => return,
            () = tokio::time::sleep(SWEEP) => {}
        }
        let rested = door.all_or(None).map(|site| site.counters.connections_rested.get()).sum();
        let more = rested - seen;
        (seen, waiting) = (rested, waiting + more);
        if waiting >= CROWD && more < CALM {
            waiting = 0;
            // On a thread of its own: it may take some milliseconds.
            let _ = tokio::task::spawn_blocking(let_go::heap).await;
        }
    }
}

/// Closes what has been idle for long, now and then.
async fn sweep(site: Arc<Site>, mut stop: Told) {
    loop {
        tokio::select! {
            _ = stop.wait_for(Phase::is_leaving) => return,
            () = tokio::time::sleep(SWEEP) => {}
        }
        if let Origin::FastCgi(origin) = &site.origin {
            origin.close_idle();
        }
    }
}
