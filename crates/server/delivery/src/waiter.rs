//! The state that the requests for one page share while one of them, the leader, renders it.
//! The followers wait here for the outcome. The leader is chosen by `page_store::Fills`, and whether a
//! follower may use the leader's page in `render`.

use http_cache::Failure;
use origin::SharedLevel;
use stored_pages::page::SharedPage;
use tokio::sync::watch;

/// The shared state on which the followers of a render wait.
pub struct Waiter {
    /// The outcome, once there is one.
    pub outcome: watch::Sender<Option<RenderOutcome>>,
    /// The level of the render's requests to the origin: that of the best client that waits for it.
    pub level: SharedLevel,
}

impl Default for Waiter {
    fn default() -> Waiter {
        Waiter { outcome: watch::Sender::new(None), level: SharedLevel::default() }
    }
}

/// The outcome of a render, for its followers. It is what they may use: also a page that the store has refused, for
/// a follower that arrived before the change. The history has the result of storing (`history::StoreOutcome`).
#[derive(Clone)]
pub enum RenderOutcome {
    /// A page; each follower checks whether it may share it.
    Page(SharedPage),
    /// The origin failed.
    Failed(Failure),
    /// Nothing that another client may use: the response is for one client only, or the render was cancelled, was
    /// not needed, or has panicked.
    NotShared,
}
