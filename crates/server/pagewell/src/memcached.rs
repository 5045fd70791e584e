//! The memcached port: serves connections in memcached's text protocol, and stores their items.
//!
//! The items are in the site's page store, under keys that no HTTP request can have, and are
//! invalidated like pages (`keeper.rs`). When the origin began to generate an item is unknown, unless
//! the client has used a lease: `memcached_leases.rs` handles both cases. [0030] has the reasons.
//!
//! A connection reads only after the responses to all its requests are sent. So it needs memory for at
//! most one line or value, and one response. A connection whose first line is not a command is closed.
//! It uses TLS or another protocol, and an attacker might have placed a command in a later line. There
//! is no authentication, so the configuration accepts only loopback addresses and Unix sockets.
//!
//! [0030]: ../../../docs/decisions/memcached-port.md

mod keeper;
mod page_line;

pub use keeper::Keeper;
pub use site_state::memcached_keys::{NAMESPACE, is_of_client};
pub use site_state::memcached_leases::Leases;

use bytes::BytesMut;
use delivery::site::Site;
use memcache::{Answer, Command, Decoder, Limits, Moment, Next, Refusal, Step, execute};
use site_state::pending_changes::PendingChange;
use sockets::{AcceptedConnection, Listener, accept_each};
use std::io::IoSlice;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use telemetry::phase::{Phase, PhaseWatch, has_phase};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Maximum number of concurrent connections, as in memcached.
const CONNECTIONS: usize = 1_024;
/// Maximum size of one read in bytes, whatever length the client announces.
const READ_BYTES: usize = 64 << 10;
/// A response that is longer, in bytes, is sent before further requests are parsed.
const ANSWER_BYTES: usize = 64 << 10;
/// How long a client may pause within a request.
const SILENT: Duration = Duration::from_secs(30);
/// Incomplete requests of all connections together may use this fraction (1/`SHARE`) of the page
/// budget.
const SHARE: usize = 4;
/// Maximum number of pieces of a response per write; a page has three.
const PIECES: usize = 16;

/// Serves one listening socket until shutdown.
pub async fn serve(
    listener: Listener,
    limits: Limits,
    keeper: Arc<Keeper>,
    begun: Arc<PartialRequests>,
    stop: PhaseWatch,
) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let ended = accept_each(
        &listener,
        places,
        || {},
        stop.clone(),
        |accepted, place| {
            let (keeper, begun, stop) = (keeper.clone(), begun.clone(), stop.clone());
            async move {
                let own = PartialRequestShare { begun, bytes: 0 };
                match accepted {
                    AcceptedConnection::Tcp(stream, _) => {
                        connection(stream, limits, &keeper, own, stop).await
                    }
                    AcceptedConnection::Unix(stream) => {
                        connection(stream, limits, &keeper, own, stop).await
                    }
                }
                drop(place);
            }
        },
    )
    .await;
    listener.close(ended);
}

/// Serves one connection until either side closes it.
async fn connection<IO: AsyncRead + AsyncWrite + Unpin>(
    mut io: IO,
    limits: Limits,
    keeper: &Keeper,
    mut own: PartialRequestShare,
    mut stop: PhaseWatch,
) {
    let (mut decoder, mut input) = (Opening::new(limits), BytesMut::new());
    let (mut answer, mut deletions) = (Answer::default(), None);
    let seen = stop.clone();
    let mut leaving = pin!(stop.wait_for(Phase::is_leaving));
    loop {
        let next = step(&mut decoder, &mut input, limits, keeper, (&mut answer, &mut deletions));
        let is_due = next != After::Go || answer.len() >= ANSWER_BYTES;
        if is_due && !sent(&mut io, &mut answer, keeper.site(), deletions.take()).await {
            return;
        }
        match next {
            After::Go => {}
            After::Close => return,
            After::Read(_) if has_phase(&seen, Phase::is_leaving) => return,
            After::Read(more) => {
                if !own.holds(input.len()) {
                    keeper.site().counters.memcached_refused.add();
                    tracing::warn!(event = "memcached-closed", reason = "no-room");
                    return;
                }
                input.reserve(more.clamp(4_096, READ_BYTES));
                // Within a request, the client has to continue in time. Between requests, it may be
                // idle.
                let may_rest = input.is_empty() && more == 1;
                let reading = io.read_buf(&mut input);
                let read = async {
                    if may_rest {
                        reading.await.ok()
                    } else {
                        timeout(SILENT, reading).await.ok().and_then(Result::ok)
                    }
                };
                let read = tokio::select! {
                    biased;
                    read = read => read,
                    _ = &mut leaving => return,
                };
                if matches!(read, Some(0) | None) {
                    return;
                }
            }
        }
    }
}

/// Counts the bytes of incomplete requests of all connections.
pub struct PartialRequests {
    bytes: AtomicUsize,
    bytes_max: usize,
}

impl PartialRequests {
    /// A counter with the maximum for a page budget of `memory_bytes`.
    pub fn new(memory_bytes: usize) -> PartialRequests {
        PartialRequests { bytes: AtomicUsize::new(0), bytes_max: memory_bytes / SHARE }
    }
}

/// One connection's share of the counter.
struct PartialRequestShare {
    begun: Arc<PartialRequests>,
    bytes: usize,
}

impl PartialRequestShare {
    /// Sets this connection's share to `bytes`. Returns whether the total is within its maximum.
    fn holds(&mut self, bytes: usize) -> bool {
        let all = &self.begun.bytes;
        all.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = bytes;
        all.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.begun.bytes_max.max(READ_BYTES)
    }
}

impl Drop for PartialRequestShare {
    fn drop(&mut self) {
        self.holds(0);
    }
}

/// The next action of a connection: continue, read at least this many bytes, or close.
#[derive(PartialEq)]
enum After {
    Go,
    Read(usize),
    Close,
}

/// Executes the next request, if there is a complete one.
fn step(
    decoder: &mut Opening,
    input: &mut BytesMut,
    limits: Limits,
    keeper: &Keeper,
    (answer, deletions): (&mut Answer, &mut Option<PendingChange>),
) -> After {
    match decoder.next(input) {
        Step::More(more) => After::Read(more),
        Step::Close(why) => closed(why.as_str()),
        Step::Request(request) if decoder.is_foreign(&request.command) => closed("no-command"),
        // Another process owns the items now.
        Step::Request(_) if !keeper.site().answers_from_cache() => After::Close,
        Step::Request(request)
            if !begun(&request.command, deletions, || {
                PendingChange::begin_at_once(keeper.site().state())
            }) =>
        {
            After::Close
        }
        Step::Request(request) => {
            let now = Moment(keeper.site().clock.now().0);
            match execute(&request, keeper, limits, now, answer) {
                Next::Go => After::Go,
                Next::Close => After::Close,
            }
        }
    }
}

fn closed(reason: &'static str) -> After {
    tracing::warn!(event = "memcached-closed", reason);
    After::Close
}

/// A connection's decoder, which also knows whether the connection has sent a command.
struct Opening {
    decoder: Decoder,
    had_command: bool,
}

impl Opening {
    fn new(limits: Limits) -> Opening {
        Opening { decoder: Decoder::new(limits), had_command: false }
    }

    fn next(&mut self, input: &mut BytesMut) -> Step {
        self.decoder.next(input)
    }

    /// Whether this is the connection's first request and is not a memcached command.
    fn is_foreign(&mut self, command: &Command) -> bool {
        let is_command = !matches!(command, Command::Refused(Refusal::Unknown));
        let had_command = std::mem::replace(&mut self.had_command, true);
        !had_command && !is_command
    }
}

/// Registers a deletion before it is published to other nodes; `false` if the process accepts none
/// any more. One registration covers all requests that are answered at once, including quiet ones.
fn begun<P>(
    command: &Command,
    deletions: &mut Option<P>,
    begin: impl FnOnce() -> Option<P>,
) -> bool {
    if command.is_delete() && deletions.is_none() {
        *deletions = begin();
        return deletions.is_some();
    }
    true
}

/// Sends and clears the response; `false` if the client does not take it. `deletions` stands for the
/// deletions that it acknowledges.
async fn sent<IO: AsyncWrite + Unpin>(
    io: &mut IO,
    answer: &mut Answer,
    site: &Site,
    deletions: Option<PendingChange>,
) -> bool {
    // Other nodes may have the deleted item cached. The protocol cannot express that the invalidation
    // is late.
    if let Some(deletions) = deletions {
        deletions.acknowledge().await;
    }
    let is_sent = written(io, answer, site.limits.write_timeout).await;
    answer.clear();
    is_sent
}

/// Sends the response with vectored writes. `false` if a write fails or makes no progress for
/// `write_timeout`.
async fn written<IO: AsyncWrite + Unpin>(
    io: &mut IO,
    answer: &Answer,
    write_timeout: Duration,
) -> bool {
    let mut parts = answer.parts();
    loop {
        let mut pieces = [IoSlice::new(&[]); PIECES];
        let filled = pieces.iter_mut().zip(&mut parts);
        let count = filled.map(|(piece, part)| *piece = IoSlice::new(part)).count();
        let mut left = &mut pieces[..count];
        if left.is_empty() {
            return true;
        }
        while !left.is_empty() {
            match timeout(write_timeout, io.write_vectored(left)).await {
                Ok(Ok(written)) if written > 0 => IoSlice::advance_slices(&mut left, written),
                _ => return false,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use site_state::pending_changes::PendingChanges;

    fn command(line: &str) -> Command {
        let mut input = BytesMut::from(line);
        match Decoder::new(Limits::default()).next(&mut input) {
            Step::Request(request) => request.command,
            _ => panic!("{line} is a request"),
        }
    }

    #[test]
    fn once_nothing_is_begun_any_more_nothing_is_deleted() {
        let (pending, mut deletions) = (Arc::new(PendingChanges::default()), None);
        let begun = |line, deletions: &mut _| begun(&command(line), deletions, || pending.begin());
        assert!(begun("get k\r\n", &mut deletions) && deletions.is_none());
        assert!(begun("delete k\r\n", &mut deletions) && deletions.is_some());
        assert_eq!(pending.close(), 1, "it is waited for");
        // One registration covers both.
        assert!(begun("delete k noreply\r\n", &mut deletions));
        assert_eq!(pending.count(), 1);
        deletions = None;
        for line in ["delete k\r\n", "delete k noreply\r\n"] {
            assert!(!begun(line, &mut deletions), "{line}");
        }
        // These are not published to other nodes.
        assert!(
            begun("get k\r\n", &mut deletions) && begun("set k 0 0 1\r\nx\r\n", &mut deletions)
        );
        assert_eq!(pending.count(), 0);
    }
}
