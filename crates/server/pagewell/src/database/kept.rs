//! A connection for questions that is kept from one to the next.
//!
//! It is let go when the stream breaks: the server that answers then may be another. One that was idle
//! may have been closed by the server; who asks tries once more with a new one.

use super::Feed;
use super::source::{Failed, Session};
use std::pin::Pin;

/// An answer that is on its way.
pub type Asking<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failed>> + Send + 'a>>;

/// The connection, if there is one, and which following of the database it belongs to.
#[derive(Default)]
pub struct Kept {
    session: Option<(u64, Session)>,
}

impl Kept {
    /// Asks by way of it.
    ///
    /// # Errors
    /// Why nobody answered, twice if the connection was an old one.
    pub async fn ask<T>(
        &mut self,
        feed: &Feed,
        question: impl for<'a> Fn(&'a mut Session) -> Asking<'a, T>,
    ) -> Result<T, Failed> {
        let now = feed.generation();
        if let Some((generation, mut session)) = self.session.take()
            && generation == now
            && let Ok(answer) = question(&mut session).await
        {
            self.session = Some((now, session));
            return Ok(answer);
        }
        let mut session = Session::open(&feed.config).await?;
        let answer = question(&mut session).await?;
        self.session = Some((now, session));
        Ok(answer)
    }
}
