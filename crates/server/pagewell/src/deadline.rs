//! Time limits on waiting for a client: a connection asks for them thousands of times, and hardly ever
//! do they come to anything. They bound how long something takes, are kept by tokio's timers, and decide
//! nothing about a page.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::task::coop::unconstrained;
use tokio::time::{Instant, Sleep};

/// A time limit on waiting. The timer is neither set nor asked anew for every wait, which would cost
/// more than all else about it: it is left where it is while it fires early enough, and looked at
/// when it has fired.
#[derive(Default)]
pub struct Deadline {
    timer: Option<Pin<Box<Sleep>>>,
    /// Whom the timer wakes.
    wakes: Option<Waker>,
    /// Since when is being waited.
    since: Option<Instant>,
}

impl Deadline {
    /// Ready when `after` has passed since waiting began.
    pub fn poll(&mut self, after: Duration, cx: &mut Context<'_>) -> Poll<()> {
        let at = *self.since.get_or_insert_with(Instant::now) + after;
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
        let wakes = self.wakes.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()));
        if wakes && timer.deadline() <= at && !timer.is_elapsed() {
            return Poll::Pending;
        }
        if timer.deadline() > at {
            timer.as_mut().reset(at);
        }
        self.wakes = Some(cx.waker().clone());
        // Of a task that has done its share for now tokio would not set it, and nobody asks again.
        while Pin::new(&mut unconstrained(timer.as_mut())).poll(cx).is_ready() {
            if Instant::now() >= at {
                return Poll::Ready(());
            }
            timer.as_mut().reset(at);
        }
        Poll::Pending
    }

    /// Waiting is over.
    pub fn disarm(&mut self) {
        self.since = None;
    }

    /// Waiting has begun anew, at a moment that is known already.
    pub fn begin(&mut self, since: Instant) {
        self.since = Some(since);
    }

    /// Whether it is being waited.
    pub fn is_begun(&self) -> bool {
        self.since.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::pin::pin;
    use tokio::task::coop::{consume_budget, has_budget_remaining};
    use tokio::time::timeout;

    #[tokio::test]
    async fn the_timer_is_set_though_the_task_has_done_its_share() {
        let mut deadline = Deadline::default();
        let passed = poll_fn(|cx| {
            while !deadline.is_begun() && has_budget_remaining() {
                let _ = pin!(consume_budget()).poll(cx);
            }
            deadline.poll(Duration::from_millis(10), cx)
        });
        assert!(timeout(Duration::from_secs(60), passed).await.is_ok(), "nobody was woken");
    }
}
