//! The content of a response on its way to the client: nothing, one piece that is in memory,
//! several such pieces, or pieces that arrive through a bounded channel, trailers behind them or not;
//! compressed on the way or not.
//!
//! The enum is hyper's body type: no boxing on a hit. It carries the guard that counts the request
//! as being in hyper's hands; hyper drops it when the content has been taken.

use crate::codings::OnTheWay;
use crate::in_flight::InFlightGuard;
use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use http_cache::Failure;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
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
    /// What arrives, until the channel is closed.
    Channel {
        /// Where it arrives.
        pieces: mpsc::Receiver<Piece>,
        /// How many bytes there will be, if that is known.
        length: Option<u64>,
    },
    /// What arrives, and trailers at its end.
    Trailed(Box<Trailed>),
    /// Other content, compressed while it is sent.
    OnTheWay(Box<OnTheWay>),
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
            Content::Pieces(pieces) => pieces.pop_front().map(Ok),
            Content::Channel { pieces, length } => {
                let piece = ready!(pieces.poll_recv(cx));
                if let (Some(Ok(bytes)), Some(length)) = (&piece, length) {
                    *length = length.saturating_sub(bytes.len() as u64);
                }
                piece
            }
            Content::Trailed(trailed) => ready!(trailed.pieces.poll_recv(cx)),
            Content::OnTheWay(coded) => ready!(poll_coded(coded, cx)),
        })
    }

    /// Once, after the last piece.
    fn poll_trailers(&mut self, cx: &mut Context<'_>) -> Poll<Option<HeaderMap>> {
        let Content::Trailed(trailed) = self else { return Poll::Ready(None) };
        let trailers = ready!(Pin::new(&mut trailed.trailers).poll(cx)).ok();
        *self = Content::Empty;
        Poll::Ready(trailers)
    }

    fn is_at_end(&self) -> bool {
        match self {
            Content::Empty => true,
            Content::Whole(bytes) => bytes.is_empty(),
            Content::Pieces(pieces) => pieces.is_empty(),
            Content::Channel { .. } | Content::Trailed(_) | Content::OnTheWay(_) => false,
        }
    }

    /// Whether all of it has been taken, as far as its length tells.
    fn is_taken(&self) -> bool {
        self.is_at_end() || matches!(self, Content::Channel { length: Some(0), .. })
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Content::Empty => SizeHint::with_exact(0),
            Content::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Pieces(pieces) => {
                SizeHint::with_exact(pieces.iter().map(|piece| piece.len() as u64).sum())
            }
            Content::Channel { length, .. } => {
                length.map_or_else(SizeHint::default, SizeHint::with_exact)
            }
            Content::Trailed(_) | Content::OnTheWay(_) => SizeHint::default(),
        }
    }
}

fn poll_coded(coded: &mut OnTheWay, cx: &mut Context<'_>) -> Poll<Option<Piece>> {
    loop {
        let piece = match &mut coded.source {
            Content::Whole(bytes) if bytes.len() > PIECE_BYTES => {
                Some(Ok(bytes.split_to(PIECE_BYTES)))
            }
            source => ready!(source.poll_piece(cx)),
        };
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
    guard: Option<InFlightGuard>,
}

impl From<Content> for ResponseBody {
    fn from(content: Content) -> ResponseBody {
        ResponseBody { content, guard: None }
    }
}

impl ResponseBody {
    /// The same with other content.
    pub fn map(self, change: impl FnOnce(Content) -> Content) -> ResponseBody {
        ResponseBody { content: change(self.content), guard: self.guard }
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

/// The content broke off: hyper cuts the connection, so that the client notices.
#[derive(Debug)]
pub struct Failed(pub Failure);

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the response broke off: {:?}", self.0)
    }
}

impl std::error::Error for Failed {}
