//! Buffers a response's content between the origin and a slower client: first in memory, then in a
//! file. So the origin is read at its own speed, and its request ends when the response is complete,
//! whatever the client does (docs/decisions/uploads-and-slow-clients.md).
//!
//! | a piece is stored | when |
//! |---|---|
//! | in memory | nothing of the response is on the disk, and less than [`MEMORY_BYTES`] is in memory |
//! | on the disk | otherwise, or if the memory for the send backlog is short |
//! | nowhere: the sender waits for the client | the response uses its maximum disk space, or the disk fails |
//!
//! A response whose sender waits for the client is cut off if another request needs its place at the
//! origin (`Places::needed`). If all responses together use too much disk space, the slowest clients
//! are disconnected. Order is preserved: memory is sent before the file, and gets nothing while the
//! file has unread content. A piece can be sent as soon as it arrives.
//!
//! One lock per response, held to add, remove or examine a piece.

use crate::send_backlog::{self, ClientBacklog};
use crate::site::Site;
use bytes::Bytes;
use http::HeaderMap;
use http_cache::Failure;
use origin::spool::{self, PieceReader, RING_BYTES_MIN, Ring};
use reasons::refusal::Refusal;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use stored_pages::page::SharedPage;
use tokio::sync::Notify;

/// A piece of content, or the reason why the content was cut off.
pub type Piece = Result<Bytes, Failure>;

/// Maximum content of one response in memory, in bytes; the rest goes to the disk.
const MEMORY_BYTES: usize = 64 << 10;
/// The same maximum while the memory for the send backlog is short.
const SHORT_BYTES: usize = 8 << 10;
/// Maximum length of a piece that is sent to the client or written to the disk, in bytes.
const PIECE_BYTES: usize = 16 << 10;

/// Error: the client has disconnected or was given up.
#[derive(Debug, PartialEq, Eq)]
pub struct ClientGone;

/// The end of a response's content.
#[derive(Default)]
pub struct ContentEnd {
    /// The last part of the content, which is already in memory.
    pub content: Bytes,
    /// The cached page that contains `content`, if any.
    pub page: Option<SharedPage>,
    /// The reason, if the content was cut off.
    pub failure: Option<Failure>,
    /// The trailers, if there are any to forward.
    pub trailers: Option<HeaderMap>,
}

/// The origin's side of the buffer. If it is dropped without an end, the response is cut off.
pub struct SpoolSender(Arc<SpoolInner>);

/// The client's side of the buffer.
pub struct SpoolReceiver {
    shared: Arc<SpoolInner>,
    reader: PieceReader,
}

struct SpoolInner {
    site: Arc<Site>,
    queue: Mutex<Queue>,
    /// The file, once it has been created.
    ring: OnceLock<Ring>,
    /// Notified when the receiver has taken a piece or was dropped.
    taken: Notify,
}

#[derive(Default)]
struct Queue {
    memory: VecDeque<Vec<u8>>,
    memory_bytes: usize,
    /// Total bytes written to the file, and read from it.
    written: u64,
    read: u64,
    /// Disk space allocated by the file, in bytes.
    disk_bytes: u64,
    /// Whether a write has failed. A write that timed out may still complete later, so nothing more is
    /// written to the file; its content can be read.
    has_failed: bool,
    end: Option<ContentEnd>,
    /// The client's entry in the send backlog, once hyper has the response.
    backlog: Option<Arc<ClientBacklog>>,
    waker: Option<Waker>,
    is_gone: bool,
}

/// Creates the two sides of the buffer for a response of `site`.
pub fn response_spool(site: &Arc<Site>) -> (SpoolSender, SpoolReceiver) {
    let shared = Arc::new(SpoolInner {
        site: site.clone(),
        queue: Mutex::default(),
        ring: OnceLock::new(),
        taken: Notify::new(),
    });
    let reader = PieceReader::default();
    (SpoolSender(shared.clone()), SpoolReceiver { shared, reader })
}

impl SpoolSender {
    /// Adds a piece. Waits for the client only if there is no room.
    ///
    /// # Errors
    /// The client has disconnected, or another request needs the place at the origin.
    pub async fn send(&self, piece: Bytes) -> Result<(), ClientGone> {
        let mut left = piece;
        while !left.is_empty() {
            let piece = left.split_to(left.len().min(PIECE_BYTES));
            self.send_piece(piece).await?;
        }
        Ok(())
    }

    async fn send_piece(&self, piece: Bytes) -> Result<(), ClientGone> {
        loop {
            let taken = self.0.taken.notified();
            let freed = spool::freed();
            if self.0.put(&piece)? || self.write(&piece).await? || self.0.put_first(&piece)? {
                return Ok(());
            }
            tokio::select! {
                () = taken => {}
                () = freed => {}
                () = self.0.site.origin.places().needed() => return Err(ClientGone),
            }
        }
    }

    /// Writes a piece to the disk; `false` if there is no room.
    async fn write(&self, piece: &Bytes) -> Result<bool, ClientGone> {
        let shared = &self.0;
        let spool = &shared.site.response_files;
        if shared.ring.get().is_none() {
            match spool.ring().await {
                Ok(ring) => {
                    drop(shared.ring.set(ring));
                    shared.wrote(0, RING_BYTES_MIN)?;
                }
                Err(refusal) => return Ok(self.no_room(refusal)),
            }
        }
        let Some(ring) = shared.ring.get() else { return Ok(false) };
        let (written, read, has_failed) = {
            let queue = shared.queue();
            (queue.written, queue.read, queue.has_failed)
        };
        if has_failed || written - read + piece.len() as u64 > ring.capacity() {
            return Ok(false);
        }
        match ring.write(piece.clone(), written).await {
            Ok(grown) => shared.wrote(piece.len() as u64, grown).map(|()| true),
            Err(Refusal::ContentNoRoom) => Ok(self.no_room(Refusal::ContentNoRoom)),
            Err(refusal) => {
                shared.queue().has_failed = true;
                Ok(self.no_room(refusal))
            }
        }
    }

    /// If the disk space of all responses is used up, the slowest clients have to release some.
    fn no_room(&self, refusal: Refusal) -> bool {
        if refusal == Refusal::ContentNoRoom {
            send_backlog::relieve_disk(self.0.site.response_files.bytes_max());
        }
        false
    }

    /// Waits until the buffer has room in memory and the file has no unread content.
    ///
    /// # Errors
    /// The client has disconnected.
    pub async fn ready(&self) -> Result<(), ClientGone> {
        loop {
            let taken = self.0.taken.notified();
            {
                let queue = self.0.queue();
                if queue.is_gone {
                    return Err(ClientGone);
                }
                if queue.memory_bytes < MEMORY_BYTES && queue.written == queue.read {
                    return Ok(());
                }
            }
            taken.await;
        }
    }

    /// Adds a piece without waiting; call [`SpoolSender::ready`] first.
    pub fn send_now(&self, piece: &[u8]) {
        self.0.queue().push(&self.0.site, piece);
    }

    /// Completes when the client has disconnected.
    pub async fn closed(&self) {
        loop {
            let taken = self.0.taken.notified();
            if self.0.queue().is_gone {
                return;
            }
            taken.await;
        }
    }

    /// Ends the content: completely, or with a failure.
    pub fn end(self, end: ContentEnd) {
        self.0.queue().end(end);
    }
}

impl Drop for SpoolSender {
    fn drop(&mut self) {
        let mut queue = self.0.queue();
        if queue.end.is_none() {
            queue.end(ContentEnd { failure: Some(Failure::HungUp), ..ContentEnd::default() });
        }
    }
}

impl SpoolInner {
    /// Adds a piece to memory, if the limits allow it.
    fn put(&self, piece: &[u8]) -> Result<bool, ClientGone> {
        let is_short = send_backlog::is_memory_short(&self.site);
        let most = if is_short { SHORT_BYTES } else { MEMORY_BYTES };
        let mut queue = self.queue_of_client()?;
        let has_room = queue.written == queue.read && queue.memory_bytes + piece.len() <= most;
        if has_room {
            queue.push(&self.site, piece);
        }
        Ok(has_room)
    }

    /// Adds a piece to memory, if the buffer is empty.
    fn put_first(&self, piece: &[u8]) -> Result<bool, ClientGone> {
        let mut queue = self.queue_of_client()?;
        let is_first = queue.written == queue.read && queue.memory.is_empty();
        if is_first {
            queue.push(&self.site, piece);
        }
        Ok(is_first)
    }

    /// Records a piece that was written to the disk, and the growth of the file, both in bytes.
    fn wrote(&self, bytes: u64, grown: u64) -> Result<(), ClientGone> {
        let mut queue = self.queue_of_client()?;
        queue.written += bytes;
        queue.disk_bytes += grown;
        if let Some(backlog) = &queue.backlog {
            backlog.count_disk(grown, 0);
        }
        queue.wake();
        Ok(())
    }

    fn queue_of_client(&self) -> Result<MutexGuard<'_, Queue>, ClientGone> {
        let queue = self.queue();
        if queue.is_gone { Err(ClientGone) } else { Ok(queue) }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// Adds a piece. Small pieces are combined, because each has a buffer of its own.
    fn push(&mut self, site: &Arc<Site>, piece: &[u8]) {
        send_backlog::hold(site, self.backlog.as_deref(), piece.len());
        self.memory_bytes += piece.len();
        match self.memory.back_mut() {
            Some(last) if last.len() + piece.len() <= PIECE_BYTES => last.extend_from_slice(piece),
            _ => self.memory.push_back(piece.to_vec()),
        }
        self.wake();
    }

    fn pop(&mut self) -> Option<Bytes> {
        let piece = self.memory.pop_front()?;
        self.memory_bytes -= piece.len();
        send_backlog::release(self.backlog.as_deref(), piece.len());
        Some(Bytes::from(piece))
    }

    fn end(&mut self, mut end: ContentEnd) {
        if let Some(backlog) = self.backlog.as_ref().filter(|_| !end.content.is_empty()) {
            end.content = backlog.track(end.page.take(), end.content);
        }
        self.end = Some(end);
        self.wake();
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// An item that the client's side receives.
pub enum SpoolItem {
    /// A piece of content, or the failure to read it.
    Piece(Piece),
    /// The end, with the last part of the content.
    End(ContentEnd),
}

impl SpoolReceiver {
    /// Takes the next piece, or the end of the content.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<SpoolItem> {
        let mut queue = self.shared.queue();
        if let Some(piece) = queue.pop() {
            drop(queue);
            self.shared.taken.notify_waiters();
            return Poll::Ready(SpoolItem::Piece(Ok(piece)));
        }
        let (at, left) = (queue.read, queue.written - queue.read);
        if let (Some(ring), true) = (self.shared.ring.get(), left > 0) {
            drop(queue);
            let count = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE_BYTES);
            let piece = ready!(ring.poll_read(&mut self.reader, at, count, cx));
            let Ok(piece) = piece else {
                return Poll::Ready(SpoolItem::Piece(Err(Failure::HungUp)));
            };
            self.shared.queue().read += piece.len() as u64;
            self.shared.taken.notify_waiters();
            return Poll::Ready(SpoolItem::Piece(Ok(piece)));
        }
        match queue.end.take() {
            Some(end) => Poll::Ready(SpoolItem::End(end)),
            None => {
                queue.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Counts the buffered content for this client from now on.
    pub fn is_for(&self, backlog: &Arc<ClientBacklog>) {
        let mut queue = self.shared.queue();
        backlog.adopt(queue.memory_bytes);
        backlog.count_disk(queue.disk_bytes, 0);
        queue.backlog = Some(backlog.clone());
        if let Some(end) = queue.end.take() {
            queue.end(end);
        }
    }
}

impl Drop for SpoolReceiver {
    fn drop(&mut self) {
        let mut queue = self.shared.queue();
        while queue.pop().is_some() {}
        queue.is_gone = true;
        if let Some(backlog) = queue.backlog.take() {
            backlog.count_disk(0, queue.disk_bytes);
        }
        let end = queue.end.take();
        drop(queue);
        drop(end);
        self.shared.taken.notify_waiters();
    }
}
