//! Content of a response between the origin and its client: what the client has not taken yet, in memory first,
//! then in a file on the disk. So the origin is read at its own speed, and gets its place back when it has said
//! all, whatever the client does (docs/decisions/0078-responses-leave-the-origin-at-its-speed.md).
//!
//! | a piece goes | when |
//! |---|---|
//! | into memory | nothing of the response waits on the disk, and less than [`MEMORY_BYTES`] in memory |
//! | to the disk | otherwise, or where memory for clients is short |
//! | nowhere: the sender waits for the client | the response has as much on the disk as it may, or the disk takes no more |
//!
//! A response that waits for its client keeps its place at the origin only while nobody else needs it
//! (`Places::needed`): then it is broken off. Where all responses together take too much of the disk, the
//! slowest clients are cut off. The order is kept: memory is emptied before the file is read, and
//! takes nothing while the file has something. Each piece can be sent as soon as it has come.
//!
//! One lock for each response, held to put a piece in, take one out, or look.

use crate::body::Piece;
use crate::page::SharedPage;
use crate::refusal::Refusal;
use crate::send_backlog::{self, ClientBacklog};
use crate::site::Site;
use crate::spool::{self, PieceReader, RING_BYTES_MIN, Ring};
use bytes::Bytes;
use http::HeaderMap;
use http_cache::Failure;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use tokio::sync::Notify;

/// The most of one response that waits in memory, in bytes; the rest goes to the disk.
const MEMORY_BYTES: usize = 64 << 10;
/// The same where memory for clients is short.
const SHORT_BYTES: usize = 8 << 10;
/// The longest piece that is handed to the client's side, or written to the disk, in bytes.
const PIECE_BYTES: usize = 16 << 10;

/// The client has gone, or is not waited for any longer.
#[derive(Debug, PartialEq, Eq)]
pub struct ClientGone;

/// How the content of a response ends.
#[derive(Default)]
pub struct ContentEnd {
    /// The last of the content, which is in memory already.
    pub content: Bytes,
    /// The page that this is of, if it is of one.
    pub page: Option<SharedPage>,
    /// Why there is no more, if the content broke off.
    pub failure: Option<Failure>,
    /// Trailers.
    pub trailers: Option<HeaderMap>,
}

/// Where the origin's side puts content. Dropped without an end, it breaks the response off.
pub struct SpoolSender(Arc<Shared>);

/// Where the client's side takes content.
pub struct SpoolReceiver {
    shared: Arc<Shared>,
    reader: PieceReader,
}

struct Shared {
    site: Arc<Site>,
    queue: Mutex<Queue>,
    /// The file, once there is one.
    ring: OnceLock<Ring>,
    /// Notified when the receiver has taken something, or has gone.
    taken: Notify,
}

#[derive(Default)]
struct Queue {
    memory: VecDeque<Vec<u8>>,
    memory_bytes: usize,
    /// How much was written to the file, and read from it, in bytes.
    written: u64,
    read: u64,
    /// The room on the disk that the file takes, in bytes.
    disk_bytes: u64,
    /// Whether a write has failed. One that took too long may still be done later, so nothing is written to
    /// the file any more; what is there can be read.
    has_failed: bool,
    end: Option<ContentEnd>,
    /// The client, once hyper has the response.
    backlog: Option<Arc<ClientBacklog>>,
    waker: Option<Waker>,
    is_gone: bool,
}

/// The two sides of a response of `site`.
pub fn response_spool(site: &Arc<Site>) -> (SpoolSender, SpoolReceiver) {
    let shared = Arc::new(Shared {
        site: site.clone(),
        queue: Mutex::default(),
        ring: OnceLock::new(),
        taken: Notify::new(),
    });
    let reader = PieceReader::default();
    (SpoolSender(shared.clone()), SpoolReceiver { shared, reader })
}

impl SpoolSender {
    /// Puts a piece in, and waits for the client only where there is no room for it.
    ///
    /// # Errors
    /// The client has gone, or its place at the origin is needed.
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

    /// Writes a piece to the disk; `false` where there is no room.
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

    /// Where there is none for all responses together, the slowest clients give some back.
    fn no_room(&self, refusal: Refusal) -> bool {
        if refusal == Refusal::ContentNoRoom {
            send_backlog::relieve_disk(self.0.site.response_files.bytes_max());
        }
        false
    }

    /// Waits until the client's side has little left to send.
    ///
    /// # Errors
    /// The client has gone.
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

    /// Puts a piece in that there is room for: see [`SpoolSender::ready`].
    pub fn send_now(&self, piece: &[u8]) {
        self.0.queue().push(&self.0.site, piece);
    }

    /// Ready when the client has gone.
    pub async fn closed(&self) {
        loop {
            let taken = self.0.taken.notified();
            if self.0.queue().is_gone {
                return;
            }
            taken.await;
        }
    }

    /// There is no more.
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

impl Shared {
    /// Puts a piece into memory, where it may go there.
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

    /// Puts a piece into memory, where nothing waits before it.
    fn put_first(&self, piece: &[u8]) -> Result<bool, ClientGone> {
        let mut queue = self.queue_of_client()?;
        let is_first = queue.written == queue.read && queue.memory.is_empty();
        if is_first {
            queue.push(&self.site, piece);
        }
        Ok(is_first)
    }

    /// A piece is on the disk, for which the file has grown.
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
        match queue.is_gone {
            true => Err(ClientGone),
            false => Ok(queue),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// Small pieces are put together: each has a buffer of its own.
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

/// A step of the client's side through the content.
pub enum SpoolItem {
    /// A piece of content, or that it cannot be had.
    Piece(Piece),
    /// The end, with the last of the content.
    End(ContentEnd),
}

impl SpoolReceiver {
    /// Takes the next piece.
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

    /// Counts what waits for this client from now on.
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
