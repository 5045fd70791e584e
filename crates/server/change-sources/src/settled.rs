//! Waits until everything that the site's databases have committed is applied **and settled** here, with no bound: for
//! the comparison of a stored page with a render. The write barrier waits for less (applied), and gives up.
//!
//! | interleaving | what happens |
//! |---|---|
//! | a transaction commits before the query | its position is part of the answer: it is waited for |
//! | … its rows are not visible yet when its event arrives | it is open, so the settled position stays before it |
//! | … it deletes a row that is held back | the row is released first; until then the settled position stays before it |
//! | a transaction commits after the query | it is not waited for: under constant writes this ends all the same |
//! | a change settles between the look and the wait | the count of settled changes has grown since the look: the wait ends at once |
//! | the stream breaks | no position is known until it is followed again: the wait goes on, over the gap's purge |
//! | the database is not followed any more | [`SettledWait::NotFollowed`] |
//!
//! The caller bounds the wait. A render that begins after it reads all data that was committed before the query; and a
//! stored page that is still there after it depends on none of these changes, as far as its dependencies say.

use super::{ChangeSources, Feed};
use databases::stream_types::Position;
use site_state::SiteState;
use std::sync::Arc;
use std::time::Duration;

/// The pause after a query that failed.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// The result of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettledWait {
    /// Everything committed before is applied and settled. A site without databases is always settled.
    Settled,
    /// A database is not followed, so that nothing can be said.
    NotFollowed,
}

/// Waits until all that was committed before this call is applied and settled, with no bound.
pub async fn settled(site: &Arc<SiteState>, sources: &ChangeSources) -> SettledWait {
    for feed in &sources.feeds {
        tokio::select! {
            () = feed.settled_now(site) => {}
            () = feed.ended() => return SettledWait::NotFollowed,
        }
    }
    SettledWait::Settled
}

impl Feed {
    async fn settled_now(&self, site: &SiteState) {
        // Queried first: a later position would be one that may never settle under constant writes.
        let committed = loop {
            match self.committed().await {
                Some(committed) => break committed,
                None => tokio::time::sleep(ASK_AGAIN_AFTER).await,
            }
        };
        if self.reached(&committed).await.is_none() {
            return std::future::pending().await;
        }
        self.release_held(site).await;
        self.settled_up_to(&committed).await;
    }

    /// Waits until all changes up to this position are settled.
    async fn settled_up_to(&self, position: &Position) {
        let mut settled = self.settled.subscribe();
        loop {
            settled.borrow_and_update();
            let is_settled = self
                .progress()
                .bookmark()
                .is_some_and(|bookmark| bookmark.stream_position.position.has_all(position));
            if is_settled {
                return;
            }
            if settled.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// Records that the settled position may have advanced.
    pub(super) fn note_settled(&self) {
        self.settled.send_modify(|count| *count += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use databases::stream_types::Bookmark;
    use std::future::poll_fn;
    use std::pin::Pin;
    use std::pin::pin;
    use std::task::Poll;
    use telemetry::clock::Clock;

    /// A site with a database that nothing follows: the test plays the follower and the server.
    fn stand() -> (Arc<SiteState>, ChangeSources, Arc<Feed>) {
        let text = "site.origin = \"http://127.0.0.1:1\"\n[[database]]\nurl = \"mysql://a@localhost/b\"\n\
                    [[change]]\ntable = \"b.news\"\ntags = [\"news\"]\n";
        let file = toml::from_str(text).expect("a configuration");
        let config = Arc::new(config::resolve(&file).expect("it can be used"));
        let sources = ChangeSources::new(&config);
        let feed = sources.feeds[0].clone();
        feed.progress().resume(&"7".into());
        // As while a task follows it.
        feed.tasks.send_replace(1);
        (SiteState::new(config, Clock::start(), None, true), sources, feed)
    }

    fn bookmark(number: u64) -> Bookmark {
        format!("mariadb 7 0-1-{number}").parse().expect("a bookmark")
    }

    /// Applies everything up to a transaction.
    fn apply(feed: &Feed, number: u64) {
        let position = bookmark(number).stream_position;
        feed.progress().advance(position.clone());
        feed.applied.send_replace(Some(position.position));
        feed.note_settled();
    }

    /// Answers the next query with this position.
    async fn answer(feed: &Feed, number: u64) {
        let questions = || feed.questions.lock().expect("no panic");
        let mut taken = questions().take().expect("nothing follows");
        let ask = taken.0.recv().await.expect("a query");
        ask.send(bookmark(number).stream_position.position).expect("it waits");
        *questions() = Some(taken);
    }

    async fn is_over(wait: &mut Pin<&mut impl Future<Output = SettledWait>>) -> bool {
        poll_fn(|context| Poll::Ready(wait.as_mut().poll(context).is_ready())).await
    }

    #[tokio::test]
    async fn an_open_change_is_waited_for_and_later_ones_are_not() {
        let (site, sources, feed) = stand();
        apply(&feed, 1);
        let mut wait = pin!(settled(&site, &sources));
        assert!(!is_over(&mut wait).await, "the query has no answer");
        answer(&feed, 3).await;
        assert!(!is_over(&mut wait).await, "3 is not applied");
        feed.progress().opened();
        apply(&feed, 2);
        feed.progress().opened();
        apply(&feed, 3);
        assert!(!is_over(&mut wait).await, "2 and 3 are open");
        feed.progress().settled();
        feed.note_settled();
        feed.progress().opened();
        apply(&feed, 4);
        assert!(!is_over(&mut wait).await, "3 is open");
        feed.progress().settled();
        feed.note_settled();
        assert_eq!(wait.await, SettledWait::Settled, "4 is open, and later");
    }

    #[tokio::test]
    async fn a_held_row_and_a_gap_are_waited_for() {
        let (site, sources, feed) = stand();
        apply(&feed, 1);
        let mut wait = pin!(settled(&site, &sources));
        assert!(!is_over(&mut wait).await);
        answer(&feed, 2).await;
        feed.progress().hold();
        apply(&feed, 2);
        assert!(!is_over(&mut wait).await, "a row of 2 is held");
        feed.progress().gap();
        feed.note_settled();
        assert!(!is_over(&mut wait).await, "nothing is known");
        feed.progress().hold_none();
        apply(&feed, 2);
        assert_eq!(wait.await, SettledWait::Settled);
    }

    #[tokio::test]
    async fn a_database_that_is_not_followed_any_more_ends_the_wait() {
        let (site, sources, feed) = stand();
        let mut wait = pin!(settled(&site, &sources));
        assert!(!is_over(&mut wait).await);
        feed.tasks.send_replace(0);
        assert_eq!(wait.await, SettledWait::NotFollowed);
        let none = ChangeSources { feeds: Vec::new(), peers: None };
        assert_eq!(settled(&site, &none).await, SettledWait::Settled);
    }
}
