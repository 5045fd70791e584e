//! The right to render a page: the lease, and the followers that wait for the result.
//!
//! Invariant: the followers are notified of the outcome however the render ends. Not here: the render itself (`lib.rs`), and
//! the leases (`page_store`).

use delivery::waiter::{RenderOutcome, Waiter};
use page_store::{Leader, Lease};

/// The right to render, with or without followers.
pub(crate) enum RenderPermit {
    Leader(Leader<Waiter>),
    Solo(Lease),
}

impl RenderPermit {
    pub(crate) fn lease(&self) -> &Lease {
        match self {
            RenderPermit::Leader(leader) => leader.lease(),
            RenderPermit::Solo(lease) => lease,
        }
    }

    /// Notifies the followers of the outcome, and ends the render. It cannot be joined from then
    /// on: a request that arrives after the client's answer must not get an older page.
    pub(crate) fn end(self, outcome: RenderOutcome) {
        self.tell(outcome);
    }

    pub(crate) fn tell(&self, outcome: RenderOutcome) {
        if let RenderPermit::Leader(leader) = self {
            leader.waiter().outcome.send_replace(Some(outcome));
        }
    }
}

/// Notifies the followers however a render ends: also if it is cancelled, if the page was found
/// after all, or after a panic. Otherwise they would wait for ever.
impl Drop for RenderPermit {
    fn drop(&mut self) {
        let RenderPermit::Leader(leader) = self else { return };
        leader.waiter().outcome.send_if_modified(|outcome| {
            let is_open = outcome.is_none();
            if is_open {
                *outcome = Some(RenderOutcome::NotShared);
            }
            is_open
        });
    }
}
