//! The content of a response on its way to the client: nothing, one piece that is in memory,
//! several such pieces, or pieces that arrive through a bounded channel, trailers behind them or not;
//! compressed on the way or not.
//!
//! The enum is hyper's body type: no boxing on a hit. It carries the guard that counts the request
//! as being in hyper's hands; hyper drops it when the content has been taken. What is long and of a page is
//! lent to the client (`owed`) for as long as hyper has any of it.

use crate::codings::OnTheWay;
use crate::in_flight::InFlightGuard;
use crate::owed::{self, Client};
use crate::page::{ReadPage, SharedPage};
use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use http_cache::Failure;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::sync::{mpsc, oneshot};

/// A piece of content, or why there will be no more.
pub type Piece = Result<Bytes, Failure>;

/// Pieces that wait in a channel between an origin and a client.
pub const CHANNEL_PIECES: usize = 8;

/// Content as it is handed to hyper.
pub enum Content {
    /// Nothing.
    Empty,
    /// All of it.
    Whole(Bytes),
    /// All of it, in pieces.
    Pieces(VecDeque<Bytes>),
    /// All of it, in pieces of several pages that were put together for this client.
    Assembled(VecDeque<Bytes>),
    /// What arrives, until the channel is closed.
    Channel {
        /// Where it arrives.
        pieces: mpsc::Receiver<Piece>,
        /// How many bytes there will be, if that is known.
        length: Option<u64>,
    },
    /// What arrives of a page that is being collected, and then the rest of it from the page itself.
    Collected(Box<Collected>),
    /// What arrives, and trailers at its end.
    Trailed(Box<Trailed>),
    /// Other content, compressed while it is sent.
    OnTheWay(Box<OnTheWay>),
    /// There will be no more, and why.
    Broken(Failure),
}

/// Content that is sent while it is collected.
pub struct Collected {
    /// Where it arrives.
    pub pieces: mpsc::Receiver<Piece>,
    /// Where the rest is when they end.
    pub rest: Resting,
    /// How many bytes there will be, if that is known.
    pub length: Option<u64>,
}

/// Where that is left which a client had not been sent of content when that was complete. Nobody waits here:
/// it is left before the pieces end, and taken after their end.
#[derive(Clone, Default)]
pub struct Resting(Arc<Mutex<Rests>>);

#[derive(Default)]
struct Rests {
    /// To whom it is owed, once hyper has the response.
    client: Option<Arc<Client>>,
    rest: Rest,
}

/// What is left of content.
#[derive(Default)]
pub struct Rest {
    /// The bytes.
    pub content: Bytes,
    /// The page that they are of, if they are of one.
    pub page: Option<SharedPage>,
    /// Why there is no more, if the content broke off.
    pub failure: Option<Failure>,
}

/// Content that may end with trailers.
pub struct Trailed {
    /// Where it arrives.
    pub pieces: mpsc::Receiver<Piece>,
    /// Where the trailers come, if there are any; closed when not.
    pub trailers: oneshot::Receiver<HeaderMap>,
}

/// What is compressed at a time of content that is all there.
const PIECE_BYTES: usize = 64 << 10;

impl Content {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Piece>> {
        Poll::Ready(match self {
            Content::Empty => None,
            Content::Whole(bytes) => {
                let bytes = std::mem::take(bytes);
                *self = Content::Empty;
                (!bytes.is_empty()).then_some(Ok(bytes))
            }
            Content::Pieces(pieces) | Content::Assembled(pieces) => pieces.pop_front().map(Ok),
            Content::Channel { pieces, length } => {
                let piece = ready!(pieces.poll_recv(cx));
                if let (Some(Ok(bytes)), Some(length)) = (&piece, length) {
                    *length = length.saturating_sub(bytes.len() as u64);
                }
                piece
            }
            Content::Collected(collected) => match ready!(collected.poll(cx)) {
                Ok(piece) => Some(piece),
                Err(rest) => {
                    *self = rest.failure.map_or(Content::Empty, Content::Broken);
                    match rest.content.is_empty() {
                        false => Some(Ok(rest.content)),
                        true => rest.failure.map(Err),
                    }
                }
            },
            Content::Trailed(trailed) => ready!(trailed.pieces.poll_recv(cx)),
            Content::OnTheWay(coded) => ready!(poll_coded(coded, cx)),
            Content::Broken(failure) => Some(Err(*failure)),
        })
    }

    /// Once, after the last piece.
    fn poll_trailers(&mut self, cx: &mut Context<'_>) -> Poll<Option<HeaderMap>> {
        let Content::Trailed(trailed) = self else { return Poll::Ready(None) };
        let trailers = ready!(Pin::new(&mut trailed.trailers).poll(cx)).ok();
        *self = Content::Empty;
        Poll::Ready(trailers)
    }

    /// What of it is of `page`, or will be of one, is owed to `client`.
    fn lend(&mut self, page: Option<SharedPage>, client: &Arc<Client>) {
        let lend = |bytes: &mut Bytes| {
            *bytes = owed::lend(client, page.clone(), std::mem::take(bytes));
        };
        match self {
            Content::Whole(bytes) if page.is_some() => lend(bytes),
            Content::Pieces(pieces) if page.is_some() => pieces.iter_mut().for_each(lend),
            Content::Assembled(pieces) => pieces.iter_mut().for_each(|bytes| {
                *bytes = owed::lend(client, None, std::mem::take(bytes));
            }),
            Content::Collected(collected) => collected.rest.is_for(client),
            Content::OnTheWay(coded) => coded.source.lend(page, client),
            _ => {}
        }
    }

    fn is_at_end(&self) -> bool {
        match self {
            Content::Empty => true,
            Content::Whole(bytes) => bytes.is_empty(),
            Content::Pieces(pieces) | Content::Assembled(pieces) => pieces.is_empty(),
            Content::Channel { .. } | Content::Collected(_) | Content::Broken(_) => false,
            Content::Trailed(_) | Content::OnTheWay(_) => false,
        }
    }

    /// Whether all of it has been taken, as far as its length tells.
    fn is_taken(&self) -> bool {
        match self {
            Content::Channel { length, .. } => *length == Some(0),
            Content::Collected(collected) => collected.length == Some(0),
            content => content.is_at_end(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Content::Empty => SizeHint::with_exact(0),
            Content::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Pieces(pieces) | Content::Assembled(pieces) => {
                SizeHint::with_exact(pieces.iter().map(|piece| piece.len() as u64).sum())
            }
            Content::Channel { length, .. } => {
                length.map_or_else(SizeHint::default, SizeHint::with_exact)
            }
            Content::Collected(collected) => {
                collected.length.map_or_else(SizeHint::default, SizeHint::with_exact)
            }
            Content::Trailed(_) | Content::OnTheWay(_) | Content::Broken(_) => SizeHint::default(),
        }
    }
}

impl Collected {
    /// The next piece, or, behind the last of them, the rest.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Piece, Rest>> {
        let Some(piece) = ready!(self.pieces.poll_recv(cx)) else {
            return Poll::Ready(Err(std::mem::take(&mut self.rest.rests().rest)));
        };
        if let (Ok(bytes), Some(length)) = (&piece, &mut self.length) {
            *length = length.saturating_sub(bytes.len() as u64);
        }
        Poll::Ready(Ok(piece))
    }
}

impl Resting {
    /// Leaves it.
    pub fn leave(&self, rest: Rest) {
        let mut rests = self.rests();
        rests.rest = rest;
        rests.lend();
    }

    /// To whom it is owed.
    fn is_for(&self, client: &Arc<Client>) {
        let mut rests = self.rests();
        rests.client = Some(client.clone());
        rests.lend();
    }

    fn rests(&self) -> MutexGuard<'_, Rests> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rests {
    /// Once it is known what it is, and for whom.
    fn lend(&mut self) {
        if let (Some(client), false) = (&self.client, self.rest.content.is_empty()) {
            let Rest { content, page, .. } = &mut self.rest;
            *content = owed::lend(client, page.take(), std::mem::take(content));
        }
    }
}

fn poll_coded(coded: &mut OnTheWay, cx: &mut Context<'_>) -> Poll<Option<Piece>> {
    loop {
        let mut piece = ready!(coded.source.poll_piece(cx));
        // The last of it, and long: not in one go.
        if let (Some(Ok(bytes)), Content::Empty) = (&mut piece, &coded.source)
            && bytes.len() > PIECE_BYTES
        {
            coded.source = Content::Whole(bytes.split_off(PIECE_BYTES));
        }
        let sent = match piece {
            Some(Ok(bytes)) => match coded.feed(&bytes) {
                None => continue,
                sent => sent,
            },
            // The end of the coding is not sent: the client notices that content is missing.
            Some(Err(failure)) => Some(Err(failure)),
            None => coded.end(),
        };
        return Poll::Ready(sent);
    }
}

/// The content of one response.
pub struct ResponseBody {
    content: Content,
    /// The page that the content is of, where that is long, until the content is lent.
    page: Option<SharedPage>,
    guard: Option<InFlightGuard>,
}

impl From<Content> for ResponseBody {
    fn from(content: Content) -> ResponseBody {
        ResponseBody { content, page: None, guard: None }
    }
}

impl ResponseBody {
    /// The same with other content.
    pub fn map(self, change: impl FnOnce(Content) -> Content) -> ResponseBody {
        ResponseBody { content: change(self.content), page: self.page, guard: self.guard }
    }

    /// Its content is of this page.
    pub fn is_of(&mut self, page: &SharedPage) {
        if page.length() >= owed::LONG_BYTES && !self.content.is_at_end() {
            self.page = Some(page.clone());
        }
    }

    /// For hyper to have: what of it is in memory for the client alone is owed to it.
    pub fn lent(mut self, client: impl FnOnce() -> Arc<Client>) -> ResponseBody {
        let may_follow = matches!(
            self.content,
            Content::Collected(_) | Content::OnTheWay(_) | Content::Assembled(_)
        );
        let page = self.page.take();
        if page.is_some() || may_follow {
            self.content.lend(page, &client());
        }
        self
    }

    /// Keeps the request counted until the content has been taken.
    pub fn guarded(mut self, mut guard: InFlightGuard) -> ResponseBody {
        // There may be nothing to be asked for.
        if let Some(entry) = guard.entry.as_mut().filter(|_| self.content.is_at_end()) {
            entry.is_whole();
        }
        self.guard = Some(guard);
        self
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Failed;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failed>>> {
        let body = self.get_mut();
        let content = &mut body.content;
        let entry = body.guard.as_mut().and_then(|guard| guard.entry.as_deref_mut());
        let piece = match ready!(content.poll_piece(cx)) {
            Some(piece) => {
                if let (Some(entry), Ok(bytes)) = (entry, &piece) {
                    entry.sent(bytes.len());
                    if content.is_taken() {
                        entry.is_whole();
                    }
                }
                piece.map(Frame::data).map_err(Failed)
            }
            None => {
                if let Some(entry) = entry {
                    entry.is_whole();
                }
                match ready!(content.poll_trailers(cx)) {
                    Some(trailers) => Ok(Frame::trailers(trailers)),
                    None => return Poll::Ready(None),
                }
            }
        };
        Poll::Ready(Some(piece))
    }

    fn is_end_stream(&self) -> bool {
        self.content.is_at_end()
    }

    fn size_hint(&self) -> SizeHint {
        self.content.size_hint()
    }
}

/// Content that has come: as it was read, until there is a second piece of it. Most pages are one, and are
/// copied once, to where they are kept.
#[derive(Default)]
pub struct Gathered {
    first: Bytes,
    /// All of it, where it is more than the first piece.
    all: Vec<u8>,
}

impl Gathered {
    /// The next piece.
    pub fn push(&mut self, piece: Bytes) {
        if self.is_empty() {
            self.first = piece;
            return;
        }
        if self.all.is_empty() {
            self.all.extend_from_slice(&std::mem::take(&mut self.first));
        }
        self.all.extend_from_slice(&piece);
    }

    /// How many bytes have come.
    pub fn len(&self) -> usize {
        self.first.len().max(self.all.len())
    }

    /// Whether nothing has.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of it.
    pub fn into_bytes(self) -> Bytes {
        match self.all.is_empty() {
            true => self.first,
            false => Bytes::from(self.all),
        }
    }

    /// All of it, to be added to.
    pub fn into_vec(self) -> Vec<u8> {
        match self.all.is_empty() {
            true => self.first.to_vec(),
            false => self.all,
        }
    }
}

/// The content broke off: hyper cuts the connection, so that the client notices.
#[derive(Debug)]
pub struct Failed(pub Failure);

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the response broke off: {:?}", self.0)
    }
}

impl std::error::Error for Failed {}
