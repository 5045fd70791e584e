//! A connection for queries that is reused from one query to the next.
//!
//! It is closed when the stream breaks, because another server may answer after that. The server
//! may have closed an idle connection, so a failed query is repeated once on a new connection.

use super::Feed;
use database_links::fault::ConnectionError;
use databases::source::Session;
use std::pin::Pin;

/// A query in progress.
pub type Asking<'a, T> = Pin<Box<dyn Future<Output = Result<T, ConnectionError>> + Send + 'a>>;

/// The open connection, if any, and the generation of the stream that it belongs to.
#[derive(Default)]
pub struct ReusableSession {
    session: Option<(u64, Session)>,
}

impl ReusableSession {
    /// Opens the connection, if it is not open.
    ///
    /// # Errors
    /// The connection or the login failed.
    pub async fn open(&mut self, feed: &Feed) -> Result<(), ConnectionError> {
        let now = feed.generation();
        if self.session.as_ref().is_none_or(|(generation, _)| *generation != now) {
            self.session = Some((now, Session::open(&feed.config, feed.lookup_time_max).await?));
        }
        Ok(())
    }

    /// Runs a query on the open connection, or on a new one.
    ///
    /// # Errors
    /// The new connection or the query on it failed.
    pub async fn ask<T>(
        &mut self,
        feed: &Feed,
        question: impl for<'a> Fn(&'a mut Session) -> Asking<'a, T>,
    ) -> Result<T, ConnectionError> {
        let now = feed.generation();
        if let Some((generation, mut session)) = self.session.take()
            && generation == now
            && let Ok(answer) = question(&mut session).await
        {
            self.session = Some((now, session));
            return Ok(answer);
        }
        let mut session = Session::open(&feed.config, feed.lookup_time_max).await?;
        let answer = question(&mut session).await?;
        self.session = Some((now, session));
        Ok(answer)
    }
}
