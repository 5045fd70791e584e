//! The interface to the process that has taken over from this one. That process has the pages, so
//! it must apply every change before the change is acknowledged here.
//!
//! | state of [`Leaving`] | answers from memory | a change |
//! |---|---|---|
//! | here | this process | is applied to the store |
//! | handed over | the successor | is applied by the successor as well, or the pages left for it may not be used |
//! | alone | nobody: the server stops | is applied to the store, for the snapshot and the other nodes |
//!
//! Once a change did not reach a successor that has served, nothing is acknowledged any more
//! ([`Leaving::has_lost_change`]). How a process takes over is described in `take_over`.

use crate::propagation::Propagation;
use page_store::{ChangeTarget, Strength};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The result of sending a change to the successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandOver {
    /// The successor has applied it.
    Applied,
    /// The successor does not exist, or no longer.
    Lost,
}

/// The connection to the process that has the pages.
pub trait SuccessorProcess: Send + Sync {
    /// Sends a change of the site with this host, and waits until it is applied. Blocks the thread.
    fn change(
        &self,
        host: Option<&str>,
        targets: &[ChangeTarget<'_>],
        strength: Strength,
    ) -> HandOver;

    /// Waits until the successor has applied all committed changes of its databases, at most for
    /// `bound`.
    fn barrier<'s>(
        &'s self,
        host: Option<&'s str>,
        bound: Duration,
    ) -> Pin<Box<dyn Future<Output = Propagation> + Send + 's>>;

    /// Whether it answers from its cache, or has done so.
    fn has_served(&self) -> bool;

    /// Ends the connection, because no operation in flight can cause a change any more.
    fn over(&self);
}

/// Whether a site's pages belong to another process, and which one.
#[derive(Default)]
pub struct Leaving {
    is: AtomicBool,
    /// Whether a change did not reach the successor, although it may have answered from its cache
    /// since.
    lost_change: AtomicBool,
    successor: Mutex<Option<Arc<dyn SuccessorProcess>>>,
}

impl Leaving {
    /// Whether this process has handed over its pages.
    #[inline]
    pub fn is(&self) -> bool {
        self.is.load(Ordering::Acquire)
    }

    /// Records that a change did not reach the successor.
    pub fn change_lost(&self) {
        self.lost_change.store(true, Ordering::Release);
    }

    /// Whether a change did not reach the successor.
    pub fn has_lost_change(&self) -> bool {
        self.lost_change.load(Ordering::Acquire)
    }

    /// The process that has the pages.
    pub fn successor(&self) -> Option<Arc<dyn SuccessorProcess>> {
        self.successor.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records that the server stops, and no process has the pages.
    pub fn alone(&self) {
        self.is.store(true, Ordering::Release);
    }

    /// Records that this process now has the pages.
    pub fn to(&self, successor: Arc<dyn SuccessorProcess>) {
        *self.successor.lock().unwrap_or_else(PoisonError::into_inner) = Some(successor);
        self.is.store(true, Ordering::Release);
    }
}
