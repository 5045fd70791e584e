//! Chooses the connection that carries a request: an idle one whose worker waits, or a new one.
//!
//! If the workers of all idle connections still run a script, a new connection may have to wait as well: each
//! free worker may hold a connection that becomes idle later. So the new one carries only the first record of
//! the request, and the request goes over whichever connection is ready first. A worker that finds the first
//! record and the end of the connection runs nothing.

use super::FastCgi;
use super::idle::{IdleChoice, IdleConnection};
use fastcgi::BEGIN_KEPT_OPEN;
use http_cache::Failure;
use sockets::Socket;
use std::time::Duration;
use telemetry::limit_hits::Limit;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

/// How often the idle connections are looked at while a new connection waits for a worker.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// The connection for a request.
pub enum ConnectionChoice {
    /// It has carried requests before.
    Kept(IdleConnection),
    /// It is new.
    Fresh {
        /// The connection to the responder.
        socket: Socket,
        /// Whether the first record of the request has been sent.
        is_begun: bool,
    },
}

impl FastCgi {
    /// A connection for a request. With `only_fresh`, a new one, for which an idle one is closed so that a worker
    /// is free.
    pub(super) async fn choose(&self, only_fresh: bool) -> Result<ConnectionChoice, Failure> {
        match self.idle.take().await {
            IdleChoice::Ready(kept) if !only_fresh => return Ok(ConnectionChoice::Kept(kept)),
            IdleChoice::Ready(_) | IdleChoice::Nothing => {
                return Ok(ConnectionChoice::Fresh {
                    socket: self.connect().await?,
                    is_begun: false,
                });
            }
            IdleChoice::Busy => {}
        }
        let mut socket = self.connect().await?;
        let first_ready = async {
            socket.write_all(&BEGIN_KEPT_OPEN).await.map_err(|_| Failure::HungUp)?;
            let mut search = None;
            loop {
                if timeout(LOOK_AGAIN, socket.all_read()).await.is_ok() {
                    return Ok(None);
                }
                search = search.or_else(|| self.idle.search());
                match search.as_ref().and_then(|search| search.ready()) {
                    Some(kept) if !only_fresh => return Ok(Some(kept)),
                    // Closing it frees its worker for the new connection.
                    other => drop(other),
                }
            }
        };
        match timeout(self.config.limits.origin_timeout, first_ready).await {
            Ok(Ok(Some(kept))) => Ok(ConnectionChoice::Kept(kept)),
            Ok(Ok(None)) => Ok(ConnectionChoice::Fresh { socket, is_begun: true }),
            Ok(Err(failure)) => Err(failure),
            Err(_) => Err(Failure::TimedOut),
        }
    }

    pub(super) async fn connect(&self) -> Result<Socket, Failure> {
        let connecting = Socket::connect(&self.address);
        match timeout(self.config.limits.origin_connect_timeout, connecting).await {
            Err(_) => {
                self.places.limit_hits.note(Limit::OriginConnectTimeout);
                Err(Failure::TimedOut)
            }
            Ok(Ok(socket)) => Ok(socket),
            Ok(Err(error)) => {
                if self.places.is_refusal_due() {
                    tracing::warn!(event = "origin-refused", address = %self.address, %error);
                }
                Err(Failure::Refused)
            }
        }
    }
}
