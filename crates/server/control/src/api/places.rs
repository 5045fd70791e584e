//! Limits the connections to the control interface: [`CONNECTIONS`] permanent ones, and one more
//! for a new client. If that one is taken as well, the connection that has been idle longest is
//! closed.
//!
//! | state | when | may be closed |
//! |---|---|---|
//! | `New` | connected, with no call yet, for at most [`HEAD_START`] | no |
//! | `Called` | from the arrival of a call until its answer is received | no |
//! | `Idle` | otherwise | the one that is idle longest, first |
//! | `Leaving` | it is being closed | |
//!
//! If every connection has a running call, a new connection waits for the first one that ends.
//! Lock: one, around the list; no other lock is taken under it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// The most permanent connections.
pub(super) const CONNECTIONS: usize = 256;
/// How long a new connection without a call does not count as idle.
const HEAD_START: Duration = Duration::from_secs(1);

/// All connections to the control interface.
#[derive(Default)]
pub(super) struct Places(Mutex<ConnectionSlots>);

#[derive(Default)]
struct ConnectionSlots {
    all: Vec<(Arc<Notify>, State)>,
    /// Counts the transitions to idle.
    times: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    New,
    Called,
    /// The number of the transition to idle.
    Idle(u64),
    Leaving,
}

/// The place of a connection, until it is dropped.
pub(super) struct Place {
    places: Arc<Places>,
    go: Arc<Notify>,
    was_called: AtomicBool,
}

/// A running call, until it is dropped.
pub(super) struct Call(Arc<Place>);

impl Places {
    /// Adds a new connection, and closes an idle one if there are too many.
    pub(super) fn enter(self: &Arc<Places>) -> Arc<Place> {
        let go = Arc::new(Notify::new());
        let mut taken = self.taken();
        taken.all.push((go.clone(), State::New));
        taken.relieve();
        Arc::new(Place { places: self.clone(), go, was_called: AtomicBool::new(false) })
    }

    fn taken(&self) -> MutexGuard<'_, ConnectionSlots> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionSlots {
    fn state(&mut self, go: &Arc<Notify>) -> &mut State {
        let one = self.all.iter_mut().find(|(other, _)| Arc::ptr_eq(other, go));
        &mut one.expect("it is in the list until it is dropped").1
    }

    fn rests(&mut self, go: &Arc<Notify>) {
        self.times += 1;
        *self.state(go) = State::Idle(self.times);
        self.relieve();
    }

    /// Closes an idle connection, if there are too many.
    fn relieve(&mut self) {
        let staying = self.all.iter().filter(|(_, state)| *state != State::Leaving).count();
        if staying <= CONNECTIONS {
            return;
        }
        let idle = self.all.iter_mut().filter_map(|(go, state)| match *state {
            State::Idle(since) => Some((since, go, state)),
            State::New | State::Called | State::Leaving => None,
        });
        if let Some((_, go, state)) = idle.min_by_key(|(since, ..)| *since) {
            *state = State::Leaving;
            go.notify_one();
        }
    }
}

impl Place {
    /// Marks the start of a call.
    pub(super) fn begin(self: &Arc<Place>) -> Call {
        self.was_called.store(true, Ordering::Relaxed);
        let mut taken = self.places.taken();
        let state = taken.state(&self.go);
        if *state != State::Leaving {
            *state = State::Called;
        }
        Call(self.clone())
    }

    /// Returns whether the connection has had a call.
    pub(super) fn was_called(&self) -> bool {
        self.was_called.load(Ordering::Relaxed)
    }

    /// Completes when the connection must close.
    pub(super) async fn until_asked_to_leave(&self) {
        tokio::select! {
            () = tokio::time::sleep(HEAD_START) => self.had_time(),
            () = self.go.notified() => return,
        }
        self.go.notified().await;
    }

    fn had_time(&self) {
        let mut taken = self.places.taken();
        if *taken.state(&self.go) == State::New {
            taken.rests(&self.go);
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let mut taken = self.0.places.taken();
        if *taken.state(&self.0.go) == State::Called {
            taken.rests(&self.0.go);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken().all.retain(|(go, _)| !Arc::ptr_eq(go, &self.go));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOBODY: [usize; 0] = [];

    fn is_leaving(place: &Place) -> bool {
        *place.places.taken().state(&place.go) == State::Leaving
    }

    fn leaving(all: &[Arc<Place>]) -> Vec<usize> {
        (0..all.len()).filter(|at| is_leaving(&all[*at])).collect()
    }

    #[test]
    fn the_longest_idle_goes_and_no_other() {
        let places = Arc::new(Places::default());
        let mut all: Vec<_> = (0..CONNECTIONS).map(|_| places.enter()).collect();
        let _call = all[0].begin();
        drop(all[2].begin());
        drop(all[1].begin());
        drop(all[3].begin());
        let again = all[2].begin();
        assert_eq!(leaving(&all), NOBODY, "there is a place for each");
        all.push(places.enter());
        assert_eq!(leaving(&all), [1]);
        drop(again);
        all.push(places.enter());
        assert_eq!(leaving(&all), [1, 3]);
        drop(all.remove(1));
        assert_eq!(leaving(&all), [2], "it was the fourth");
        assert_eq!(places.taken().all.len(), CONNECTIONS + 1);
    }

    #[test]
    fn the_first_idle_connection_is_closed_when_all_places_are_taken() {
        let places = Arc::new(Places::default());
        let all: Vec<_> = (0..=CONNECTIONS).map(|_| places.enter()).collect();
        let call = all[7].begin();
        assert_eq!(leaving(&all), NOBODY, "all are new, or have a call in hand");
        all[7].had_time();
        assert_eq!(leaving(&all), NOBODY, "it is not new");
        drop(call);
        assert_eq!(leaving(&all), [7]);
        all[8].had_time();
        assert_eq!(leaving(&all), [7], "now there is a place for each");
        drop(all[7].begin());
        assert_eq!(leaving(&all), [7], "it goes all the same");
    }
}
