//! How long the head of a response is waited for when its visitor has left (decision 0031).
//!
//! | | the visitor leaves |
//! |---|---|
//! | before the request may have reached the origin | it is given up: nothing was done |
//! | an unsafe method | it is heard to its end |
//! | a response of the site may say what has changed: LiteSpeed's dialect, private copies | the head is waited for, as long as the origin may take |
//! | somebody who is signed in asked | as above: applications change things by links |
//! | otherwise | it is given up at the origin |

use crate::forward::send_following;
use crate::origin::{OriginRequest, OriginResponse, Reached, Unsent};
use crate::site::Site;
use http_cache::{Failure, FieldUse};
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::task::JoinError;

/// How long an answer is waited for if its visitor leaves, as far as the request says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// As long as somebody asks, unless the site has to know the answer.
    WhileAsked,
    /// Until the head has come.
    ToTheHead,
}

/// Whether the head is waited for though nobody asks any more.
pub fn is_heard(site: &Site, patience: Patience) -> bool {
    patience == Patience::ToTheHead || may_say(site)
}

/// Whether a response to a safe request may say that something has changed.
pub fn may_say(site: &Site) -> bool {
    // A response that signs somebody out ends his copies.
    site.config.dialects.litespeed == FieldUse::Obey || site.config.private.is_some()
}

/// Sends a safe request that is passed on, and takes in what its response says to have changed.
///
/// # Errors
/// The task in which that is done has panicked.
pub async fn send(
    site: &Arc<Site>,
    mut outgoing: OriginRequest,
    patience: Patience,
) -> Result<Result<OriginResponse, Unsent>, JoinError> {
    if !is_heard(site, patience) {
        return Ok(send_following(site, &mut outgoing).await);
    }
    let (site, reached) = (site.clone(), outgoing.reached.clone());
    // Dropped with whoever waits here.
    let (_asking, left) = oneshot::channel::<()>();
    to_its_end(async move {
        let left = async { drop(left.await) };
        let sent = unless_left(send_following(&site, &mut outgoing), left, &reached).await;
        // Nobody is there to see it.
        sent.unwrap_or(Err(Unsent::Failed(Failure::HungUp)))
    })
    .await
}

/// Waits for what is being sent; `None` if `left` came before it may have reached the origin.
pub async fn unless_left<T>(
    sending: impl Future<Output = T>,
    left: impl Future<Output = ()>,
    reached: &Reached,
) -> Option<T> {
    let mut sending = pin!(sending);
    tokio::select! {
        biased;
        sent = &mut sending => Some(sent),
        () = left => match reached.may_have() {
            true => Some(sending.await),
            false => None,
        },
    }
}

/// Has a request sent by a task of its own, which goes on when the visitor leaves.
///
/// # Errors
/// The task has panicked.
pub async fn to_its_end<T: Send + 'static>(
    sending: impl Future<Output = T> + Send + 'static,
) -> Result<T, JoinError> {
    tokio::spawn(sending).await
}
