//! The places of the origin, and which requests may have how many of them.
//!
//! | places for | calm | overload |
//! |---|---|---|
//! | pages of clients without evidence | all but one | a quarter, at least 1 |
//! | writes of clients without evidence | all but one | a quarter, at least 1, which no page takes |
//! | all but confirmed visitors and those writes | all | all; while sessions are active, a third, at least 2 |
//! | confirmed visitors | all | all |
//!
//! With fewer than four places, none is reserved while there is no overload. Sessions are active if one has sent a
//! request within ten seconds: without any, reserved places would be idle while others wait. Under overload the
//! figures shrink further while the origin is slow ([`MeasuredPlaces`]).

use crate::group::{ClientLevel, MissGroup, MissKind};
use crate::measured::MeasuredPlaces;
use crate::queue::{HeldPlace, MissOrder, QueueLimits};
use std::time::Duration;

/// With fewer places, none of them is reserved while there is no overload.
const RESERVED_FROM: usize = 4;
/// Places are reserved for sessions for so long after the last request of one.
const SESSIONS_ACTIVE: Duration = Duration::from_secs(10);

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

    pub(crate) fn for_unknown(&self, terms: PlaceTerms) -> usize {
        let all = self.limits.places;
        if terms.order == MissOrder::Rationed && terms.is_overloaded {
            self.measured.unknown((all / 4).min(self.limits.unknown).max(1))
        } else {
            self.calm(terms)
        }
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
