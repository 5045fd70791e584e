//! The memcached port: connections that speak memcached's protocols, and what they store.
//!
//! What is stored lives in the page store of the site, under keys that no HTTP request has, and is dropped
//! by changes like any page (`keeper.rs`). Of a page stored here it is not known when its render began,
//! unless its client has said so by a lease: `memcached_leases.rs` has both cases. [0030] has the reasons.
//!
//! A connection reads only when everything it has said is answered and sent, so it holds at most one line or
//! value, and one answer. A connection whose first line is no command is closed: it speaks TLS or another
//! protocol, and a later line that looks like a command may have been placed there by a stranger.
//! Nothing here asks who the client is: the addresses are this machine's own.
//!
//! [0030]: ../../../docs/decisions/0030-memcached-port.md

mod keeper;
mod page_line;

pub use crate::memcached_keys::{NAMESPACE, is_of_client};
pub use crate::memcached_leases::Leases;
pub use keeper::Keeper;

use crate::in_hand::{Hand, begin_at_once, heard};
use crate::listen::{Accepted, Listener, accept_each};
use crate::phase::{Phase, Told, is_told};
use crate::site::Site;
use bytes::BytesMut;
use memcache::{Answer, Command, Decoder, Limits, Moment, Next, Refusal, Step, execute};
use std::io::IoSlice;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Connections at once: memcached's own bound.
const CONNECTIONS: usize = 1_024;
/// What is read at once, whatever a client says that it will send.
const READ_BYTES: usize = 64 << 10;
/// An answer that is longer is sent before more is understood.
const ANSWER_BYTES: usize = 64 << 10;
/// How long a client that has begun a request may be silent.
const SILENT: Duration = Duration::from_secs(30);
/// Requests that are not whole yet may take one part in so many of the page budget, all together.
const SHARE: usize = 4;
/// So many pieces of an answer are handed to the kernel at once: a page is three.
const PIECES: usize = 16;

/// Serves one address until told to stop.
pub async fn serve(
    listener: Listener,
    limits: Limits,
    keeper: Arc<Keeper>,
    begun: Arc<Begun>,
    stop: Told,
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
                let own = Own { begun, bytes: 0 };
                match accepted {
                    Accepted::Tcp(stream, _) => {
                        connection(stream, limits, &keeper, own, stop).await
                    }
                    Accepted::Unix(stream) => connection(stream, limits, &keeper, own, stop).await,
                }
                drop(place);
            }
        },
    )
    .await;
    listener.close(ended);
}

/// Serves one connection, until either side has enough.
async fn connection<IO: AsyncRead + AsyncWrite + Unpin>(
    mut io: IO,
    limits: Limits,
    keeper: &Keeper,
    mut own: Own,
    mut stop: Told,
) {
    let (mut decoder, mut input) = (Opening::new(limits), BytesMut::new());
    let (mut answer, mut hand) = (Answer::default(), None);
    let seen = stop.clone();
    let mut leaving = pin!(stop.wait_for(Phase::is_leaving));
    loop {
        let next = step(&mut decoder, &mut input, limits, keeper, (&mut answer, &mut hand));
        let is_due = next != After::Go || answer.len() >= ANSWER_BYTES;
        if is_due && !sent(&mut io, &mut answer, keeper.site(), hand.take()).await {
            return;
        }
        match next {
            After::Go => {}
            After::Close => return,
            After::Read(_) if is_told(&seen, Phase::is_leaving) => return,
            After::Read(more) => {
                if !own.holds(input.len()) {
                    keeper.site().counters.memcached_refused.add();
                    tracing::warn!(event = "memcached-closed", reason = "no-room");
                    return;
                }
                input.reserve(more.clamp(4_096, READ_BYTES));
                // Who is in the middle of something goes on with it; who is not may rest.
                let may_rest = input.is_empty() && more == 1;
                let reading = io.read_buf(&mut input);
                let read = async {
                    match may_rest {
                        true => reading.await.ok(),
                        false => timeout(SILENT, reading).await.ok().and_then(Result::ok),
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

/// How much has come of requests that are not whole yet, over all connections.
pub struct Begun {
    bytes: AtomicUsize,
    bytes_max: usize,
}

impl Begun {
    /// As much of it as this page budget allows, in bytes.
    pub fn new(memory_bytes: usize) -> Begun {
        Begun { bytes: AtomicUsize::new(0), bytes_max: memory_bytes / SHARE }
    }
}

/// One connection's part of it.
struct Own {
    begun: Arc<Begun>,
    bytes: usize,
}

impl Own {
    /// So much is held now; whether there is room for it.
    fn holds(&mut self, bytes: usize) -> bool {
        let all = &self.begun.bytes;
        all.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = bytes;
        all.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.begun.bytes_max.max(READ_BYTES)
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.holds(0);
    }
}

/// What is to be done next.
#[derive(PartialEq)]
enum After {
    Go,
    Read(usize),
    Close,
}

/// Carries out the next request, if there is one.
fn step(
    decoder: &mut Opening,
    input: &mut BytesMut,
    limits: Limits,
    keeper: &Keeper,
    (answer, hand): (&mut Answer, &mut Option<Hand>),
) -> After {
    match decoder.next(input) {
        Step::More(more) => After::Read(more),
        Step::Close(why) => closed(why.as_str()),
        Step::Request(request) if decoder.is_foreign(&request.command) => closed("no-command"),
        // Another process has the items now.
        Step::Request(_) if keeper.site().is_leaving() => After::Close,
        Step::Request(request)
            if !begun(&request.command, hand, || begin_at_once(keeper.site())) =>
        {
            After::Close
        }
        Step::Request(request) => {
            let now = Moment(keeper.site().clock.now().0);
            let next = execute(&request, keeper, limits, now, answer);
            if keeper.site().is_unheard() {
                // Nothing is acknowledged that the process with the pages was not told.
                answer.clear();
                return After::Close;
            }
            match next {
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

/// A connection's decoder, which knows whether the connection has sent a command yet.
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

    /// Whether this request is the first of its connection and no command of memcached's.
    fn is_foreign(&mut self, command: &Command) -> bool {
        let is_command = !matches!(command, Command::Refused(Refusal::Unknown));
        let had_command = std::mem::replace(&mut self.had_command, true);
        !had_command && !is_command
    }
}

/// Takes in hand what others are told; `false` where nothing is begun any more. One hand is for all that is answered
/// at once, also for what is quiet.
fn begun(command: &Command, hand: &mut Option<Hand>, begin: impl FnOnce() -> Option<Hand>) -> bool {
    if command.is_delete() && hand.is_none() {
        *hand = begin();
        return hand.is_some();
    }
    true
}

/// Sends an answer and forgets it; `false` where nobody takes it. `hand`: what it answers has deleted something.
async fn sent<IO: AsyncWrite + Unpin>(
    io: &mut IO,
    answer: &mut Answer,
    site: &Site,
    hand: Option<Hand>,
) -> bool {
    // What is deleted here may be in the memory of other machines. The protocol has no word for late.
    if let Some(hand) = hand {
        heard(site, &hand).await;
    }
    let is_sent = written(io, answer, site.limits.write_timeout).await;
    answer.clear();
    is_sent
}

/// Sends an answer, as much of it at once as is taken; `false` where nothing is for so long.
async fn written<IO: AsyncWrite + Unpin>(io: &mut IO, answer: &Answer, patience: Duration) -> bool {
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
            match timeout(patience, io.write_vectored(left)).await {
                Ok(Ok(written)) if written > 0 => IoSlice::advance_slices(&mut left, written),
                _ => return false,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::in_hand::InHand;

    fn command(line: &str) -> Command {
        let mut input = BytesMut::from(line);
        match Decoder::new(Limits::default()).next(&mut input) {
            Step::Request(request) => request.command,
            _ => panic!("{line} is a request"),
        }
    }

    #[test]
    fn once_nothing_is_begun_any_more_nothing_is_deleted() {
        let (in_hand, mut hand) = (Arc::new(InHand::default()), None);
        let begun = |line, hand: &mut _| begun(&command(line), hand, || in_hand.begin(None, 0));
        assert!(begun("get k\r\n", &mut hand) && hand.is_none());
        assert!(begun("delete k\r\n", &mut hand) && hand.is_some());
        assert_eq!(in_hand.close(), 1, "it is waited for");
        // One answer is for both.
        assert!(begun("md k q\r\n", &mut hand));
        assert_eq!(in_hand.count(), 1);
        hand = None;
        for line in ["delete k\r\n", "delete k noreply\r\n", "md k\r\n"] {
            assert!(!begun(line, &mut hand), "{line}");
        }
        // Nobody else is told of these.
        assert!(begun("mg k v\r\n", &mut hand) && begun("set k 0 0 1\r\nx\r\n", &mut hand));
        assert_eq!(in_hand.count(), 0);
    }
}
