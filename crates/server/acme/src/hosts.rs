//! The manager of certificates: the state of each host in memory, the looks at the storage, and the tasks of hosts
//! that are due.
//!
//! Each look (every few seconds) reads the storage if its version has changed, so that all nodes use a new certificate
//! soon. A host that is due has a task: it takes the host's lock, reads the storage again, and acts. Hosts do not wait
//! for each other, except that [`TASKS_MAX`] run at a time and [`ORDERS_PER_MINUTE`] orders begin in a minute.
//!
//! Invariant: a certificate stays in use until a usable one replaces it. Failures of the storage, of the authority and
//! of one host change no certificate.

mod report;

use crate::answers::{ChallengeReads, HostChallenge};
use crate::client::AuthorityTrust;
use crate::copies::LocalCopies;
use crate::leaf::Bundle;
use crate::record::{ChallengeKind, NameRecord};
use crate::schedule::{HostStep, next_step};
use crate::storage::{LockTimes, Storage, StorageKey, ValueKind};
use crate::tickets::SharedTickets;
use certificates::Certificates;
use config::{Acme, LETS_ENCRYPT, name_refusal};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};
use telemetry::clock::Clock;
use telemetry::phase::{Phase, PhaseWatch};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// The server of Let's Encrypt for tests, with higher limits.
const LETS_ENCRYPT_STAGING: &str = "https://acme-staging-v02.api.letsencrypt.org/directory";
/// Maximum number of hosts that are worked on at a time.
const TASKS_MAX: usize = 4;
/// Maximum number of orders that begin in a minute.
const ORDERS_PER_MINUTE: usize = 10;
/// The storage is read after this many looks, also if its version is the same: an operator may have changed files.
const LOOKS: u32 = 12;
/// The timeout of the first look, before the server accepts connections.
const FIRST_LOOK: Duration = Duration::from_secs(3);
/// The timeout of every other look: a storage that hangs does not keep hosts with a certificate from their renewal.
const LOOK_WITHIN: Duration = Duration::from_secs(60);
/// Maximum number of hosts that are read from the storage at a time.
const READS_MAX: usize = 8;
/// How often certificates that have been read are used while others are still read.
const USED_EVERY: Duration = Duration::from_millis(250);

/// An authority, with the one that is tried first after a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// The URL of its directory.
    pub directory: String,
    /// The directory of its server for rehearsals.
    pub rehearsal: Option<String>,
}

/// The times of a manager that tests change.
#[derive(Clone, Copy, Debug)]
pub struct AcmeTimes {
    /// How long a lock in the storage lasts.
    pub lock: LockTimes,
    /// The timeout for reading a challenge from the storage.
    pub challenge_read: Duration,
}

impl Default for AcmeTimes {
    fn default() -> AcmeTimes {
        AcmeTimes { lock: LockTimes::default(), challenge_read: Duration::from_secs(2) }
    }
}

/// The manager of certificates.
pub struct AcmeHosts {
    pub(crate) config: Acme,
    pub(crate) authorities: Vec<Authority>,
    pub(crate) trust: AuthorityTrust,
    /// The kinds of challenges that the listeners can answer.
    pub(crate) kinds: Vec<ChallengeKind>,
    pub(crate) storage: Storage,
    pub(crate) copies: Option<LocalCopies>,
    pub(crate) clock: Clock,
    hosts: RwLock<BTreeMap<String, HostState>>,
    skipped: Mutex<Vec<(String, &'static str)>>,
    /// Whether a certificate has changed since the source was loaded last.
    is_changed: AtomicBool,
    /// Why the storage, and the copies, cannot be used.
    errors: [Mutex<Option<String>>; 2],
    /// Issued and failed orders.
    orders: [AtomicU64; 2],
    pub(crate) tickets: SharedTickets,
    challenge_reads: ChallengeReads,
    places: Semaphore,
    /// When the orders of the last minute began.
    recent: Mutex<VecDeque<Instant>>,
}

/// A host in memory.
#[derive(Clone, Default)]
pub(crate) struct HostState {
    pub record: NameRecord,
    /// The certificate in use, with its text.
    pub bundle: Option<Bundle>,
    pub text: Vec<u8>,
    /// Whether the record, or the certificate, could not be stored, so that memory has the newer one.
    pub is_unsaved: bool,
    /// Whether the certificate is this node's copy, and the storage was not read since.
    pub is_copy: bool,
    /// Whether this node's copy has this certificate.
    pub is_copied: bool,
    /// How often a certificate of the storage or of an order was taken into use.
    changes: u64,
    /// Why the stored certificate cannot be used, if so; logged once.
    unusable: Option<String>,
    /// The pending challenge of the host, if it has one.
    pub challenge: Arc<HostChallenge>,
    /// Whether a task works on it.
    is_busy: bool,
    /// Whether that task may begin an order, and has not begun it.
    may_order: bool,
    #[cfg(test)]
    holds_lock: bool,
}

impl HostState {
    /// Uses this certificate, of the storage or of an order.
    pub fn set_bundle(&mut self, bundle: Bundle, text: Vec<u8>) {
        (self.bundle, self.text, self.unusable) = (Some(bundle), text, None);
        (self.is_copied, self.changes) = (false, self.changes.wrapping_add(1));
    }
}

/// A host that a task works on, until this is dropped, also by a task that panics or is aborted.
pub(crate) struct BusyHost {
    manager: Arc<AcmeHosts>,
    pub host: String,
}

impl Drop for BusyHost {
    fn drop(&mut self) {
        self.manager.update(&self.host, |state| (state.is_busy, state.may_order) = (false, false));
    }
}

/// The parts of the server that a running manager uses.
pub struct AcmeParts {
    /// The certificates of the listeners.
    pub certificates: Arc<Certificates>,
    /// Returns the configured hosts.
    pub hosts: Box<dyn Fn() -> Vec<String> + Send + Sync>,
    /// Returns how often the storage is looked at.
    pub look: Box<dyn Fn() -> Duration + Send + Sync>,
}

/// The certificates of the manager, as a source for the listeners.
pub struct ManagedSource(pub Arc<AcmeHosts>);

impl AcmeHosts {
    /// The manager with this configuration. Nothing is read or connected here.
    pub fn new(config: &Acme, kinds: Vec<ChallengeKind>, clock: &Clock) -> Arc<AcmeHosts> {
        let directories = std::iter::once(&config.directory).chain(&config.fallback);
        let authorities = directories.map(|directory| Authority {
            directory: directory.clone(),
            rehearsal: (directory == LETS_ENCRYPT).then(|| LETS_ENCRYPT_STAGING.to_owned()),
        });
        let (authorities, times) = (authorities.collect(), AcmeTimes::default());
        AcmeHosts::with(config, (authorities, AuthorityTrust::System), kinds, times, clock)
    }

    /// The same with other authorities and times, for tests.
    pub fn with(
        config: &Acme,
        (authorities, trust): (Vec<Authority>, AuthorityTrust),
        kinds: Vec<ChallengeKind>,
        times: AcmeTimes,
        clock: &Clock,
    ) -> Arc<AcmeHosts> {
        Arc::new(AcmeHosts {
            config: config.clone(),
            authorities,
            trust,
            kinds,
            storage: Storage::new(&config.storage, times.lock, clock.clone()),
            copies: LocalCopies::new(config, clock),
            clock: clock.clone(),
            hosts: RwLock::default(),
            skipped: Mutex::default(),
            is_changed: AtomicBool::new(false),
            errors: Default::default(),
            orders: Default::default(),
            tickets: SharedTickets::default(),
            challenge_reads: ChallengeReads::new(times.challenge_read),
            places: Semaphore::new(TASKS_MAX),
            recent: Mutex::default(),
        })
    }

    /// Reads the stored certificates, before connections are accepted. No authority is waited for.
    pub async fn begin(self: &Arc<Self>, parts: &AcmeParts) {
        self.timed_look(FIRST_LOOK, parts, &mut Vec::new(), 0).await;
    }

    /// Looks at the storage, but not longer than this. The answers until then are used.
    async fn timed_look(
        self: &Arc<Self>,
        within: Duration,
        parts: &AcmeParts,
        seen: &mut Vec<u8>,
        round: u32,
    ) {
        let look = self.look(parts, seen, round);
        let has_answered = tokio::time::timeout(within, look).await.is_ok();
        if !has_answered {
            self.note_storage(Some("acme.storage: it does not answer".into()));
        }
        let _ = tokio::time::timeout(FIRST_LOOK, self.use_copies(has_answered)).await;
        self.tickets.forget(&parts.certificates, self.clock.instant());
        self.refresh(parts);
    }

    /// Obtains and renews certificates until the process has left.
    pub async fn run(self: Arc<Self>, parts: AcmeParts, mut stop: PhaseWatch) {
        let mut seen = Vec::new();
        loop {
            self.serve(&parts, &mut seen, &mut stop).await;
            // A hand-over may fail; then this process goes on.
            let is_decided =
                |phase: &Phase| matches!(phase, Phase::Serving | Phase::Left) || phase.is_over();
            let decided = stop.wait_for(is_decided).await.map(|phase| *phase);
            if !matches!(decided, Ok(Phase::Serving)) {
                return;
            }
        }
    }

    /// Works until the process begins to leave. Its tasks end with it, and release their locks.
    async fn serve(self: &Arc<Self>, parts: &AcmeParts, seen: &mut Vec<u8>, stop: &mut PhaseWatch) {
        let (mut tasks, mut looks) = (JoinSet::new(), 0u32);
        while !stop.borrow_and_update().is_leaving() {
            tokio::select! {
                () = self.timed_look(LOOK_WITHIN, parts, seen, looks % LOOKS) => {}
                () = leaving(stop) => break,
            }
            for busy in self.due() {
                tasks.spawn(AcmeHosts::attempt(busy, stop.clone()));
            }
            tokio::select! {
                () = self.write_copies() => {}
                () = leaving(stop) => break,
            }
            looks = looks.wrapping_add(1);
            let pause = tokio::time::sleep((parts.look)());
            tokio::pin!(pause);
            loop {
                tokio::select! {
                    () = leaving(stop) => break,
                    () = &mut pause => break,
                    // A host that is due again waits for the next look.
                    Some(_) = tasks.join_next(), if !tasks.is_empty() => self.refresh(parts),
                }
            }
        }
        while tasks.join_next().await.is_some() {}
    }

    /// Takes over the configured hosts, and reads the storage if it has changed. With `round` 0 it is read anyway.
    async fn look(self: &Arc<Self>, parts: &AcmeParts, seen: &mut Vec<u8>, round: u32) {
        let has_new_hosts = self.set_hosts(&(parts.hosts)(), &parts.certificates);
        match self.storage.version().await {
            Ok(version) if version == *seen && !has_new_hosts && round > 0 => {
                if let Err(why) = self.look_at_tickets(parts, false).await {
                    self.note_storage(Some(why));
                }
            }
            Ok(version) => {
                let mut failed = self.load_all(parts).await.err();
                failed = failed.or(self.look_at_tickets(parts, true).await.err());
                if failed.is_none() {
                    *seen = version;
                }
                self.note_storage(failed);
            }
            Err(why) => {
                // Changes in memory are not in the storage: all is read again.
                seen.clear();
                self.note_storage(Some(why));
            }
        }
    }

    /// Reads all hosts, first those without a certificate. Certificates are used while others are still read.
    async fn load_all(self: &Arc<Self>, parts: &AcmeParts) -> Result<(), String> {
        let order = |(host, state): (&String, &HostState)| (state.bundle.is_some(), host.clone());
        let mut hosts: Vec<(bool, String)> = self.hosts().iter().map(order).collect();
        hosts.sort();
        let (mut hosts, mut reads) = (hosts.into_iter(), JoinSet::new());
        let (mut loaded, mut used) = (Ok(()), self.clock.instant());
        loop {
            for (_, host) in hosts.by_ref().take(READS_MAX - reads.len()) {
                let manager = self.clone();
                reads.spawn(async move { manager.load(&host).await });
            }
            let Some(read) = reads.join_next().await else { return loaded };
            loaded = loaded.and(read.map_err(|error| error.to_string()).flatten());
            if used.elapsed() >= USED_EVERY {
                self.refresh(parts);
                used = self.clock.instant();
            }
        }
    }

    /// Lets the listeners use the certificates that hosts have now.
    fn refresh(&self, parts: &AcmeParts) {
        if self.is_changed.load(Ordering::Acquire) {
            match parts.certificates.refresh() {
                Ok(true) => tracing::info!(event = "certificates-read"),
                Ok(false) => {}
                Err(error) => tracing::error!(event = "certificates-unusable", %error),
            }
        }
    }

    async fn look_at_tickets(&self, parts: &AcmeParts, may_differ: bool) -> Result<(), String> {
        let look = (may_differ, self.clock.now().0, self.clock.instant());
        self.tickets.look(&self.storage, &parts.certificates, look).await
    }

    /// Sets the hosts: those that can have a certificate, and have none in a file. Returns whether there are new ones.
    pub fn set_hosts(&self, configured: &[String], certificates: &Certificates) -> bool {
        let mut wanted: BTreeSet<String> = BTreeSet::new();
        let mut skipped = Vec::new();
        for host in configured.iter().map(|host| host.to_ascii_lowercase()) {
            if certificates.is_given(&host) {
                continue;
            }
            match name_refusal(&host) {
                None => drop(wanted.insert(host)),
                Some(why) => skipped.push((host, why)),
            }
        }
        {
            let mut known = locked(&self.skipped);
            for (host, why) in skipped.iter().filter(|skipped| !known.contains(skipped)) {
                tracing::warn!(event = "certificate-skipped", host, why);
            }
            *known = skipped;
        }
        let mut hosts = self.hosts_mut();
        let before = hosts.len();
        hosts.retain(|host, _| wanted.contains(host));
        let left = hosts.len();
        if left != before {
            self.is_changed.store(true, Ordering::Release);
        }
        for host in wanted {
            hosts.entry(host).or_default();
        }
        hosts.len() != left
    }

    /// Reads a host from the storage. A value that cannot be used is like none: the certificate in use stays, and the
    /// next order replaces the stored one. A lost value is stored again.
    ///
    /// A certificate that only memory has (an unsaved one, or a copy) is replaced only by one that begins later.
    /// Otherwise a node that could not write for a while would write its old one over that of another node.
    ///
    /// # Errors
    /// The storage cannot be used.
    pub(crate) async fn load(&self, host: &str) -> Result<(), String> {
        let before = self.hosts().get(host).map(|state| state.changes);
        let record = self.storage.read(StorageKey { kind: ValueKind::Host, name: host }).await?;
        let key = StorageKey { kind: ValueKind::Certificate, name: host };
        let text = self.storage.read(key).await?;
        // A damaged record is like none: it has only what delays or continues an order.
        let record = record.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let mut hosts = self.hosts_mut();
        // If the certificate has changed meanwhile, what was read may be older. The version has changed, too.
        let Some(state) = hosts.get_mut(host).filter(|state| before == Some(state.changes)) else {
            return Ok(());
        };
        let is_lost = text.is_none() && state.bundle.is_some();
        let text = text.filter(|text| *text != state.text);
        let stored = text.map(|text| (Bundle::read(host, &text), text));
        let known = state.bundle.as_ref();
        let is_newer = matches!(&stored, Some((Ok(stored), _)) if stored.is_newer(known));
        if state.is_unsaved && !is_newer {
            return Ok(());
        }
        if !is_lost || record.is_some() {
            state.record = record.unwrap_or_default();
        }
        let is_copy = std::mem::take(&mut state.is_copy);
        state.is_unsaved = is_lost;
        match stored {
            Some((Ok(_), _)) if is_copy && !is_newer => state.is_unsaved = true,
            Some((Ok(bundle), text)) => {
                state.set_bundle(bundle, text);
                self.note_changed();
            }
            Some((Err(error), _)) if state.unusable.as_ref() != Some(&error) => {
                tracing::warn!(event = "certificate-unusable", host, error);
                state.unusable = Some(error);
            }
            _ => {}
        }
        Ok(())
    }

    /// The hosts in this state.
    pub(crate) fn hosts_that(&self, is_so: impl Fn(&HostState) -> bool) -> Vec<String> {
        let hosts = self.hosts();
        hosts.iter().filter(|(_, state)| is_so(state)).map(|(host, _)| host.clone()).collect()
    }

    /// The state of a host.
    pub(crate) fn state(&self, host: &str) -> Option<HostState> {
        self.hosts().get(host).cloned()
    }

    /// Changes a host.
    pub(crate) fn update(&self, host: &str, change: impl FnOnce(&mut HostState)) {
        if let Some(state) = self.hosts_mut().get_mut(host) {
            change(state);
        }
    }

    /// Uses the certificates that hosts have now, after the next look.
    pub(crate) fn note_changed(&self) {
        self.is_changed.store(true, Ordering::Release);
    }

    /// Whether a task of this node works on a host, for tests.
    #[cfg(test)]
    pub(crate) fn is_holding(&self, host: &str) -> bool {
        self.hosts().get(host).is_some_and(|state| state.holds_lock)
    }

    /// The next step of a host, now.
    pub(crate) fn next_step(&self, state: &HostState) -> HostStep {
        let lifetime = state.bundle.as_ref().map(|bundle| bundle.lifetime);
        next_step(&state.record, lifetime, self.clock.now().0)
    }

    /// The hosts that are due. Each gets one task at a time. Further orders than a minute allows wait.
    pub(crate) fn due(self: &Arc<Self>) -> Vec<BusyHost> {
        let mut due = Vec::new();
        if self.kinds.is_empty() {
            return due;
        }
        let mut hosts = self.hosts_mut();
        let mut orders_left = self.orders_left(&hosts);
        for (host, state) in hosts.iter_mut().filter(|(_, state)| !state.is_busy) {
            match self.next_step(state) {
                HostStep::Order if orders_left > 0 => {
                    orders_left -= 1;
                    state.may_order = true;
                }
                HostStep::AskRenewalTime => {}
                // A state that only memory has is stored as soon as possible.
                HostStep::Wait(_) if state.is_unsaved => {}
                HostStep::Wait(_) | HostStep::Order => continue,
            }
            state.is_busy = true;
            due.push(BusyHost { manager: self.clone(), host: host.clone() });
        }
        due
    }

    /// Acts for a host that is due, unless another node has its lock.
    async fn attempt(busy: BusyHost, mut stop: PhaseWatch) {
        let place = tokio::select! {
            place = busy.manager.places.acquire() => place,
            () = leaving(&mut stop) => return,
        };
        if place.is_ok() {
            busy.manager.attempt_locked(&busy.host, stop).await;
        }
    }

    async fn attempt_locked(&self, host: &str, mut stop: PhaseWatch) {
        let lock = match self.storage.lock(host).await {
            Ok(Some(lock)) => lock,
            Ok(None) => return,
            Err(why) => return self.note_unusable_storage(host, why),
        };
        #[cfg(test)]
        self.update(host, |state| state.holds_lock = true);
        tokio::select! {
            () = self.act(host, &lock) => {}
            () = lock.keep() => tracing::warn!(event = "certificate-lock-lost", host),
            () = leaving(&mut stop) => {}
        }
        lock.release().await;
    }

    /// Whether an order for a host may begin now. It counts until the task ends, or from its begin for a minute.
    pub(crate) fn may_order(&self, host: &str) -> bool {
        let mut hosts = self.hosts_mut();
        let is_left = self.orders_left(&hosts) > 0;
        let Some(state) = hosts.get_mut(host) else { return false };
        state.may_order |= is_left;
        state.may_order
    }

    /// Counts an order that begins.
    pub(crate) fn note_order(&self, host: &str) {
        let mut hosts = self.hosts_mut();
        locked(&self.recent).push_back(self.clock.instant());
        if let Some(state) = hosts.get_mut(host) {
            state.may_order = false;
        }
    }

    /// The number of orders that may begin now, without those that tasks may begin already.
    fn orders_left(&self, hosts: &BTreeMap<String, HostState>) -> usize {
        let (now, mut recent) = (self.clock.instant(), locked(&self.recent));
        let is_old = |began: &Instant| now.saturating_duration_since(*began).as_secs() >= 60;
        while recent.front().is_some_and(is_old) {
            recent.pop_front();
        }
        let to_begin = hosts.values().filter(|state| state.may_order).count();
        ORDERS_PER_MINUTE.saturating_sub(recent.len() + to_begin)
    }

    /// Counts an order.
    pub(crate) fn count(&self, is_issued: bool) {
        self.orders[usize::from(!is_issued)].fetch_add(1, Ordering::Relaxed);
    }

    /// Notes whether the storage can be used. A change is logged.
    pub(crate) fn note_storage(&self, error: Option<String>) {
        note(&self.errors[0], error);
    }

    /// Whether the storage could not be used when it was used last.
    pub(crate) fn is_storage_unusable(&self) -> bool {
        locked(&self.errors[0]).is_some()
    }

    /// Notes whether the copies can be used. A change is logged.
    pub(crate) fn note_copies(&self, error: Option<String>) {
        note(&self.errors[1], error);
    }

    fn hosts(&self) -> RwLockReadGuard<'_, BTreeMap<String, HostState>> {
        self.hosts.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn hosts_mut(&self) -> RwLockWriteGuard<'_, BTreeMap<String, HostState>> {
        self.hosts.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until the process begins to leave.
async fn leaving(stop: &mut PhaseWatch) {
    let _ = stop.wait_for(Phase::is_leaving).await;
}

fn note(known: &Mutex<Option<String>>, error: Option<String>) {
    let mut known = locked(known);
    if let Some(error) = error.as_ref().filter(|error| known.as_ref() != Some(error)) {
        tracing::error!(event = "certificate-storage", %error);
    }
    *known = error;
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
