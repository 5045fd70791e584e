//! The one way to the origin: each request takes a permit for its class (`Origin::admit`), and holds it until its
//! response has been read.
//!
//! Which request gets the next permit is decided in `places`. Which class a request has is decided by its sender.

use crate::places::OriginLine;
use http::HeaderMap;
use http::header::USER_AGENT;
use miss_control::{
    ClientLevel, ClientNetwork, HeldPlace, MissGroup, MissKind, ShownEvidence, WaiterId,
    address_number, comes_before,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use telemetry::client::{Client, PageAtOrigin, RequestPurpose};
use tokio::time::Instant;

/// The purpose of a request to the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginClass {
    /// A client waits for a page that may be stored. Other clients may wait for the same response.
    Page,
    /// A client waits for a response that is for it alone: a request that bypasses the cache, or a private copy.
    Personal,
    /// A page that is being assembled waits for a fragment.
    Fragment,
    /// A request with an unsafe method, or `[[wake]]`. It is never deferred.
    Write,
    /// A request for another protocol. It holds its permit until the origin has answered, not for the connection.
    Upgrade,
    /// No client waits: the refresh of a stale page, cache warming.
    Background,
    /// A render to compare a stored page with: it gets a permit only while two are free.
    Reference,
}

/// The facts by which a request to the origin is ordered.
#[derive(Clone, Debug)]
pub struct Admission {
    /// The purpose of the request.
    pub class: OriginClass,
    /// The level and credit of its client, or of the best client that waits for the same response.
    pub level: SharedLevel,
    /// The group of its URL.
    pub group: MissGroup,
    /// The client's address, as a number.
    pub address: Option<u64>,
    /// The page of a fragment: it is deferred if too many requests of its address wait when it begins.
    pub page: Option<Arc<PageAtOrigin>>,
    /// The client's network, for reports.
    pub network: Option<ClientNetwork>,
    /// The beginning of the client's `User-Agent`, for reports.
    pub agent: Option<Box<str>>,
}

/// The most bytes of a `User-Agent` in a report.
const AGENT_BYTES_MAX: usize = 80;

impl Admission {
    /// The admission of a request for `client`, which shows this evidence, and for this path and query, of this class
    /// if the client itself waits for it.
    pub fn of(
        client: &Client,
        shown: &ShownEvidence,
        class: OriginClass,
        path_and_query: &str,
    ) -> Admission {
        let class = match client.extras.purpose {
            RequestPurpose::Client => class,
            RequestPurpose::Fragment => OriginClass::Fragment,
            RequestPurpose::Background => OriginClass::Background,
            // It changes data, and nobody repeats it.
            RequestPurpose::Scheduled => OriginClass::Write,
            RequestPurpose::Reference => OriginClass::Reference,
        };
        let (level, credit) = if matches!(class, OriginClass::Background | OriginClass::Reference) {
            // Last, because no client waits for it.
            (ClientLevel::OverRate, 0)
        } else if client.extras.purpose == RequestPurpose::Scheduled {
            // The operator has configured it.
            (ClientLevel::Known, 0)
        } else {
            client.note_miss(shown)
        };
        let kind = match class {
            OriginClass::Page | OriginClass::Background | OriginClass::Reference => MissKind::Page,
            OriginClass::Personal | OriginClass::Upgrade => MissKind::Personal,
            OriginClass::Fragment => MissKind::Part,
            OriginClass::Write => MissKind::Write,
        };
        let level = if class == OriginClass::Write { level.of_write() } else { level };
        Admission {
            class,
            level: SharedLevel::new(level, credit),
            group: MissGroup::of(kind, path_and_query),
            address: client.peer.map(|peer| address_number(peer.ip())),
            page: client.extras.page.clone().filter(|_| class == OriginClass::Fragment),
            network: client.peer.map(|peer| ClientNetwork::of(peer.ip())),
            agent: None,
        }
    }

    /// Groups a request of a visitor as one for a page: it bypasses the cache only because the site is in a trial.
    pub fn group_as_without_trial(&mut self) {
        if !matches!(self.group.kind, MissKind::Crawler | MissKind::Part) {
            self.group.kind = MissKind::Page;
        }
    }

    /// Takes the `User-Agent` of the client, for reports.
    pub fn describe(&mut self, headers: &HeaderMap) {
        let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok());
        self.agent = agent.map(|agent| {
            // `to_str` accepts visible ASCII only.
            agent[..agent.len().min(AGENT_BYTES_MAX)].into()
        });
    }

    /// Shares this level with the clients that wait for the same response. It is raised to that of the request.
    pub fn share(&mut self, level: &SharedLevel) {
        let (own, credit) = self.level.lock().rank;
        level.raise(own, credit);
        self.level = level.clone();
    }
}

/// The level of a request and the credit within it, which the clients that wait for the same response share: the best
/// of them counts.
#[derive(Clone, Debug)]
pub struct SharedLevel(Arc<Mutex<LevelState>>);

#[derive(Debug)]
struct LevelState {
    /// The level, and the credit by which it comes before others of that level.
    rank: (ClientLevel, u8),
    /// Whether the request has come to the queue.
    has_entered: bool,
    /// Where the request waits, or has waited.
    waits: Option<(Arc<OriginLine>, WaiterId)>,
}

impl Default for SharedLevel {
    /// The level of a request before its first client is known.
    fn default() -> SharedLevel {
        SharedLevel::new(ClientLevel::OverRate, 0)
    }
}

impl SharedLevel {
    /// The level of a request for which one client waits, with its credit.
    pub fn new(level: ClientLevel, credit: u8) -> SharedLevel {
        let state = LevelState { rank: (level, credit), has_entered: false, waits: None };
        SharedLevel(Arc::new(Mutex::new(state)))
    }

    /// Raises the level and credit, because another client waits for the same response. If they do not come before
    /// those of the request, nothing changes. Returns whether the request comes earlier by it: not if it was sent, or
    /// was deferred.
    pub fn raise(&self, level: ClientLevel, credit: u8) -> bool {
        let mut state = self.lock();
        if !comes_before((level, credit), state.rank) {
            return false;
        }
        state.rank = (level, credit);
        let raised = state.waits.as_ref().map(|(line, id)| line.raise(*id, (level, credit)));
        let has_entered = state.has_entered;
        drop(state);
        // The message is logged when no lock is held.
        raised.map_or(!has_entered, |(is_earlier, _log)| is_earlier)
    }

    /// Calls `enter` with the level and credit. It may record where the request waits.
    pub(crate) fn enter<R>(
        &self,
        enter: impl FnOnce((ClientLevel, u8), &mut Option<(Arc<OriginLine>, WaiterId)>) -> R,
    ) -> R {
        let mut state = self.lock();
        state.has_entered = true;
        let rank = state.rank;
        enter(rank, &mut state.waits)
    }

    fn lock(&self) -> MutexGuard<'_, LevelState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to occupy the origin; released when dropped. Only `places` makes one.
#[derive(Debug)]
pub struct OriginPermit {
    line: Arc<OriginLine>,
    /// Taken when it is dropped.
    place: Option<HeldPlace>,
    since: Instant,
    /// Whether it is for a comparison: no client waits for the response.
    is_own: bool,
}

impl OriginPermit {
    pub(crate) fn new(line: Arc<OriginLine>, place: HeldPlace) -> OriginPermit {
        OriginPermit { line, place: Some(place), since: Instant::now(), is_own: false }
    }

    /// The permit of a request for a comparison.
    pub(crate) fn of_comparison(line: Arc<OriginLine>, place: HeldPlace) -> OriginPermit {
        OriginPermit { line, place: Some(place), since: Instant::now(), is_own: true }
    }
}

impl Drop for OriginPermit {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            self.line.release(place, self.since.elapsed(), self.is_own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use telemetry::client::ClientConnection;

    #[test]
    fn a_request_for_no_client_is_of_its_own_class() {
        let class_for = |purpose| {
            let mut client = Client::of(ClientConnection::none("http").into());
            client.extras.purpose = purpose;
            Admission::of(&client, &ShownEvidence::default(), OriginClass::Page, "/").class
        };
        assert_eq!(class_for(RequestPurpose::Client), OriginClass::Page);
        assert_eq!(class_for(RequestPurpose::Fragment), OriginClass::Fragment);
        assert_eq!(class_for(RequestPurpose::Background), OriginClass::Background);
        assert_eq!(class_for(RequestPurpose::Scheduled), OriginClass::Write);
        assert_eq!(class_for(RequestPurpose::Reference), OriginClass::Reference);
    }
}
