//! How long a forwarded request continues after its client has disconnected (decision 0031).
//!
//! | request | after the client disconnects |
//! |---|---|
//! | may not have reached the origin yet | it is cancelled: it had no effect |
//! | unsafe method | it continues to the end of the response |
//! | response may report invalidations: LiteSpeed's compatibility headers, or private copies | it continues until the response head, within the origin's time limits |
//! | from a client that is logged in | the same, because applications also change data in links (GET) |
//! | any other | it is cancelled at the origin |

use crate::send::{may_report_change, send_following};
use delivery::site::Site;
use http_cache::Failure;
use origin::{OriginRequest, OriginResponse, SendProgress, Unsent};
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::task::JoinError;

/// How long a request continues after its client has disconnected, as far as the request determines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnClientGone {
    /// Only while a client waits, unless the site needs the response head.
    Abort,
    /// Until the response head has been received.
    AwaitHead,
}

/// Whether a request continues until the response head although its client has disconnected.
pub fn must_await_response(site: &Site, on_client_gone: OnClientGone) -> bool {
    on_client_gone == OnClientGone::AwaitHead || may_report_change(site)
}

/// Forwards a safe request to the origin, and applies the invalidations that its response head reports.
///
/// # Errors
/// The task that sends the request has panicked.
pub async fn send(
    site: &Arc<Site>,
    mut outgoing: OriginRequest,
    on_client_gone: OnClientGone,
) -> Result<Result<OriginResponse, Unsent>, JoinError> {
    if !must_await_response(site, on_client_gone) {
        return Ok(send_following(site, &mut outgoing).await);
    }
    let (site, reached) = (site.clone(), outgoing.progress.clone());
    // Dropped together with this future when the client disconnects.
    let (_asking, left) = oneshot::channel::<()>();
    to_its_end(async move {
        let left = async { drop(left.await) };
        let sent = unless_left(send_following(&site, &mut outgoing), left, &reached).await;
        // The result has no reader any more.
        sent.unwrap_or(Err(Unsent::Failed(Failure::HungUp)))
    })
    .await
}

/// Waits for `sending`. `None` if `left` completes before the request may have reached the origin.
pub async fn unless_left<T>(
    sending: impl Future<Output = T>,
    left: impl Future<Output = ()>,
    reached: &SendProgress,
) -> Option<T> {
    let mut sending = pin!(sending);
    tokio::select! {
        biased;
        sent = &mut sending => Some(sent),
        () = left => if reached.may_have() { Some(sending.await) } else { None },
    }
}

/// Runs `sending` in a task of its own, which continues when the client disconnects.
///
/// # Errors
/// The task has panicked.
pub async fn to_its_end<T: Send + 'static>(
    sending: impl Future<Output = T> + Send + 'static,
) -> Result<T, JoinError> {
    tokio::spawn(sending).await
}
