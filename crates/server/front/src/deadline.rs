//! Time limits on waiting for a client. A connection sets them thousands of times, and they rarely
//! expire.
//!
//! They bound durations with tokio's timers, and have no effect on the freshness of pages.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::task::coop::unconstrained;
use tokio::time::{Instant, Sleep};

/// A time limit on waiting. Resetting the timer for every wait would cost more than all the rest of it.
/// So the timer stays as it is while it fires early enough, and is checked when it fires.
#[derive(Default)]
pub struct Deadline {
    timer: Option<Pin<Box<Sleep>>>,
    /// The task that the timer wakes.
    wakes: Option<Waker>,
    /// When the wait began; `None` while there is no wait.
    since: Option<Instant>,
}

impl Deadline {
    /// Ready when `after` has passed since the wait began. The first poll begins the wait.
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
        // Unconstrained: when the task has used up its budget, tokio would not set the timer, and
        // nothing would poll it again.
        while Pin::new(&mut unconstrained(timer.as_mut())).poll(cx).is_ready() {
            if Instant::now() >= at {
                return Poll::Ready(());
            }
            timer.as_mut().reset(at);
        }
        Poll::Pending
    }

    /// Ends the wait; the next poll begins a new one.
    pub fn disarm(&mut self) {
        self.since = None;
    }

    /// Begins a wait at `since`, a time that the caller has already read.
    pub fn begin(&mut self, since: Instant) {
        self.since = Some(since);
    }

    /// Whether a wait has begun.
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
