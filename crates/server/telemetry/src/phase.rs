//! The phases of a process, published to all of its tasks by one watch channel.
//!
//! | phase | listeners | databases, snapshots, periodic tasks | HTTP/2, memcached | HTTP/1, control |
//! |---|---|---|---|---|
//! | serving | accept | run | continue | continue |
//! | held | do not accept; new connections stay queued | end | end after the requests in flight | continue, until the next response |
//! | left | close; the files of Unix sockets stay | | | |
//! | stopping | close; delete the files of Unix sockets | end | end after the requests in flight | end after the requests in flight |
//! | ended | | | | end after the requests in flight |
//!
//! `serving → stopping` is a shutdown. `serving → held → left → ended` is a hand-over to another
//! process, and `held → serving` a failed one (`take_over`).

use tokio::sync::watch;

/// The phase of a process between its start and its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// The process serves requests.
    #[default]
    Serving,
    /// Another process is about to take over.
    Held,
    /// Another process has taken over.
    Left,
    /// It is shutting down.
    Stopping,
    /// Another process has taken over, and the last requests of this one have ended.
    Ended,
}

impl Phase {
    /// Returns whether nothing new may begin.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        *self != Phase::Serving
    }

    /// Returns whether idle connections must close.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self, Phase::Stopping | Phase::Ended)
    }
}

/// The receiver of the process's phase.
pub type PhaseWatch = watch::Receiver<Phase>;

/// Returns whether such a phase was published since `seen` was last read, for tasks that cannot
/// wait for it. While nothing is published, this is a single atomic read.
pub fn has_phase(seen: &PhaseWatch, such: impl Fn(&Phase) -> bool) -> bool {
    !matches!(seen.has_changed(), Ok(false)) && such(&seen.borrow())
}
