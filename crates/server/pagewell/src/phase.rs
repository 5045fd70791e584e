//! What everybody of a process is told about its end, by one watch channel.
//!
//! | phase | listeners | databases, snapshots, chores | HTTP/2, memcached | HTTP/1, control |
//! |---|---|---|---|---|
//! | serving | accept | run | go on | go on |
//! | held | accept nobody, and keep what waits | end | end after what is in hand | go on, until the next response |
//! | left | end; the files of Unix sockets stay | | | |
//! | stopping | end; their own files go | end | end after what is in hand | end after what is in hand |
//! | ended | | | | end after what is in hand |
//!
//! `serving → stopping` is a stop. `serving → held → left → ended` is a hand-over to another process, and
//! `held → serving` one that has failed (`take_over`).

use tokio::sync::watch;

/// Where a process is between its start and its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// It serves.
    #[default]
    Serving,
    /// Another process is about to take over.
    Held,
    /// It has taken over.
    Left,
    /// Told to stop.
    Stopping,
    /// Handed over, and what was left of it is at its end as well.
    Ended,
}

impl Phase {
    /// Whether nothing new is begun.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        *self != Phase::Serving
    }

    /// Whether what is idle ends.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self, Phase::Stopping | Phase::Ended)
    }
}

/// What it is told by.
pub type Told = watch::Receiver<Phase>;

/// Whether it has been said, since `seen` was made, that it is such a phase: for those who have too much to do to
/// wait for it. As long as nothing is said this is one look at a number.
pub fn is_told(seen: &Told, such: impl Fn(&Phase) -> bool) -> bool {
    !matches!(seen.has_changed(), Ok(false)) && such(&seen.borrow())
}
