//! The content of a response to a client: empty, pieces in memory, content from the origin
//! (`response_spool`), or a file. It may be compressed while it is sent, and may have trailers.
//!
//! The enum is hyper's body type, so a cache hit needs no boxing. The body carries the guard that
//! counts the request as in flight; hyper drops it when the content has been taken. Content of a long
//! page, and content in memory for this client alone, counts in the send backlog (`send_backlog`) until
//! hyper has released it.

mod streaming_encoder;

pub use streaming_encoder::StreamingEncoder;

use crate::in_flight::InFlightGuard;
use crate::response_spool::{ContentEnd, Piece, SpoolItem, SpoolReceiver};
use crate::send_backlog::{self, ClientBacklog, Recipient};
use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use http_cache::Failure;
use origin::spool::PieceReader;
use std::collections::VecDeque;
use std::fs::File;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use stored_pages::page::{ReadPage, SharedPage};
use tokio::sync::mpsc;

/// The content of a response, as hyper takes it.
pub enum Content {
    /// There is no content.
    Empty,
    /// All content in one piece.
    Whole(Bytes),
    /// All content in several pieces.
    Pieces(VecDeque<Bytes>),
    /// All content in pieces of several pages, assembled for this client.
    Assembled(VecDeque<Bytes>),
    /// The pieces that arrive until the channel is closed.
    Channel(mpsc::Receiver<Piece>),
    /// Content that arrives from the origin.
    Spool(Box<SpoolContent>),
    /// The end of content from the origin.
    Ended(Box<ContentEnd>),
    /// A part of a file.
    File(Box<FileContent>),
    /// Other content, compressed while it is sent.
    OnTheWay(Box<StreamingEncoder>),
    /// Content that was cut off, with the reason.
    Broken(Failure),
}

/// Content from the origin.
pub struct SpoolContent {
    /// The receiver of the content.
    pub receiver: SpoolReceiver,
    /// The number of remaining bytes, if known.
    pub length: Option<u64>,
}

/// A part of a file, read as the client takes it.
pub struct FileContent {
    file: Arc<File>,
    at: u64,
    left: u64,
    reader: PieceReader,
}

impl FileContent {
    /// `length` bytes of the file from the offset `at` on.
    pub fn new(file: Arc<File>, at: u64, length: u64) -> FileContent {
        FileContent { file, at, left: length, reader: PieceReader::default() }
    }

    /// The next piece. If the file has become shorter, the response is cut off.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Piece>> {
        let count = usize::try_from(self.left).unwrap_or(usize::MAX).min(PIECE_BYTES);
        if count == 0 {
            return Poll::Ready(None);
        }
        let read = ready!(self.reader.poll(&self.file, self.at, count, cx));
        self.at += count as u64;
        self.left -= count as u64;
        Poll::Ready(Some(read.map_err(|_| Failure::HungUp)))
    }
}

/// Maximum number of bytes that are compressed, or read from a file, at a time.
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
            Content::Channel(pieces) => ready!(pieces.poll_recv(cx)),
            Content::Spool(spool) => match ready!(spool.receiver.poll_next(cx)) {
                SpoolItem::Piece(piece) => {
                    if let (Ok(bytes), Some(length)) = (&piece, &mut spool.length) {
                        *length = length.saturating_sub(bytes.len() as u64);
                    }
                    Some(piece)
                }
                SpoolItem::End(end) => {
                    *self = Content::Ended(Box::new(end));
                    ready!(self.poll_piece(cx))
                }
            },
            Content::Ended(end) => match std::mem::take(&mut end.content) {
                rest if rest.is_empty() => end.failure.map(Err),
                rest => Some(Ok(rest)),
            },
            Content::File(file) => ready!(file.poll_next(cx)),
            Content::OnTheWay(coded) => ready!(poll_coded(coded, cx)),
            Content::Broken(failure) => Some(Err(*failure)),
        })
    }

    /// Takes the trailers, which follow the last piece.
    fn take_trailers(&mut self) -> Option<HeaderMap> {
        let Content::Ended(end) = self else { return None };
        let trailers = end.trailers.take();
        *self = Content::Empty;
        trailers
    }

    /// Counts content in memory in the send backlog of `client`. `page` is the page that it belongs to.
    fn track(&mut self, page: Option<SharedPage>, client: &Arc<Recipient>) {
        let track = |bytes: &mut Bytes| {
            *bytes = send_backlog::track(client, page.clone(), std::mem::take(bytes));
        };
        match self {
            Content::Whole(bytes) if page.is_some() => track(bytes),
            Content::Pieces(pieces) if page.is_some() => pieces.iter_mut().for_each(track),
            Content::Assembled(pieces) => pieces.iter_mut().for_each(|bytes| {
                *bytes = send_backlog::track(client, None, std::mem::take(bytes));
            }),
            Content::OnTheWay(coded) => coded.source.track(page, client),
            _ => {}
        }
    }

    /// Counts content in `response_spool` for this client.
    fn is_for(&self, backlog: &Arc<ClientBacklog>) {
        match self {
            Content::Spool(spool) => spool.receiver.is_for(backlog),
            Content::OnTheWay(coded) => coded.source.is_for(backlog),
            _ => {}
        }
    }

    /// Whether its pieces are produced one by one, for this client alone.
    fn is_made_on_the_way(&self) -> bool {
        matches!(
            self,
            Content::Channel(_) | Content::Spool(_) | Content::File(_) | Content::OnTheWay(_)
        )
    }

    /// Puts back the rest of the piece that was just taken.
    fn put_back(&mut self, rest: Bytes) {
        match self {
            Content::Ended(end) => end.content = rest,
            Content::Pieces(pieces) | Content::Assembled(pieces) => pieces.push_front(rest),
            content => *content = Content::Whole(rest),
        }
    }

    fn is_at_end(&self) -> bool {
        match self {
            Content::Empty => true,
            Content::Whole(bytes) => bytes.is_empty(),
            Content::Pieces(pieces) | Content::Assembled(pieces) => pieces.is_empty(),
            Content::Ended(end) => {
                end.content.is_empty() && end.failure.is_none() && end.trailers.is_none()
            }
            Content::File(file) => file.left == 0,
            Content::Channel(_) | Content::Spool(_) | Content::Broken(_) => false,
            Content::OnTheWay(_) => false,
        }
    }

    /// Whether all of it has been taken, judging by its length.
    fn is_taken(&self) -> bool {
        match self {
            Content::Spool(spool) => spool.length == Some(0),
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
            Content::Spool(spool) => {
                spool.length.map_or_else(SizeHint::default, SizeHint::with_exact)
            }
            Content::File(file) => SizeHint::with_exact(file.left),
            _ => SizeHint::default(),
        }
    }
}

fn poll_coded(coded: &mut StreamingEncoder, cx: &mut Context<'_>) -> Poll<Option<Piece>> {
    loop {
        let mut piece = ready!(coded.source.poll_piece(cx));
        // A long piece is in memory already, so it is compressed in several steps.
        if let Some(Ok(bytes)) = &mut piece
            && bytes.len() > PIECE_BYTES
        {
            coded.source.put_back(bytes.split_off(PIECE_BYTES));
        }
        let sent = match piece {
            Some(Ok(bytes)) => match coded.feed(&bytes) {
                None => continue,
                sent => sent,
            },
            // The compressed stream is left incomplete, so that the client detects the missing content.
            Some(Err(failure)) => Some(Err(failure)),
            None => coded.end(),
        };
        return Poll::Ready(sent);
    }
}

/// The body of one response, as hyper takes it.
pub struct ResponseBody {
    content: Content,
    /// The page that the content belongs to, if it is long, until the content is tracked.
    page: Option<SharedPage>,
    /// The client's entry in the send backlog, if pieces are counted one by one.
    backlog: Option<Arc<ClientBacklog>>,
    guard: Option<InFlightGuard>,
}

impl From<Content> for ResponseBody {
    fn from(content: Content) -> ResponseBody {
        ResponseBody { content, page: None, backlog: None, guard: None }
    }
}

impl ResponseBody {
    /// Replaces the content by the result of `change`.
    pub fn map(self, change: impl FnOnce(Content) -> Content) -> ResponseBody {
        ResponseBody { content: change(self.content), ..self }
    }

    /// The content, if it is in memory as a whole.
    pub fn whole(self) -> Option<Bytes> {
        match self.content {
            Content::Whole(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Records that the content belongs to this page.
    pub fn is_of(&mut self, page: &SharedPage) {
        if page.length() >= send_backlog::LONG_BYTES && !self.content.is_at_end() {
            self.page = Some(page.clone());
        }
    }

    /// Counts the content in memory in the send backlog from now on. Call it before hyper gets the
    /// body.
    pub fn tracked(mut self, client: impl FnOnce() -> Arc<Recipient>) -> ResponseBody {
        let page = self.page.take();
        let is_made = self.content.is_made_on_the_way();
        if page.is_some() || is_made || matches!(self.content, Content::Assembled(_)) {
            let client = client();
            self.content.track(page, &client);
            self.backlog = is_made.then(|| ClientBacklog::begin(&client));
        }
        if let Some(backlog) = &self.backlog {
            self.content.is_for(backlog);
        }
        self
    }

    /// Attaches the guard, which counts the request as in flight until the content has been taken.
    pub fn guarded(mut self, mut guard: InFlightGuard) -> ResponseBody {
        // Without content the body is never polled.
        if let Some(entry) = guard.entry.as_mut().filter(|_| self.content.is_at_end()) {
            entry.is_whole();
        }
        self.guard = Some(guard);
        self
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let body = self.get_mut();
        let content = &mut body.content;
        let entry = body.guard.as_mut().and_then(|guard| guard.entry.as_deref_mut());
        let piece = match ready!(content.poll_piece(cx)) {
            Some(mut piece) => {
                if let (Some(backlog), Ok(bytes)) = (&body.backlog, &mut piece)
                    && content.is_made_on_the_way()
                {
                    *bytes = backlog.tracked(std::mem::take(bytes));
                }
                if let (Some(entry), Ok(bytes)) = (entry, &piece) {
                    entry.sent(bytes.len());
                    if content.is_taken() {
                        entry.is_whole();
                    }
                }
                piece.map(Frame::data).map_err(BodyError)
            }
            None => {
                if let Some(entry) = entry {
                    entry.is_whole();
                }
                match content.take_trailers() {
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

/// Collects content. A single piece is kept as received, without a copy; most pages are one piece, and
/// are copied only once, into the store.
#[derive(Default)]
pub struct ContentBuffer {
    first: Bytes,
    /// All of it, if it has more than one piece.
    all: Vec<u8>,
}

impl ContentBuffer {
    /// Adds a piece of content.
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

    /// The number of bytes collected.
    pub fn len(&self) -> usize {
        self.first.len().max(self.all.len())
    }

    /// Whether nothing has been collected.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the collected content.
    pub fn into_bytes(self) -> Bytes {
        if self.all.is_empty() { self.first } else { Bytes::from(self.all) }
    }

    /// The collected content as a `Vec`, to be extended.
    pub fn into_vec(self) -> Vec<u8> {
        if self.all.is_empty() { self.first.to_vec() } else { self.all }
    }
}

/// The content was cut off. hyper then closes the connection, so that the client detects it.
#[derive(Debug)]
pub struct BodyError(pub Failure);

impl std::fmt::Display for BodyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the response broke off: {:?}", self.0)
    }
}

impl std::error::Error for BodyError {}
