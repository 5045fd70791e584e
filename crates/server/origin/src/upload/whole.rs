//! Collects a request's content: in memory if there is room, which is counted over all requests, and
//! else on the disk ([`crate::spool`]).
//!
//! Memory is released as soon as its content is on the disk, so many slow uploads leave room for short
//! forms.

use crate::spool::{PIECE_BYTES, Spool, SpoolFile};
use bytes::Bytes;
use reasons::refusal::Refusal;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The memory for content that is collected: a limit per request, and one for all requests.
pub struct Room {
    pub(super) each: usize,
    left: AtomicUsize,
}

impl Room {
    /// `each` bytes per request, and `all` bytes in total.
    pub fn new(each: usize, all: usize) -> Room {
        Room { each, left: AtomicUsize::new(all) }
    }

    fn take(&self, bytes: usize) -> bool {
        let less = |left: usize| left.checked_sub(bytes);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }
}

/// Memory reserved for one request; released when it is dropped.
pub(super) struct MemoryReservation {
    room: Arc<Room>,
    pub(super) bytes: usize,
}

impl MemoryReservation {
    /// Starts without a reservation.
    pub(super) fn nothing(room: &Arc<Room>) -> MemoryReservation {
        MemoryReservation { room: room.clone(), bytes: 0 }
    }

    /// Reserves more memory; returns false if there is not enough.
    pub(super) fn more(&mut self, bytes: usize) -> bool {
        let is_there = self.room.take(bytes);
        self.bytes += if is_there { bytes } else { 0 };
        is_there
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        self.room.left.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

/// Content that is being collected. The part in memory follows the part on the disk.
pub(super) struct Whole {
    /// The part in memory.
    pub(super) gathered: Vec<u8>,
    /// The memory reserved for it.
    pub(super) taken: MemoryReservation,
    /// The part on the disk.
    pub(super) file: Option<SpoolFile>,
}

impl Whole {
    /// Starts with empty content.
    pub(super) fn nothing(room: &Arc<Room>) -> Whole {
        Whole { gathered: Vec::new(), taken: MemoryReservation::nothing(room), file: None }
    }

    /// Adds a piece. The last piece of short content is accepted without a reservation, because it is
    /// sent at once.
    pub(super) async fn take(
        &mut self,
        piece: Bytes,
        is_last: bool,
        spool: &Spool,
    ) -> Result<(), Refusal> {
        let (each, sum) = (self.taken.room.each, self.gathered.len() + piece.len());
        let most = if self.file.is_some() { each.min(PIECE_BYTES) } else { each };
        let is_short = is_last && self.file.is_none();
        if sum <= most && (self.taken.more(piece.len()) || is_short) {
            self.gathered.extend_from_slice(&piece);
            return Ok(());
        }
        let file = match self.file.take() {
            Some(file) => self.file.insert(file),
            None => self.file.insert(spool.file().await?),
        };
        file.append([std::mem::take(&mut self.gathered).into(), piece]).await?;
        self.taken = MemoryReservation::nothing(&self.taken.room);
        Ok(())
    }

    /// Completes the content: writes the rest to the disk, if a part is there already.
    pub(super) async fn end(&mut self) -> Result<(), Refusal> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.append([std::mem::take(&mut self.gathered).into(), Bytes::new()]).await?;
        self.taken = MemoryReservation::nothing(&self.taken.room);
        Ok(())
    }
}
