//! A whole snapshot: what it begins with, its head, its pages in pieces of about a megabyte, its end.
//!
//! | comes | then |
//! |---|---|
//! | magic, version | the head |
//! | the head: number, time, the site's print, positions | pages, or the end |
//! | pages | pages, or the end |
//! | the end: how many pages there were | nothing |
//!
//! [`Writer`] gives bytes to be written, [`Reader`] says how many it wants next. Neither holds more than a
//! piece.

use crate::Unreadable;
use crate::frame::{self, Before, FRAME_BYTES, FRAME_BYTES_MAX, Place};
use crate::parts::{Put, Rest};
use crate::record::{Record, SavedPage, read_page, write_page};

const MAGIC: &[u8; 8] = b"PwPages\n";
/// The version of the format.
pub const VERSION: u32 = 1;
/// The bytes before the head: magic, version, the file's own number.
pub const PREFIX_BYTES: usize = 8 + 4 + 8;
/// The most sources of changes that a snapshot knows the position of.
pub const SOURCES_MAX: usize = 64;
/// From this length on a piece is written.
const PIECE_BYTES: usize = 1 << 20;
/// The longest position, and the longest name of a source.
const POSITION_BYTES_MAX: usize = 1 << 20;

const HEAD: u8 = 1;
const PAGES: u8 = 2;
const END: u8 = 3;

/// Where in a stream of changes the pages were exact.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Which stream it is.
    pub source: Vec<u8>,
    /// How far it was applied; what that means only the stream knows.
    pub at: Vec<u8>,
}

/// What a snapshot says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Its number; each has one more than that before.
    pub generation: u64,
    /// When it was begun, in milliseconds since the Unix epoch.
    pub begun_ms: u64,
    /// What the pages' meaning depends on: configuration and program, as a hash.
    pub print: u128,
    /// The streams of changes.
    pub positions: Vec<Position>,
}

/// The end of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// How many pages there are.
    pub pages: u64,
}

/// Writes a snapshot into its buffer, from which the caller takes the bytes.
#[derive(Debug)]
pub struct Writer {
    place: Place,
    pages: u64,
    /// Where in `out` the piece being put together begins.
    begun: Option<usize>,
    out: Vec<u8>,
}

/// What became of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// It is in.
    Yes,
    /// It is longer than a piece may be.
    TooLarge,
}

impl Writer {
    /// Begins a snapshot. `file` tells it from every other.
    pub fn new(head: &Head, file: u64) -> Writer {
        let mut out = MAGIC.to_vec();
        out.u32(VERSION);
        out.u64(file);
        let mut writer = Writer { place: Place { file, number: 0 }, pages: 0, begun: None, out };
        let at = frame::begin(&mut writer.out);
        let out = &mut writer.out;
        out.u64(head.generation);
        out.u64(head.begun_ms);
        out.extend_from_slice(&head.print.to_le_bytes());
        out.u32(head.positions.len() as u32);
        for position in &head.positions {
            out.bytes(&position.source);
            out.bytes(&position.at);
        }
        writer.end_piece(at, HEAD);
        writer
    }

    /// Adds a page.
    pub fn page(&mut self, page: &Record<'_>) -> Written {
        let at = match self.begun {
            Some(at) => at,
            None => *self.begun.insert(frame::begin(&mut self.out)),
        };
        let start = self.out.len();
        self.out.u32(0);
        write_page(page, &mut self.out);
        let length = self.out.len() - start - 4;
        // In a piece of its own it would fit, or not at all.
        if length + 4 > FRAME_BYTES_MAX - PIECE_BYTES {
            self.out.truncate(start);
            return Written::TooLarge;
        }
        self.out[start..start + 4].copy_from_slice(&(length as u32).to_le_bytes());
        self.pages += 1;
        if self.out.len() - at >= PIECE_BYTES {
            self.begun = None;
            self.end_piece(at, PAGES);
        }
        Written::Yes
    }

    /// Ends the snapshot. What [`take`](Self::take) gives afterwards is the last of it.
    pub fn end(&mut self) -> End {
        if let Some(at) = self.begun.take() {
            self.end_piece(at, PAGES);
        }
        let at = frame::begin(&mut self.out);
        self.out.u64(self.pages);
        self.end_piece(at, END);
        End { pages: self.pages }
    }

    /// How many pages were added.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Hands over what is complete, to be written, and forgets it; nothing where no piece is.
    pub fn take<R>(&mut self, write: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let end = self.begun.unwrap_or(self.out.len());
        if end == 0 {
            return None;
        }
        let written = write(&self.out[..end]);
        self.out.drain(..end);
        self.begun = self.begun.map(|_| 0);
        Some(written)
    }

    fn end_piece(&mut self, at: usize, kind: u8) {
        frame::end(&mut self.out, at, kind, self.place);
        self.place.number += 1;
    }
}

/// Reads a snapshot: give it as many bytes as it [wants](Reader::wants) until the end has come.
#[derive(Debug)]
pub struct Reader {
    place: Place,
    pages: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Prefix,
    Before { first: bool },
    Piece { before: Before, first: bool },
    Over,
}

/// What has been read.
#[derive(Debug)]
pub enum Piece<'a> {
    /// Nothing that stands for itself.
    Part,
    /// The head.
    Head(Head),
    /// Some pages.
    Pages(Pages<'a>),
    /// The end.
    End(End),
}

/// The pages of a piece.
#[derive(Debug)]
pub struct Pages<'a>(&'a [u8]);

impl Default for Reader {
    fn default() -> Reader {
        let place = Place { file: 0, number: 0 };
        Reader { place, pages: 0, state: State::Prefix }
    }
}

impl Reader {
    /// How many bytes it wants next; none: the end has come.
    pub fn wants(&self) -> Option<usize> {
        match self.state {
            State::Prefix => Some(PREFIX_BYTES),
            State::Before { .. } => Some(FRAME_BYTES),
            State::Piece { before, .. } => Some(before.length),
            State::Over => None,
        }
    }

    /// Reads that many bytes.
    ///
    /// # Errors
    /// They are not what was written there. The reader is of no use any more.
    pub fn read<'a>(&mut self, bytes: &'a [u8]) -> Result<Piece<'a>, Unreadable> {
        match self.state {
            State::Prefix => self.prefix(bytes),
            State::Before { first } => {
                let bytes = bytes.try_into().map_err(|_| Unreadable::CutOff)?;
                let before = Before::read(bytes)?;
                let fits =
                    if first { before.kind == HEAD } else { matches!(before.kind, PAGES | END) };
                if !fits {
                    return Err(Unreadable::Damaged);
                }
                self.state = State::Piece { before, first };
                Ok(Piece::Part)
            }
            State::Piece { before, .. } => {
                before.check(bytes, self.place)?;
                self.place.number += 1;
                self.state = State::Before { first: false };
                self.piece(before.kind, bytes)
            }
            State::Over => Err(Unreadable::Invalid),
        }
    }

    fn prefix(&mut self, bytes: &[u8]) -> Result<Piece<'static>, Unreadable> {
        let mut rest = Rest(bytes);
        if rest.take(8)? != MAGIC {
            return Err(Unreadable::Foreign);
        }
        if rest.u32()? != VERSION {
            return Err(Unreadable::OtherVersion);
        }
        self.place.file = rest.u64()?;
        self.state = State::Before { first: true };
        Ok(Piece::Part)
    }

    fn piece<'a>(&mut self, kind: u8, bytes: &'a [u8]) -> Result<Piece<'a>, Unreadable> {
        match kind {
            HEAD => read_head(bytes).map(Piece::Head),
            PAGES => {
                let pages = Pages(bytes);
                self.pages += pages.count()?;
                Ok(Piece::Pages(pages))
            }
            _ => {
                let mut rest = Rest(bytes);
                let end = End { pages: rest.u64()? };
                rest.end()?;
                self.state = State::Over;
                if end.pages == self.pages { Ok(Piece::End(end)) } else { Err(Unreadable::Damaged) }
            }
        }
    }
}

impl<'a> Pages<'a> {
    /// How many there are.
    fn count(&self) -> Result<u64, Unreadable> {
        let (mut rest, mut count) = (Rest(self.0), 0);
        while !rest.0.is_empty() {
            rest.bytes()?;
            count += 1;
        }
        Ok(count)
    }

    /// Each of them, read.
    pub fn iter(&self) -> impl Iterator<Item = Result<SavedPage<'a>, Unreadable>> + use<'a> {
        let mut rest = Rest(self.0);
        std::iter::from_fn(move || {
            if rest.0.is_empty() {
                return None;
            }
            let page = rest.bytes();
            if page.is_err() {
                rest = Rest(&[]);
            }
            Some(page.and_then(read_page))
        })
    }
}

fn read_head(bytes: &[u8]) -> Result<Head, Unreadable> {
    let mut rest = Rest(bytes);
    let (generation, begun_ms, print) = (rest.u64()?, rest.u64()?, rest.u128()?);
    let count = rest.count(SOURCES_MAX)?;
    let mut positions = Vec::new();
    for _ in 0..count {
        let (source, at) = (rest.bytes()?, rest.bytes()?);
        if source.len().max(at.len()) > POSITION_BYTES_MAX {
            return Err(Unreadable::TooLarge);
        }
        positions.push(Position { source: source.to_vec(), at: at.to_vec() });
    }
    rest.end()?;
    Ok(Head { generation, begun_ms, print, positions })
}
