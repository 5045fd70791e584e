//! The places of the origin, and which requests may have how many of them.
//!
//! | places for | calm | overload |
//! |---|---|---|
//! | pages of clients without evidence | all but one | a quarter, but not all that sessions leave; at least 1 |
//! | writes of clients without evidence | all but one | a quarter, at least 1, which no page takes |
//! | all but confirmed visitors and those writes | all | all; while sessions are active, a third, at least 2 |
//! | confirmed visitors | all | all |
//!
//! With fewer than four places, none is reserved while there is no overload. Sessions are active if one has sent a
//! request within ten seconds: without any, reserved places would be idle while others wait. Under overload the
//! figures shrink further while the origin is slow ([`MeasuredPlaces`]), and **beside visitors**: a request of a session
//! takes a place from all others, and one of any client with evidence takes a place from clients without. Half of the
//! places stay; a single one pauses for half a request ([`TakenPlaces::for_unknown`]).

use crate::group::{ClientLevel, MissGroup, MissKind};
use crate::measured::MeasuredPlaces;
use crate::queue::{HeldPlace, MissOrder, QueueLimits};
use std::time::Duration;

/// With fewer places, none of them is reserved while there is no overload.
const RESERVED_FROM: usize = 4;
/// Places are reserved for sessions for so long after the last request of one.
const SESSIONS_ACTIVE: Duration = Duration::from_secs(10);
/// The longest pause of clients without evidence: half of what they wait for at least.
const PAUSE_MAX: Duration = Duration::from_millis(250);

/// The requests for which a place counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlaceShare {
    Confirmed,
    UnknownWrite,
    Unknown,
    Other,
}

impl PlaceShare {
    fn of(level: ClientLevel, kind: MissKind) -> PlaceShare {
        match (level, kind) {
            (ClientLevel::Confirmed, _) => PlaceShare::Confirmed,
            (level, MissKind::Write) if level.is_unknown() => PlaceShare::UnknownWrite,
            // A search engine that is verified has a rate instead.
            (_, MissKind::Crawler) => PlaceShare::Other,
            (level, _) if level.is_unknown() => PlaceShare::Unknown,
            _ => PlaceShare::Other,
        }
    }
}

/// The places that are taken.
#[derive(Debug)]
pub(crate) struct TakenPlaces {
    limits: QueueLimits,
    unknown: usize,
    unknown_writes: usize,
    confirmed: usize,
    other: usize,
    measured: MeasuredPlaces,
    confirmed_at: Option<Duration>,
    /// When a page of a client without evidence was last complete.
    unknown_ended: Duration,
}

/// The circumstances on which the number of places depends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlaceTerms {
    pub(crate) order: MissOrder,
    pub(crate) is_overloaded: bool,
    pub(crate) now: Duration,
}

impl TakenPlaces {
    pub(crate) fn new(limits: QueueLimits) -> TakenPlaces {
        TakenPlaces {
            limits,
            unknown: 0,
            unknown_writes: 0,
            confirmed: 0,
            other: 0,
            measured: MeasuredPlaces::default(),
            confirmed_at: None,
            unknown_ended: Duration::ZERO,
        }
    }

    pub(crate) fn busy(&self) -> usize {
        self.confirmed + self.unknown_writes + self.unknown + self.other
    }

    /// Records that a confirmed visitor has sent a request.
    pub(crate) fn note_confirmed(&mut self, now: Duration) {
        self.confirmed_at = Some(now);
    }

    /// How long a request usually has its place.
    pub(crate) fn usual_time(&self) -> Duration {
        self.measured.usual_time()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.busy() >= self.limits.places
    }

    /// Whether a place is free for such a request, if no other waits.
    pub(crate) fn has_one_for(
        &self,
        (level, kind): (ClientLevel, MissKind),
        terms: PlaceTerms,
    ) -> bool {
        let others = self.unknown + self.other;
        let is_limited = match PlaceShare::of(level, kind) {
            _ if terms.order == MissOrder::Arrival => false,
            PlaceShare::Confirmed => false,
            PlaceShare::UnknownWrite => self.unknown_writes >= self.for_unknown_writes(terms),
            PlaceShare::Unknown => {
                self.unknown >= self.for_unknown(terms) || others >= self.for_others(terms)
            }
            PlaceShare::Other => others >= self.for_others(terms),
        };
        !self.is_full() && !is_limited
    }

    /// The places for pages of clients without evidence.
    ///
    /// Under overload a crawler's render that begins beside a visitor's takes CPU time from it, so it waits until the
    /// visitor's has ended. With a single place, it waits for at most half the usual time of a request after the one
    /// before it: crawlers, and visitors who are still unknown, never starve.
    pub(crate) fn for_unknown(&self, terms: PlaceTerms) -> usize {
        let all = self.limits.places;
        if terms.order != MissOrder::Rationed || !terms.is_overloaded {
            return self.calm(terms);
        }
        // With eight places a quarter is all that sessions leave: a visitor would wait for a crawler's render.
        let left = self.left_by_sessions(terms).saturating_sub(1);
        let most = self.measured.unknown((all / 4).min(self.limits.unknown).min(left).max(1));
        let pause = (self.usual_time() / 2).min(PAUSE_MAX);
        let is_pause = terms.now.saturating_sub(self.unknown_ended) < pause;
        beside_visitors(most, self.confirmed + self.other).max(usize::from(!is_pause))
    }

    fn for_unknown_writes(&self, terms: PlaceTerms) -> usize {
        if terms.is_overloaded { (self.limits.places / 4).max(1) } else { self.calm(terms) }
    }

    fn calm(&self, terms: PlaceTerms) -> usize {
        let all = self.limits.places;
        if terms.order == MissOrder::Arrival || all < RESERVED_FROM { all } else { all - 1 }
    }

    /// The places for all but confirmed visitors and writes of unknown clients.
    pub(crate) fn for_others(&self, terms: PlaceTerms) -> usize {
        let most = self.left_by_sessions(terms);
        if most == self.limits.places {
            return most;
        }
        // One beside those of clients without evidence, whose pages may be slow.
        let least = (self.unknown + 1).min(most);
        beside_visitors(most, self.confirmed).max(least)
    }

    /// The places that are not reserved for sessions: all, if none is active.
    fn left_by_sessions(&self, terms: PlaceTerms) -> usize {
        let all = self.limits.places;
        let is_active = |at: Duration| terms.now.saturating_sub(at) < SESSIONS_ACTIVE;
        if terms.is_overloaded && self.confirmed_at.is_some_and(is_active) {
            self.measured.others((all / 3).max(2).min(all))
        } else {
            all
        }
    }

    pub(crate) fn occupy(&mut self, level: ClientLevel, group: MissGroup) -> HeldPlace {
        let place = HeldPlace { level, group, was_alone: self.busy() == 0 };
        *self.count(&place) += 1;
        place
    }

    pub(crate) fn release(&mut self, place: &HeldPlace, took: Duration, terms: PlaceTerms) {
        *self.count(place) -= 1;
        if PlaceShare::of(place.level, place.group.kind) == PlaceShare::Unknown {
            self.unknown_ended = terms.now;
        }
        let load = (terms.is_overloaded, terms.now);
        self.measured.note(place.group, took, place.was_alone, load);
    }

    fn count(&mut self, place: &HeldPlace) -> &mut usize {
        match PlaceShare::of(place.level, place.group.kind) {
            PlaceShare::Confirmed => &mut self.confirmed,
            PlaceShare::UnknownWrite => &mut self.unknown_writes,
            PlaceShare::Unknown => &mut self.unknown,
            PlaceShare::Other => &mut self.other,
        }
    }
}

/// The places that are left of so many beside so many requests of visitors: at least half.
fn beside_visitors(most: usize, visitors: usize) -> usize {
    most.saturating_sub(visitors).max(most / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The terms of an overload, five seconds and so many milliseconds after the start.
    fn overload(ms: u64) -> PlaceTerms {
        let now = Duration::from_secs(5) + Duration::from_millis(ms);
        PlaceTerms { order: MissOrder::Rationed, is_overloaded: true, now }
    }

    fn has_one(taken: &TakenPlaces, level: ClientLevel) -> bool {
        taken.has_one_for((level, MissKind::Page), overload(0))
    }

    #[test]
    fn under_overload_clients_without_evidence_leave_a_place_to_each_other_kind() {
        let group = MissGroup::of(MissKind::Page, "/shop?a");
        for places in 2..=64 {
            let limits = QueueLimits::new(places, 1, usize::MAX);
            let mut taken = TakenPlaces::new(limits);
            taken.note_confirmed(Duration::ZERO);
            let mut held = Vec::new();
            while has_one(&taken, ClientLevel::Unknown) {
                held.push(taken.occupy(ClientLevel::Unknown, group));
            }
            assert!(!held.is_empty() && held.len() <= places.div_ceil(4), "{places}");
            assert!(has_one(&taken, ClientLevel::Known), "{places}");
            while has_one(&taken, ClientLevel::Known) {
                held.push(taken.occupy(ClientLevel::Known, group));
            }
            assert_eq!(has_one(&taken, ClientLevel::Confirmed), places > 2, "{places}");
        }
    }

    /// Places with sessions, where a request usually takes 100 ms, and one of this client ended at 5 s.
    fn after(places: usize, level: ClientLevel) -> TakenPlaces {
        let group = MissGroup::of(MissKind::Page, "/shop?a");
        let mut taken = TakenPlaces::new(QueueLimits::new(places, 1, usize::MAX));
        taken.note_confirmed(Duration::from_secs(5));
        for _ in 0..200 {
            let place = taken.occupy(level, group);
            taken.release(&place, Duration::from_millis(100), overload(0));
        }
        taken
    }

    #[test]
    fn under_overload_a_visitors_request_takes_a_place_from_those_with_less_evidence() {
        let group = MissGroup::of(MissKind::Page, "/news");
        let figures =
            |taken: &TakenPlaces| (taken.for_unknown(overload(0)), taken.for_others(overload(0)));
        let mut taken = after(36, ClientLevel::Known);
        assert_eq!(figures(&taken), (9, 12));
        let known = [(); 3].map(|()| taken.occupy(ClientLevel::Known, group));
        assert_eq!(figures(&taken), (6, 12));
        let sessions = [(); 4].map(|()| taken.occupy(ClientLevel::Confirmed, group));
        // Half of the places stay.
        assert_eq!(figures(&taken), (4, 8));
        let more = [(); 4].map(|()| taken.occupy(ClientLevel::Confirmed, group));
        assert_eq!(figures(&taken), (4, 6));
        for place in known.iter().chain(&sessions).chain(&more) {
            taken.release(place, Duration::from_millis(100), overload(0));
        }
        assert_eq!(figures(&taken), (9, 12));
    }

    /// On two cores, a third render would slow the visitor's.
    #[test]
    fn a_single_place_beside_visitors_pauses_for_half_a_request() {
        let group = MissGroup::of(MissKind::Page, "/news");
        for visitor in [ClientLevel::Confirmed, ClientLevel::Known] {
            let mut taken = after(6, ClientLevel::Unknown);
            assert_eq!(taken.for_unknown(overload(0)), 1, "no visitor is there");
            let place = taken.occupy(visitor, group);
            assert_eq!(taken.for_unknown(overload(49)), 0, "{visitor:?}");
            assert_eq!(taken.for_unknown(overload(51)), 1, "{visitor:?}: after half a request");
            taken.release(&place, Duration::from_millis(100), overload(20));
            assert_eq!(taken.for_unknown(overload(20)), 1, "{visitor:?} has ended");
        }
        // Without overload nothing is taken.
        let mut taken = after(6, ClientLevel::Unknown);
        let place = taken.occupy(ClientLevel::Confirmed, group);
        let calm = PlaceTerms { is_overloaded: false, ..overload(0) };
        assert_eq!((taken.for_unknown(calm), taken.for_others(calm)), (5, 6));
        taken.release(&place, Duration::from_millis(100), calm);
    }

    #[test]
    fn beside_sessions_a_slow_page_of_a_crawler_leaves_a_place_to_visitors_with_hits() {
        let group = MissGroup::of(MissKind::Page, "/report");
        let mut taken = after(6, ClientLevel::Unknown);
        let session = taken.occupy(ClientLevel::Confirmed, group);
        let crawler = taken.occupy(ClientLevel::Unknown, group);
        assert!(has_one(&taken, ClientLevel::Known) && !has_one(&taken, ClientLevel::Unknown));
        let known = taken.occupy(ClientLevel::Known, group);
        assert!(!has_one(&taken, ClientLevel::Known));
        for place in [session, crawler, known] {
            taken.release(&place, Duration::from_secs(20), overload(0));
        }
    }

    #[test]
    fn beside_slow_visitors_the_pause_is_short() {
        let group = MissGroup::of(MissKind::Page, "/report");
        let mut taken = after(6, ClientLevel::Unknown);
        for _ in 0..200 {
            let place = taken.occupy(ClientLevel::Unknown, group);
            taken.release(&place, Duration::from_secs(20), overload(0));
        }
        let place = taken.occupy(ClientLevel::Confirmed, group);
        assert_eq!((taken.for_unknown(overload(249)), taken.for_unknown(overload(250))), (0, 1));
        taken.release(&place, Duration::from_secs(20), overload(300));
    }
}
