//! Limits how many searches of a site's pages run at the same time: one, with a bounded queue. A search
//! is a purge by an expression or a condition. It looks at every stored page, so it is not done in
//! parallel (`purge`).

use tokio::sync::Semaphore;

/// Maximum number of searches that wait.
const WAITING_MAX: usize = 64;

/// Limits the searches of a site's pages to one at a time.
pub struct Searches {
    /// One permit for each search that may wait.
    pub waiting: Semaphore,
    /// The permit of the search that runs.
    pub running: Semaphore,
}

impl Default for Searches {
    fn default() -> Searches {
        Searches { waiting: Semaphore::new(WAITING_MAX), running: Semaphore::new(1) }
    }
}
