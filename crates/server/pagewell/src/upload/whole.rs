//! Where content is kept until it goes on: in memory as far as there is room, which is counted over all
//! requests, and behind that on the disk ([`crate::spool`]).
//!
//! Memory is given back as soon as what it held is on the disk, so that many slow uploads leave room for
//! forms that are short.

use crate::refusal::Refusal;
use crate::spool::{PIECE_BYTES, Spool, Spooled};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Where content is waited for before it takes a place at the origin: so much of each request, and so much
/// of all together.
pub struct Room {
    pub(super) each: usize,
    left: AtomicUsize,
}

impl Room {
    /// `each` bytes of a request, `all` of all of them.
    pub fn new(each: usize, all: usize) -> Room {
        Room { each, left: AtomicUsize::new(all) }
    }

    fn take(&self, bytes: usize) -> bool {
        let less = |left: usize| left.checked_sub(bytes);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }
}

/// Room that one request has taken; given back when its content has gone.
pub(super) struct Taken {
    room: Arc<Room>,
    pub(super) bytes: usize,
}

impl Taken {
    /// None of it yet.
    pub(super) fn nothing(room: &Arc<Room>) -> Taken {
        Taken { room: room.clone(), bytes: 0 }
    }

    /// Takes more, if there is so much; says whether there was.
    pub(super) fn more(&mut self, bytes: usize) -> bool {
        let is_there = self.room.take(bytes);
        self.bytes += if is_there { bytes } else { 0 };
        is_there
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.room.left.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

/// Content that is being collected: what waits in memory comes behind what is on the disk.
pub(super) struct Whole {
    /// In memory.
    pub(super) gathered: Vec<u8>,
    /// What that takes of the room for it.
    pub(super) taken: Taken,
    /// On the disk.
    pub(super) file: Option<Spooled>,
}

impl Whole {
    /// None of it yet.
    pub(super) fn nothing(room: &Arc<Room>) -> Whole {
        Whole { gathered: Vec::new(), taken: Taken::nothing(room), file: None }
    }

    /// Keeps a piece. The last one of what is short needs no room that is counted: it is here, and goes on at
    /// once.
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
        self.taken = Taken::nothing(&self.taken.room);
        Ok(())
    }

    /// There is no more of it.
    pub(super) async fn end(&mut self) -> Result<(), Refusal> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.append([std::mem::take(&mut self.gathered).into(), Bytes::new()]).await?;
        self.taken = Taken::nothing(&self.taken.room);
        Ok(())
    }
}
