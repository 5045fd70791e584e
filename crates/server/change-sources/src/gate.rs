//! Stops storing pages while it is not proven that the changes of a source are applied.
//!
//! Each database of a site, and the stream of its cluster, has its own gate. A page is stored only when all
//! gates are open. A closed gate is an open change of every page: lookups find nothing, and renders are not
//! stored. A hit pays nothing for this check.
//!
//! A **proof** is the time at which a query of the committed position was sent, once everything up to that
//! position is applied. [`watch`] asks for one every second. When the last proof is older than `lag_max`, the
//! gate closes, whatever the fault is. So no page is older than `lag_max`. [`Gate`] has the interleavings.
//!
//! Lock: `closed`, held while a change is opened or taken out, never across an `await`.

use super::Feed;
use super::barrier::count_lag;
use super::reusable_session::{Asking, ReusableSession};
use cluster::{NodeReports, PeerReports, UnpublishedChanges};
use config::OnLag;
use database_links::proof_times::{LAG_LEAST, ask_every, proof_max};
use databases::source::Session;
use databases::stream_types::Position;
use history::ChangeSource;
use history::shown::cut;
use page_store::{ChangeTarget, OpenChange};
use site_state::SiteState;
use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// The pause after a query that failed.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(250);

/// The gate of one source of a site.
///
/// | the gate is closed | it opens when |
/// |---|---|
/// | until the source is followed, and after a gap | everything committed before connecting is applied |
/// | because the last proof is too old | the same, or a position is applied that was queried since |
///
/// A proof of a cluster's stream needs more: the connection that reads the stream has answered (the other
/// nodes wait for this node from that time on), and no other node has announced that it cannot publish its
/// changes (`cluster/src/unpublished.rs`).
///
/// Checked interleavings:
/// - The deadline passes → a new proof → the gate would close. The deadline is checked again, and the gate
///   closes only if there is no other proof since.
/// - The deadline passes → the gate closes → the follower connects. It records its proof before it opens the
///   gate, so the gate stays open.
/// - The gate is closed by the deadline → a gap. `close` forgets the position that would have opened it, so it
///   opens only when the source is followed again.
/// - A query is answered → the gate closes → the position is applied. That query is older than the closing, so
///   it does not open the gate; the next one does.
#[derive(Default)]
pub struct Gate {
    closed: Mutex<ClosedGate>,
    /// Whether `until` is set, readable without the lock.
    is_behind: AtomicBool,
}

#[derive(Default)]
struct ClosedGate {
    /// The open change of every page while the gate is closed.
    by: Option<OpenChange>,
    /// Whether it is closed only because the last proof is too old.
    is_overdue: bool,
    /// The position that opens a gate that is overdue, and when it was queried.
    until: Option<(Position, Instant)>,
    /// The last proof.
    proven: Option<Instant>,
    /// When the reader of a cluster's stream last had an answer; `None` for databases.
    contact: Option<Instant>,
}

impl Gate {
    /// Purges every page, and prevents storing until the source is followed. `name` is the source's.
    pub fn close(&self, site: &SiteState, name: &str) {
        let mut closed = self.lock();
        (closed.is_overdue, closed.until) = (false, None);
        self.is_behind.store(false, Ordering::Release);
        if closed.by.is_none() {
            closed.by = Some(opened(site, name));
        }
    }

    /// The same if it is open and `is_overdue` returns true, until a later position is applied.
    /// `is_overdue` is called again here, because there may be another proof. Returns whether the
    /// gate is closed by this call.
    fn close_if(&self, site: &SiteState, name: &str, is_overdue: impl Fn() -> bool) -> bool {
        // A proof is recorded before the gate is opened. So if the gate is found open, its proof is seen.
        let mut closed = self.lock();
        if closed.by.is_some() {
            return false;
        }
        let proven = closed.proven;
        drop(closed);
        if !is_overdue() {
            return false;
        }
        closed = self.lock();
        if closed.by.is_some() || closed.proven != proven {
            return false;
        }
        (closed.by, closed.is_overdue) = (Some(opened(site, name)), true);
        true
    }

    /// Returns whether the gate is closed.
    pub fn is_closed(&self) -> bool {
        self.lock().by.is_some()
    }

    /// Opens the gate because the source is followed: everything committed before `asked` is applied.
    /// Returns its open change, which the caller must settle; `None` if it was open.
    pub fn open(&self, asked: Instant) -> Option<OpenChange> {
        self.open_with(&mut self.lock(), asked)
    }

    fn open_with(&self, closed: &mut ClosedGate, asked: Instant) -> Option<OpenChange> {
        closed.prove(asked);
        (closed.is_overdue, closed.until) = (false, None);
        self.is_behind.store(false, Ordering::Release);
        closed.by.take()
    }

    /// Opens the gate if it was overdue, and `applied` shows that the source has caught up.
    pub fn open_at(&self, applied: &Position) -> Option<OpenChange> {
        if !self.is_behind.load(Ordering::Acquire) {
            return None;
        }
        // Check and opening share one lock. Otherwise a close in between, for another reason, would
        // be lost.
        let mut closed = self.lock();
        let reached = closed.until.as_ref().filter(|(until, _)| applied.has_all(until));
        let asked = reached.map(|(_, asked)| *asked)?;
        self.open_with(&mut closed, asked)
    }

    /// Sets the position that opens the gate, if it is closed because the last proof is too old.
    fn open_when(&self, until: &Position, asked: Instant) {
        let mut closed = self.lock();
        if closed.by.is_some() && closed.is_overdue {
            closed.until = Some((until.clone(), asked));
            self.is_behind.store(true, Ordering::Release);
        }
    }

    /// Records a proof: everything that was committed before `asked` is applied.
    fn prove(&self, asked: Instant) {
        self.lock().prove(asked);
    }

    /// Records when the command was sent to which the reader of a cluster's stream had an answer.
    pub fn set_contact(&self, sent: Instant) {
        self.lock().contact = Some(sent);
    }

    /// Returns the time of the last proof.
    pub fn proven(&self) -> Option<Instant> {
        self.lock().proven
    }

    fn lock(&self) -> MutexGuard<'_, ClosedGate> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClosedGate {
    fn prove(&mut self, asked: Instant) {
        let asked = self.contact.map_or(asked, |contact| contact.min(asked));
        self.proven = self.proven.max(Some(asked));
    }
}

fn opened(site: &SiteState, name: &str) -> OpenChange {
    site.changes().open(&[ChangeTarget::Everything], ChangeSource::Gap { database: cut(name) })
}

/// The result of asking for a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProofAttempt {
    /// Everything committed until then is applied.
    Proven,
    /// The source has not answered, or another node cannot publish its changes.
    Unproven,
    /// The last proof is too old, and there was no answer yet.
    Overdue,
}

/// Asks for a proof every second, and closes the gate when the last one is too old.
pub async fn watch(site: Arc<SiteState>, feed: Arc<Feed>) {
    let every = ask_every(&feed.config);
    let mut peers = PeerReports::new(&feed.config).map(PeerQuery::new);
    loop {
        let asked = Instant::now();
        let result = tokio::select! {
            result = feed.ask_proof(&site, asked, &mut peers) => result,
            () = feed.overdue() => ProofAttempt::Overdue,
        };
        let again = match result {
            ProofAttempt::Proven => asked + every,
            ProofAttempt::Unproven => Instant::now() + ASK_AGAIN_AFTER,
            ProofAttempt::Overdue => {
                feed.close_if_overdue(&site);
                continue;
            }
        };
        tokio::select! {
            () = sleep_until(again) => {}
            () = feed.overdue() => feed.close_if_overdue(&site),
        }
    }
}

/// The reports of the other nodes, and the connection on which they are read.
struct PeerQuery {
    session: ReusableSession,
    reports: PeerReports,
}

impl PeerQuery {
    fn new(reports: PeerReports) -> PeerQuery {
        PeerQuery { session: ReusableSession::default(), reports }
    }

    /// Reads the reports; `None`: the server has not answered.
    async fn look(&mut self, feed: &Feed, now: Instant) -> Option<UnpublishedChanges> {
        let reports = self.session.ask(feed, reports).await.ok()?;
        let judged = self.reports.judge(reports, now);
        let removals = self.reports.removals(now);
        if !removals.is_empty() {
            // If this fails, the next look tries again.
            let _ = self.session.ask(feed, |session| try_all(session, removals.clone())).await;
        }
        Some(judged)
    }
}

/// Reads the reports on a session.
fn reports(session: &mut Session) -> Asking<'_, NodeReports> {
    Box::pin(async move {
        match session {
            Session::Valkey(session) => session.reports().await,
            Session::MariaDb(_) | Session::Postgres(_) => Ok(NodeReports::default()),
        }
    })
}

/// Executes commands on a session of a cluster's stream, as far as the account may.
fn try_all(session: &mut Session, commands: Vec<Vec<u8>>) -> Asking<'_, ()> {
    Box::pin(async move {
        match session {
            Session::Valkey(session) => session.try_all(&commands).await,
            Session::MariaDb(_) | Session::Postgres(_) => Ok(()),
        }
    })
}

impl Feed {
    /// Asks for a proof.
    async fn ask_proof(
        &self,
        site: &SiteState,
        asked: Instant,
        peers: &mut Option<PeerQuery>,
    ) -> ProofAttempt {
        // Before the position is queried: a node withdraws its announcement after it has published.
        if let Some(peers) = peers {
            match peers.look(self, asked).await {
                Some(UnpublishedChanges::Nothing) => {}
                Some(UnpublishedChanges::Lost) => {
                    self.gate.close_if(site, self.name(), || true);
                }
                Some(UnpublishedChanges::Pending) | None => return ProofAttempt::Unproven,
            }
        }
        let generation = self.generation();
        let Some(committed) = self.committed().await else { return ProofAttempt::Unproven };
        self.gate.open_when(&committed, asked);
        if self.reached_in(generation, &committed).await.is_none() {
            return ProofAttempt::Unproven;
        }
        count_lag(site, self, asked.elapsed());
        self.gate.prove(asked);
        ProofAttempt::Proven
    }

    /// Waits until a position is applied. `None` if the stream has broken since this generation: after a gap
    /// the follower may continue on a server whose positions never reach that one.
    async fn reached_in(&self, generation: u64, position: &Position) -> Option<()> {
        let mut applied = self.applied.subscribe();
        let is_over = || self.generation() != generation;
        let ended = applied.wait_for(|applied| {
            is_over() || applied.as_ref().is_some_and(|applied| applied.has_all(position))
        });
        ended.await.ok()?;
        (!is_over()).then_some(())
    }

    /// Waits until the last proof is too old while the gate is open.
    async fn overdue(&self) {
        let mut applied = self.applied.subscribe();
        let every = ask_every(&self.config);
        loop {
            if self.gate.is_closed() {
                sleep(every).await;
                continue;
            }
            let Some(left) = self.proof_left() else { return pending().await };
            if left.is_zero() {
                return;
            }
            tokio::select! {
                () = sleep(left) => {}
                // A broken connection brings the time forward only where `lag_max` is very short.
                _ = applied.changed(), if self.is_shortened() => {}
            }
        }
    }

    /// Returns for how long pages may still be served without another proof; `None`: without a limit.
    fn proof_left(&self) -> Option<Duration> {
        let proof_max = match self.config.on_lag {
            OnLag::BypassAfter(lag_max) if !self.is_followed() => lag_max,
            _ => proof_max(&self.config)?,
        };
        Some(self.gate.proven().map_or(Duration::ZERO, |at| proof_max.saturating_sub(at.elapsed())))
    }

    /// Whether `lag_max` is shorter than a proof takes.
    fn is_shortened(&self) -> bool {
        matches!(self.config.on_lag, OnLag::BypassAfter(lag_max) if lag_max < LAG_LEAST)
    }

    fn close_if_overdue(&self, site: &SiteState) {
        let is_overdue = || self.proof_left().is_some_and(|left| left.is_zero());
        if !self.gate.close_if(site, self.name(), is_overdue) {
            return;
        }
        // The proof does not come in time; the exact lag is not known.
        count_lag(site, self, self.proof_age().unwrap_or_default());
        let database = &self.config.name;
        let lag_max_ms = proof_max(&self.config).unwrap_or_default().as_millis() as u64;
        if self.is_followed() {
            tracing::error!(event = "database-behind", database, lag_max_ms);
        } else {
            tracing::error!(event = "database-away", database, lag_max_ms);
        }
    }

    /// Returns the age of the last proof: everything committed before it is applied. `None` before
    /// the first.
    #[must_use]
    pub fn proof_age(&self) -> Option<Duration> {
        self.gate.proven().map(|at| at.elapsed())
    }

    /// Returns the lag now: as measured last, or the age of the last proof while the next one is
    /// overdue. `None` before the first measurement.
    #[must_use]
    pub fn lag_now(&self) -> Option<Duration> {
        let measured = self.lag().map(|lag| lag.lag);
        let usual = ask_every(&self.config) * 2;
        measured.max(self.proof_age().filter(|age| *age > usual))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ChangeSources;
    use telemetry::clock::Clock;
    use valkey::{Id, Place};

    /// A site with a cluster's stream that nothing follows, and its gate closed as at a start.
    fn stand(more: &str) -> (Arc<SiteState>, Arc<Feed>) {
        let text = "site.origin = \"http://127.0.0.1:1\"\ncluster.url = \"redis://localhost\"\n";
        let file = toml::from_str(&format!("{text}{more}")).expect("a configuration");
        let config = Arc::new(config::resolve(&file).expect("it can be used"));
        let feed = ChangeSources::new(&config).feeds[0].clone();
        let site = SiteState::new(config, Clock::start(), None, true);
        feed.gate.close(&site, "a");
        feed.applied.send_replace(Some(at(1)));
        (site, feed)
    }

    fn at(ms: u64) -> Position {
        Position::Stream(Place { id: Id { ms, number: 0 }, ..Place::default() })
    }

    #[tokio::test]
    async fn a_position_of_another_server_is_not_waited_for() {
        let (_site, feed) = stand("");
        let generation = feed.generation();
        assert_eq!(feed.reached_in(generation, &at(1)).await, Some(()));
        let waiting = feed.clone();
        let waits = tokio::spawn(async move { waiting.reached_in(generation, &at(9)).await });
        tokio::task::yield_now().await;
        // A failover: the stream breaks, and is followed on a server with lower positions.
        feed.applied.send_replace(None);
        feed.next_generation();
        feed.applied.send_replace(Some(at(0)));
        assert_eq!(waits.await.expect("it ran"), None);
    }

    fn ago(ms: u64) -> Instant {
        Instant::now().checked_sub(Duration::from_millis(ms)).expect("the machine is up for longer")
    }

    /// Whether the gate closes by itself, after it was opened with a proof of this age.
    fn closes(more: &str, proven_ms: u64, contact_ms: Option<u64>, is_followed: bool) -> bool {
        let (site, feed) = stand(more);
        contact_ms.into_iter().for_each(|ms| feed.gate.set_contact(ago(ms)));
        let opened = feed.gate.open(ago(proven_ms)).expect("it was closed");
        site.changes().settle(opened);
        if !is_followed {
            feed.applied.send_replace(None);
        }
        feed.close_if_overdue(&site);
        feed.gate.is_closed()
    }

    /// Whether it stays open: a busy machine may let some of the tries be slow.
    fn stays_open(more: &str, proven_ms: u64, contact_ms: Option<u64>, is_followed: bool) -> bool {
        (0..20).any(|_| !closes(more, proven_ms, contact_ms, is_followed))
    }

    #[test]
    fn the_deadline_counts_from_the_last_proof() {
        assert!(stays_open("", 9_000, None, true) && closes("", 10_000, None, true));
        // It is the same after the connection has broken, however early that was noticed.
        assert!(stays_open("", 9_000, None, false) && closes("", 10_000, None, false));
        assert!(!closes("cluster.on_lag = \"serve\"", 60_000, None, false));
        // A very short limit counts from when the break is noticed.
        let short = "cluster.lag_max = \"10ms\"";
        assert!(stays_open(short, 500, None, true) && closes(short, 1_000, None, true));
        assert!(closes(short, 500, None, false));
    }

    #[test]
    fn a_proof_is_no_newer_than_the_contact_of_the_node() {
        assert!(closes("", 0, Some(10_000), true));
        assert!(stays_open("", 0, Some(9_000), true) && closes("", 10_000, Some(0), true));
    }

    #[test]
    fn an_overdue_gate_opens_at_a_position_that_was_queried_since() {
        let (site, feed) = stand("");
        feed.gate.open_when(&at(3), Instant::now());
        assert!(feed.gate.open_at(&at(9)).is_none(), "it waits until the source is followed");
        drop(feed.gate.open(ago(10_000)).expect("it was closed"));
        feed.close_if_overdue(&site);
        assert!(
            feed.gate.is_closed() && feed.gate.open_at(&at(9)).is_none(),
            "nothing was queried"
        );
        feed.gate.open_when(&at(3), ago(1_000));
        assert!(feed.gate.open_at(&at(2)).is_none());
        assert!(feed.gate.open_at(&at(3)).is_some() && !feed.gate.is_closed());
        assert!(feed.proof_age().is_some_and(|age| age < Duration::from_secs(9)), "it is a proof");
        feed.close_if_overdue(&site);
        assert!(!feed.gate.is_closed());
    }

    #[test]
    fn after_a_gap_no_position_opens_the_gate() {
        let (site, feed) = stand("");
        drop(feed.gate.open(ago(10_000)).expect("it was closed"));
        feed.close_if_overdue(&site);
        feed.gate.open_when(&at(3), Instant::now());
        feed.gate.close(&site, "a");
        feed.gate.open_when(&at(3), Instant::now());
        assert!(feed.gate.open_at(&at(9)).is_none() && feed.gate.is_closed());
        assert!(feed.gate.open(Instant::now()).is_some());
    }

    #[test]
    fn the_lag_grows_while_a_proof_is_overdue() {
        let (_site, feed) = stand("");
        assert_eq!(feed.lag_now(), None);
        feed.lag_us.store(800, Ordering::Relaxed);
        // A busy machine may let some of the tries be slow.
        let is_as_measured = (0..20).any(|_| {
            feed.gate.prove(ago(1_000));
            feed.lag_now() == Some(Duration::from_micros(800))
        });
        assert!(is_as_measured, "{:?}", feed.lag_now());
        let (_site, feed) = stand("");
        feed.lag_us.store(800, Ordering::Relaxed);
        feed.gate.prove(ago(5_000));
        assert!(feed.lag_now().is_some_and(|lag| lag >= Duration::from_secs(5)));
    }
}
